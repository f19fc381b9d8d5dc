"""The plan that `run` and `up` print before the first request: which sites are asked, which not, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding

from app.cli.options import store_there
from app.cli.output import print_json, printed, say, table
from app.files.harmless import shown
from app.run.crawl_plan import as_virtual_task, crawl_plan
from app.run.nodes import clients
from app.run.preflight import LONGEST_S, Preflight, preflight
from app.run.setting_values import sqlite_file
from app.views.crawl_plan import CrawlPlan
from app.views.durations import seconds
from splitter.errors import InputError
from tasks.store.content.products import NewProduct
from tasks.store.queue import nodes, tasks
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import VirtualTask

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

MOST_PLANNED = 100_000
"""Virtual tasks that a plan is counted over, at most."""

_SITES_NAMED = 6


def find_askable(settings: Settings) -> Preflight:
    """Find out what can be asked; says that it takes a moment."""
    if settings.lab is None:
        say(f"Looking up which sites can be asked (at most {LONGEST_S:g} s).", "dim")
    return preflight(settings, settings.catalog())


def stored_in(settings: Settings) -> tuple[list[VirtualTask], list[Node]]:
    """The virtual tasks of the store that have no tasks yet, and the nodes added; none where there is no store."""
    path = sqlite_file(settings.database_url)
    if path is not None and not path.is_file():
        return [], []
    with store_there(settings) as store, store.read() as tx:
        return tasks.list_unplanned(tx, MOST_PLANNED), nodes.list_added(tx, settings.slots)


def plan_of(
    settings: Settings,
    found: Preflight,
    given: Sequence[NewProduct],
    stored: Sequence[VirtualTask],
    nodes: Sequence[Node],
) -> CrawlPlan:
    """The plan of products that are given and of those stored, by these nodes."""
    new = {one.name for one in given}
    wanted = [as_virtual_task(one) for one in given] + [one for one in stored if one.product not in new]
    plan = crawl_plan(settings.catalog(), found, wanted, clients(nodes))
    return replace(plan, notes=(*searxng_notes(found), *node_notes(nodes)))


def searxng_notes(found: Preflight) -> Iterator[str]:
    """Yield what a person should know of each SearXNG that answers: its engines, and those that are silent."""
    for name, one in found.searxng.items():
        if one.because is not None:
            continue
        if one.version or one.engines:
            yield f"{name}: SearXNG {one.version} with {', '.join(one.engines) or 'no engine of category general'}"
        if one.hits == 0 and one.silent:
            yield f"{name}: none of its engines answered a sample search"
        for engine, why in one.silent.items():
            yield f"{name}: {engine} did not answer ({why})"


def node_notes(nodes: Sequence[Node]) -> list[str]:
    """Return what a person should know of the nodes before they crawl."""
    if clients(nodes) > 1:
        return [f"{len(nodes)} nodes: {', '.join(map(_describe, nodes))}."]
    these = "One node" if len(nodes) == 1 else f"{len(nodes)} nodes behind one address (one client to a site)"
    return [
        f"{these}: what can't be learned is which node is good at which site, and whether a refusal is about the "
        "address or about everybody.",
        "A second one: reviewloop nodes add NAME --address A | --proxy URL",
    ]


def _describe(node: Node) -> str:
    if node.proxy is not None:
        return f"{node.name} (through {node.proxy})"
    return f"{node.name} ({node.address or 'as the system chooses'})"


def print_plan(plan: CrawlPlan, as_json: bool) -> None:
    """Print the whole plan on standard output."""
    if as_json:
        print_json(plan)
        return
    out = printed()
    _print_summary(out, plan)
    if plan.asked:
        rows = ((one.site, one.engine, one.searches, one.pages) for one in plan.asked)
        out.print(table(("site", "engine", "searches", "pages at most"), rows, "Sites that will be asked"))
    _print_missing(out, plan)


def say_plan(plan: CrawlPlan) -> None:
    """Say on standard error what is about to be asked, in a few lines."""
    from app.cli.output import messages

    _print_summary(messages, plan)
    if plan.asked and plan.not_asked:
        messages.print(Padding(_named([one.site for one in plan.asked]), (0, 0, 0, 4), expand=False))
    _print_missing(messages, plan)


def refuse_empty(plan: CrawlPlan) -> None:
    """Raise InputError if no site can be asked."""
    if plan.asked:
        return
    raise InputError("no site can be crawled: the reasons and what fixes them are listed above")


def _print_summary(out: Console, plan: CrawlPlan) -> None:
    sites = len(plan.asked) + len(plan.not_asked)
    products = f"{plan.products:,} product{'' if plan.products == 1 else 's'}"
    out.print(f"{products}; of {sites} sites {len(plan.asked)} will be asked.", style="bold")
    if plan.requests:
        host = f", at {plan.slowest_host} longest" if plan.slowest_host else ""
        out.print(
            f"At most {plan.requests:,} requests; at the hosts' limits about {seconds(round(plan.seconds))}{host}."
        )
    for note in plan.notes:
        out.print(shown(note), style="dim")


def _print_missing(out: Console, plan: CrawlPlan) -> None:
    """Each cause with what mends it, in lines: a column of a table would break the names of settings."""
    if plan.missing:
        out.print("\nNot asked, and what mends it", style="bold")
    for one in plan.missing:
        out.print(shown(f"{len(one.sites)} site{'s' * (len(one.sites) != 1)}: {one.why}"))
        if one.mend:
            out.print(Padding(shown(one.mend), (0, 0, 0, 4), expand=False), soft_wrap=False, style="yellow")
        out.print(Padding(_named(one.sites), (0, 0, 0, 4), expand=False), soft_wrap=False, style="dim")


def _named(sites: Sequence[str]) -> str:
    more = f" and {len(sites) - _SITES_NAMED} more" if len(sites) > _SITES_NAMED else ""
    return ", ".join(sites[:_SITES_NAMED]) + more
