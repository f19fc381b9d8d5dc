"""From virtual tasks to tasks: which sites are permitted, and what is asked there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog
from splitter.query import ProductQuery
from splitter.split import SearchScope, task_chunks

from tasks.fetching.robots import RobotsRules
from tasks.store import products
from tasks.store.partitions import NewPartition
from tasks.store.products import NewTask, VirtualTask
from tasks.store.writer import Writer

RobotsOf = Callable[[str], Awaitable[RobotsRules]]

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether robots.txt lets a site be crawled.

    Attributes:
        state: "permitted", "not permitted" or "unknown" (nobody answered: crawling will tell).
        why: one line for people.
    """

    state: str
    why: str


def addresses(catalog: Catalog, site: str) -> tuple[str, str]:
    """The two addresses whose robots.txt decides about a site: its engine's search, and its own front page."""
    return catalog.engine_of(site).url, f"http://{site}/"


def permission(catalog: Catalog, site: str, rules: Mapping[str, RobotsRules], agent: str) -> Permission:
    """Decide about a site from the robots.txt of both hosts (by `addresses`); one not asked is missing."""
    unknown = []
    robots = catalog.engine_of(site).robots, catalog.sites[site].robots
    for url, decision in zip(addresses(catalog, site), robots, strict=True):
        host = urlsplit(url).netloc
        if decision is not None and not decision.obey:
            continue
        found = rules.get(url)
        if found is None or not found.state.answered:
            unknown.append(host)
        elif not found.allows(url, agent):
            return Permission("not permitted", f"robots.txt of {host} refuses {urlsplit(url).path or '/'}")
    if unknown:
        return Permission("unknown", f"robots.txt of {', '.join(unknown)} is not known")
    reasons = [decision.reason for decision in robots if decision is not None and not decision.obey]
    if reasons:
        return Permission("permitted", f"by the catalog, whatever robots.txt says: {'; '.join(reasons)}")
    return Permission("permitted", "robots.txt of both hosts allows it")


async def plan(writer: Writer, catalog: Catalog, robots_of: RobotsOf, agent: str) -> int:
    """Make the tasks of every virtual task that has none; returns how many.

    Sites that robots.txt refuses get no task. Virtual tasks that come while this runs wait for its next run.
    """
    wanted = await writer.run(lambda conn, _now: products.unplanned(conn, _BATCH))
    if not wanted:
        return 0
    allowed = await permitted(catalog, robots_of, agent)
    made = 0
    for virtual_task in wanted:
        planned = planned_tasks(catalog, virtual_task, allowed)
        made += await writer.run(
            lambda conn, now, v=virtual_task, p=planned: products.plan(conn, now, v, p)  # type: ignore[misc]
        )
    return made


async def permitted(catalog: Catalog, robots_of: RobotsOf, agent: str) -> tuple[str, ...]:
    """The sites of the catalog that get tasks."""
    urls = sorted({url for site in catalog.sites for url in addresses(catalog, site)})
    answers = await asyncio.gather(*(robots_of(url) for url in urls))
    rules = dict(zip(urls, answers, strict=True))
    return tuple(
        site for site in catalog.sites if permission(catalog, site, rules, agent).state != "not permitted"
    )


def planned_tasks(catalog: Catalog, wanted: VirtualTask, sites: tuple[str, ...]) -> list[NewTask]:
    """One task a site: a partition for each keyword set, its search URLs cut into chunks."""
    query = ProductQuery(wanted.product, wanted.keywords, wanted.aliases)
    asked = SearchScope(catalog, sites, pages=wanted.pages)
    planned = []
    for site in sites:
        chunks_of: list[tuple[tuple[str, ...], list[list[str]]]] = []
        for chunk in task_chunks(asked, site, query):
            if chunk[0].page in (None, 1):
                chunks_of.append((chunk[0].keywords, []))
            chunks_of[-1][1].append([page.url for page in chunk])
        partitions = tuple(
            NewPartition(words, chunks, own_words=wanted.own_keywords and words == wanted.keywords)
            for words, chunks in chunks_of
        )
        planned.append(NewTask(site, catalog.sites[site].engine, str(catalog.kind_of(site)), partitions))
    return planned
