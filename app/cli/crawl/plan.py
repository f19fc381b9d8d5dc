"""The plan that `run` and `up` print at first: sites to crawl, sites that can't be crawled and why, and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from app.cli.options import store_there
from app.cli.output import messages, say
from app.cli.program import as_called
from app.cli.render import Part, print_parts, table, text
from app.files.harmless import shown
from app.run.crawl_plan import as_virtual_task, crawl_plan
from app.run.nodes import clients
from app.run.preflight import LONGEST_S, Preflight, preflight
from app.run.setting_values import sqlite_file
from app.views.crawl_plan import CrawlPlan
from app.views.durations import seconds
from app.views.words import describe, plural, translate
from splitter.errors import InputError, Message, join_messages, list_names
from tasks.store.content.products import NewProduct
from tasks.store.queue import nodes, tasks
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import VirtualTask

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

MOST_PLANNED = 100_000
"""Maximum number of virtual tasks that a plan counts."""

_SITES_NAMED = 6
_INDENT = (0, 0, 0, 4)
_NO_SITE = Message("no site can be crawled: the reasons and what fixes them are listed above")


def find_askable(settings: Settings) -> Preflight:
    """Find out which sites can be crawled. Print before that this takes a moment."""
    if settings.lab is None:
        say(translate("Looking up which sites can be asked (at most {n:g} s).", n=LONGEST_S), "dim")
    return preflight(settings, settings.catalog())


def load_stored(settings: Settings) -> tuple[list[VirtualTask], list[Node]]:
    """Return the stored products without tasks, and the nodes of `nodes add`; both empty if there is no store."""
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
    """Return the plan for crawling products at the sites of the run.

    Args:
        found: the sites that can be asked.
        given: products named on the command line.
        stored: products in the store that have no tasks yet.
        nodes: nodes of the run.
    """
    if only := settings.only_sites:
        unasked = {site: those for site, those in found.unasked.items() if site in only}
        found = replace(found, asked=tuple(filter(only.__contains__, found.asked)), unasked=unasked)
    new = {one.name for one in given}
    wanted = [as_virtual_task(one) for one in given] + [one for one in stored if one.product not in new]
    plan = crawl_plan(settings.catalog(), found, wanted, clients(nodes))
    return replace(plan, notes=(*searxng_notes(found), *node_notes(nodes)))


def searxng_notes(found: Preflight) -> Iterator[Message]:
    """Yield messages about each SearXNG that answers: its engines, and those of its engines that don't answer."""
    for name, one in found.searxng.items():
        if one.because is not None:
            continue
        if one.version or one.engines:
            engines = ", ".join(one.engines) or Message("no engine of category general")
            yield Message(
                "{name}: SearXNG {version} with {engines}", name=name, version=one.version, engines=engines
            )
        if one.hits == 0 and one.silent:
            yield Message("{name}: none of its engines answered a sample search", name=name)
        for engine, why in one.silent.items():
            yield Message("{name}: {engine} did not answer ({why})", name=name, engine=engine, why=why)


def node_notes(nodes: Sequence[Node]) -> list[Message]:
    """Return messages about the nodes that a person should see before the crawl."""
    if clients(nodes) > 1:
        names = join_messages(map(_describe, nodes), ", ")
        return [Message("{n} nodes: {names}.", n=len(nodes), names=names)]
    these = Message("One node")
    if len(nodes) > 1:
        these = Message("{n} nodes behind one address (one client to a site)", n=len(nodes))
    return [
        Message(
            "{these}: it can't be learned which node is good at which site, or whether a refusal concerns the "
            "address or everybody.",
            these=these,
        ),
        Message("A second one: reviewloop nodes add NAME --address A | --proxy URL"),
    ]


def _describe(node: Node) -> Message:
    if node.proxy is not None:
        return Message("{name} (through {proxy})", name=node.name, proxy=node.proxy)
    if node.address:
        return Message("{name} ({address})", name=node.name, address=node.address)
    return Message("{name} (address chosen by the system)", name=node.name)


@text.register
def _(plan: CrawlPlan) -> Iterator[Part]:
    yield from _list_summary_parts(plan)
    if plan.asked:
        yield table(plan.asked, "site engine searches pages", title=translate("Sites that will be crawled"))
    yield from _list_missing_parts(plan)
    if not plan.asked:
        yield Text(describe(_NO_SITE), style="red")


def say_plan(plan: CrawlPlan) -> None:
    """Print the plan on standard error, in a few lines."""
    print_parts(messages, _list_summary_parts(plan))
    if plan.asked and plan.not_asked:
        print_parts(
            messages,
            [
                Padding(
                    describe(list_names([one.site for one in plan.asked], _SITES_NAMED)),
                    _INDENT,
                    expand=False,
                )
            ],
        )
    print_parts(messages, _list_missing_parts(plan))


def refuse_empty(plan: CrawlPlan) -> None:
    """Raise InputError if no site can be crawled."""
    if plan.asked:
        return
    raise InputError("{problem}", problem=_NO_SITE)


def _list_summary_parts(plan: CrawlPlan) -> Iterator[Part]:
    products = plural("{n:,} product", "{n:,} products", plan.products)
    summary = translate(
        "{products}; {asked} of {sites} sites will be crawled.",
        products=products,
        asked=len(plan.asked),
        sites=len(plan.asked) + len(plan.not_asked),
    )
    yield Text(summary, style="bold")
    if plan.requests:
        length = seconds(round(plan.seconds))
        yield translate(
            "At most {n:,} requests; at the hosts' limits about {length}.", n=plan.requests, length=length
        )
        if plan.slowest_host:
            yield translate("The slowest host is {host}.", host=plan.slowest_host)
    for note in plan.notes:
        yield Text(as_called(shown(describe(note))), style="dim")


def _list_missing_parts(plan: CrawlPlan) -> Iterator[Part]:
    """Yield each reason why sites can't be crawled, with its remedy, as lines.

    A table would break the names of settings.
    """
    if plan.missing:
        yield Text("\n" + translate("Not crawled, and what mends it"), style="bold")
    for one in plan.missing:
        sites = plural("{n} site: {why}", "{n} sites: {why}", len(one.sites), why=one.why)
        yield shown(sites)
        if one.mend is not None:
            yield Padding(Text(as_called(shown(describe(one.mend))), style="yellow"), _INDENT, expand=False)
        yield Padding(Text(describe(list_names(one.sites, _SITES_NAMED)), style="dim"), _INDENT, expand=False)
