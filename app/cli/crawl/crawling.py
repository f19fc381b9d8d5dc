"""Steps of `run` and `up`. This module is slow to import, so commands first check their options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from app.actions import product_actions
from app.actions.product_actions import Added
from app.actions.products import RefusedProduct, new_products
from app.cli.command import App
from app.cli.crawl.plan import (
    MOST_PLANNED,
    find_askable,
    load_stored,
    plan_of,
    refuse_empty,
    say_plan,
)
from app.cli.crawl.progress import Progress
from app.cli.options import DatabaseUnusable, check_known, chosen_sites, person, warn_without_contact
from app.cli.output import say
from app.cli.products.product import say_notes
from app.reports.summary import RunView, get_run_view, mark
from app.run.preflight import Preflight, check_lab
from app.views.crawl_plan import CrawlPlan
from app.views.status import get_status_view
from app.views.words import translate
from splitter.errors import InputError
from tasks.domain.errors import StoreUnavailable
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import tasks
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

_NAMED = (
    "slots", "allocation", "modification", "recall", "silent_after_s", "backoff_s", "rest_factor", "seed",
)  # fmt: skip


def watch(
    app: App,
    store: Store,
    nodes: int,
    crawl: Callable[[Callable[[], None]], None],
    until_done: bool = False,
) -> RunView:
    """Crawl with live progress, and return the results of the run.

    Args:
        nodes: number of nodes, to be shown.
        crawl: crawls until the end. It gets a function that shows the progress.
        until_done: True if the run continues while work waits for hosts, which is reported once.

    Raises:
        DatabaseUnusable: the database does not answer at the end, so there is no summary.
    """
    settings = app.settings
    begin, began_s = mark(store), monotonic()
    progress = Progress(store, begin, settings, until_done=until_done)
    with progress.live():
        crawl(progress.update)
    took_s = monotonic() - began_s
    try:
        with store.read() as tx:
            status = get_status_view(tx, settings.catalog(), settings.buffer())
            options = _list_settings(settings, nodes)
            only = settings.only_sites
            return get_run_view(tx, begin, status, seconds=took_s, settings=options, only_sites=only)
    except StoreUnavailable as error:
        raise DatabaseUnusable(
            "the run has ended, but the database does not answer: see `reviewloop status` once it does"
        ) from error


def announce(nodes: int, settings: Settings) -> None:
    """Report that a run begins, and warn if no contact is set."""
    where = "{}:{}".format(*settings.lab) if settings.lab else ""
    begins = translate(
        "Nodes: {n}, each with {slots} slots, on the lab at {where}. Ctrl-C ends the run."
        if settings.lab
        else "Nodes: {n}, each with {slots} slots, on the web. Ctrl-C ends the run.",
        n=nodes,
        slots=settings.slots,
        where=where,
    )
    say(begins, "dim")
    warn_without_contact(settings)


def limit_to(settings: Settings, groups: Sequence[str], sites: Sequence[str]) -> Settings:
    """Return settings that limit a run to these groups and sites. If none are given, it crawls all sites.

    Raises:
        InputError: a site is unknown, or no site of the catalog is in these groups.
    """
    chosen = chosen_sites(settings.catalog(), groups, sites)
    return settings if chosen is None else settings.replace(only_sites=frozenset(chosen))


def read_names(settings: Settings, names: Sequence[str]) -> list[NewProduct | RefusedProduct]:
    """Return the products named on the command line. New ones are crawled only at the sites of the run.

    Raises:
        InputError: a given lab does not answer, or a site is unknown.
    """
    if settings.lab is not None:
        check_lab(settings.lab)
    catalog, only = settings.catalog(), settings.only_sites
    check_known(catalog, sorted(only))
    return new_products(names, sites=tuple(filter(only.__contains__, catalog.sites)) if only else None)


def make_plan(
    app: App,
    given: Sequence[NewProduct | RefusedProduct],
    choose: Callable[[Sequence[Node]], Sequence[Node]],
) -> CrawlPlan:
    """Return the plan of a run. Set exit status 2 if a name was refused or no site can be crawled.

    Args:
        given: products named on the command line.
        choose: takes the nodes that were added to the store, and returns the nodes of the run.
    """
    refused = [one for one in given if isinstance(one, RefusedProduct)]
    say_notes(Added(refused=refused))
    accepted = [one for one in given if isinstance(one, NewProduct)]
    stored, added = load_stored(app.settings)
    if not accepted and not stored:
        raise InputError("there is no product to plan for: reviewloop run --plan 光明高钙牛奶")
    nodes = choose(added)  # refuse a wrong node before the slow look-up of sites
    plan = plan_of(app.settings, find_askable(app.settings), accepted, stored, nodes)
    if refused or not plan.asked:
        app.exit_status = 2
    return plan


def require_askable_sites(
    settings: Settings, store: Store, nodes: Sequence[Node], *, may_be_none: bool = False
) -> Preflight:
    """Find out which sites can be crawled, and print the plan unless a lab serves all of them.

    Args:
        may_be_none: True if the run can wait until a site can be crawled.

    Raises:
        InputError: no site can be crawled, and `may_be_none` is False.
    """
    found = find_askable(settings)
    if settings.lab is None or found.unasked:
        with store.read() as tx:
            stored = tasks.list_unplanned(tx, MOST_PLANNED)
        plan = plan_of(settings, found, [], stored, nodes)
        say_plan(plan)
        if not may_be_none:
            refuse_empty(plan)
    return found


def add_names(
    store: Store, given: Sequence[NewProduct | RefusedProduct], *, may_be_none: bool = False
) -> bool:
    """Add the products named on the command line. Return True if some were refused.

    Args:
        may_be_none: True if the run can wait for products that people add in the dashboard.

    Raises:
        InputError: there is no product to crawl, and `may_be_none` is False.
    """
    result = product_actions.add(store, given, person())
    say_notes(result)
    with store.read() as tx:
        if not may_be_none and all(one.sites == () for one in products.list_names(tx)):
            raise InputError("there is no product to crawl: reviewloop run --until-done 光明高钙牛奶")
    return bool(result.refused)


def _list_settings(settings: Settings, nodes: int) -> dict[str, Any]:
    """Return those settings that influence the results of a run."""
    return {
        "sites": settings.catalog().name,
        "lab": "{}:{}".format(*settings.lab) if settings.lab else None,
        "nodes": nodes,
        **{name: getattr(settings, name) for name in _NAMED},
    }
