"""Steps of `run` and `up` before, while and after they crawl; apart, so that a wrong option is refused at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from app.actions import product_actions
from app.actions.product_actions import Added
from app.actions.products import RefusedProduct, named_products
from app.cli.crawl.plan import (
    MOST_PLANNED,
    find_askable,
    plan_of,
    refuse_empty,
    say_plan,
    stored_in,
)
from app.cli.crawl.progress import Progress
from app.cli.options import (
    DatabaseUnusable,
    check_known,
    chosen_sites,
    person,
    warn_without_contact,
)
from app.cli.output import say
from app.cli.products.product import say_notes
from app.cli.render import show
from app.reports.summary import Summary, mark, summary
from app.run.preflight import Preflight, check_lab
from splitter.errors import InputError
from tasks.domain.errors import StoreUnavailable
from tasks.fetching.hosts import HostCatalog
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


def watched(
    settings: Settings,
    store: Store,
    nodes: int,
    crawl: Callable[[Callable[[], None]], None],
    until_done: bool = False,
) -> Summary:
    """Crawl with live progress; returns what the run came to.

    Args:
        nodes: how many, for the summary.
        crawl: runs to the end; called with the function that shows progress.
        until_done: it goes on while work waits for hosts, and says so once.

    Raises:
        DatabaseUnusable: the database went away before the end, so the run can't be summed up.
    """
    begin, began_s = mark(store), monotonic()
    catalog = settings.catalog()
    progress = Progress(store, begin, catalog, until_done=until_done)
    with progress.live():
        crawl(progress.update)
    took_s = monotonic() - began_s
    try:
        return summary(
            store,
            begin,
            took_s,
            _run_settings(settings, nodes),
            HostCatalog(catalog).of_site,
            settings.only_sites,
        )
    except StoreUnavailable as error:
        raise DatabaseUnusable(
            "the run has ended, but the database does not answer: see `reviewloop status` once it does"
        ) from error


def announce(nodes: str, settings: Settings) -> None:
    """Say what begins, and which settings are unknown."""
    where = "the lab at {}:{}".format(*settings.lab) if settings.lab else "the web"
    say(f"{nodes} with {settings.slots} slots on {where}; Ctrl-C ends it.", "dim")
    warn_without_contact(settings)


def limit_to(settings: Settings, groups: Sequence[str], sites: Sequence[str]) -> Settings:
    """Return the settings of a run that crawls only these groups and sites; none given: all.

    Raises:
        InputError: a site is unknown, or the catalog has none in these groups.
    """
    chosen = chosen_sites(settings.catalog(), groups, sites)
    return settings if chosen is None else settings.with_(only_sites=frozenset(chosen))


def named(settings: Settings, names: Sequence[str]) -> list[NewProduct | RefusedProduct]:
    """The products named on the command line. New ones are looked for only at the sites that the run crawls.

    Raises:
        InputError: a lab is named and does not answer, or a site is unknown.
    """
    if settings.lab is not None:
        check_lab(settings.lab)
    catalog, only = settings.catalog(), settings.only_sites
    check_known(catalog, sorted(only))
    return named_products(names, sites=tuple(filter(only.__contains__, catalog.sites)) if only else None)


def show_plan(
    settings: Settings,
    given: Sequence[NewProduct | RefusedProduct],
    beside: Callable[[Sequence[Node]], Sequence[Node]],
    as_json: bool,
) -> None:
    """Print what a run would ask; ends with 2 where a name was refused, or nothing can be asked.

    Args:
        beside: the nodes of a run, given those that were added.
    """
    refused = [one for one in given if isinstance(one, RefusedProduct)]
    say_notes(Added(refused=refused))
    accepted = [one for one in given if isinstance(one, NewProduct)]
    stored, added = stored_in(settings)
    if not accepted and not stored:
        raise InputError("there is no product to plan for: reviewloop run --plan 光明高钙牛奶")
    nodes = beside(added)  # a wrong one is told before it takes a moment
    plan = plan_of(settings, find_askable(settings), accepted, stored, nodes)
    show(plan, as_json=as_json)
    refuse_empty(plan)
    if refused:
        sys.exit(2)


def askable_or_refuse(
    settings: Settings, store: Store, nodes: Sequence[Node], *, may_be_none: bool = False
) -> Preflight:
    """Find out which sites can be asked, and say so unless a lab serves them all.

    Args:
        may_be_none: the run waits until a site can be asked.

    Raises:
        InputError: no site can be asked.
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
    """Add the products named on the command line and return True if some were refused.

    Args:
        may_be_none: the run waits for products, which people add in the dashboard.

    Raises:
        InputError: there is no product to crawl.
    """
    result = product_actions.add(store, given, person())
    say_notes(result)
    with store.read() as tx:
        if not may_be_none and all(one.sites == () for one in products.list_names(tx)):
            raise InputError("there is no product to crawl: reviewloop run --until-done 光明高钙牛奶")
    return bool(result.refused)


def _run_settings(settings: Settings, nodes: int) -> dict[str, Any]:
    """Return the settings that the figures of a run depend on."""
    return {
        "sites": settings.catalog().name,
        "lab": "{}:{}".format(*settings.lab) if settings.lab else None,
        "nodes": nodes,
        **{name: getattr(settings, name) for name in _NAMED},
    }
