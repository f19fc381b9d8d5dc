"""Make the tasks of virtual tasks: find the sites that may be asked, and the queries for each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog
from splitter.keywords import ProductQuery
from splitter.split import SearchScope, task_chunks

from tasks.domain.hit_count import NewPartition
from tasks.domain.reasons import Explanation, Reason, because
from tasks.fetching.robots import RobotsRules
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.jobs.partitioning import search_urls
from tasks.store.queue import tasks
from tasks.store.queue.tasks import NewTask, VirtualTask
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer

RobotsOf = Callable[[str], Awaitable[RobotsRules]]
FindObstacles = Callable[[], Mapping[str, tuple[Obstacle, ...]]]

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Permission:
    """The decision if robots.txt permits to crawl a site.

    Attributes:
        state: "permitted", "not permitted" or "unknown" (no host answered: the crawl will show it).
    """

    state: str
    because: Explanation


def addresses(catalog: Catalog, site: str) -> tuple[str, str]:
    """Return the two addresses whose robots.txt matter for a site: its engine's search, and its own front page."""
    return catalog.engine_of(site).url, f"http://{site}/"


def permission(catalog: Catalog, site: str, rules: Mapping[str, RobotsRules], agent: str) -> Permission:
    """Decide about a site from the robots.txt files by address (see `addresses`). One that was not asked is missing."""
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
            return Permission(
                "not permitted", because(Reason.ROBOTS_REFUSE, host=host, path=urlsplit(url).path or "/")
            )
    if unknown:
        return Permission("unknown", because(Reason.ROBOTS_UNKNOWN, hosts=", ".join(unknown)))
    reasons = [decision.reason for decision in robots if decision is not None and not decision.obey]
    if reasons:
        return Permission("permitted", because(Reason.CATALOG_PERMITS, text="; ".join(reasons)))
    return Permission("permitted", because(Reason.ROBOTS_ALLOW))


async def plan(
    writer: Writer,
    catalog: Catalog,
    robots_of: RobotsOf,
    agent: str,
    unasked: FindObstacles = lambda: {},
    *,
    late: bool = False,
) -> int:
    """Make the tasks of every virtual task that has none, and return their number.

    Sites that can't be asked or that robots.txt refuses get no task and are recorded. Virtual tasks that come
    meanwhile wait for the next run.

    Args:
        unasked: returns the sites that can't be asked now, with the reasons. It may take seconds and is called in a
            thread.
        late: True to also make tasks at recorded sites that can be asked now.
    """
    wanted = await writer.run(lambda tx: tasks.list_unplanned(tx, _BATCH))
    noted = await writer.run(lambda tx: tasks.list_late_sites(tx)) if late else []
    if not wanted and not noted:
        return 0
    blocked = await asyncio.to_thread(unasked)
    late_sites = {one.site for one in noted}
    asked = _list_sites(catalog, wanted) | late_sites
    sites = [site for site in catalog.sites if site in asked and site not in blocked]
    refused = await _ask_robots(catalog, sites, robots_of, agent)
    missing = {site: (str(those[0].kind), those[0].because) for site, those in blocked.items()} | refused
    made = 0
    for virtual_task in wanted:
        made += await writer.run(
            partial(_plan_one, catalog=catalog, virtual_task=virtual_task, missing=missing)
        )
    if askable := tuple(site for site in sites if site in late_sites and site not in refused):
        made += await writer.run(partial(_plan_late, catalog=catalog, askable=askable))
    return made


def _list_sites(catalog: Catalog, virtual_tasks: Sequence[VirtualTask]) -> set[str]:
    """Return the sites of these virtual tasks."""
    return {site for one in virtual_tasks for site in catalog.sites_for(one.sites, one.category)}


def _plan_one(
    tx: Transaction,
    *,
    catalog: Catalog,
    virtual_task: VirtualTask,
    missing: Mapping[str, tuple[str, Explanation]],
) -> int:
    wanted = catalog.sites_for(virtual_task.sites, virtual_task.category)
    sites = tuple(site for site in wanted if site not in missing)
    planned = plan_tasks(catalog, virtual_task, sites)
    made = tasks.plan(tx, virtual_task, planned, partial(search_urls, catalog))
    tasks.put_off(tx, virtual_task, {site: missing[site] for site in wanted if site in missing})
    return made


def _plan_late(tx: Transaction, *, catalog: Catalog, askable: tuple[str, ...]) -> int:
    urls = partial(search_urls, catalog)
    return sum(
        tasks.plan_late(tx, virtual_task, plan_tasks(catalog, virtual_task, askable), urls)
        for virtual_task in tasks.list_late(tx, askable, _BATCH)
    )


async def _ask_robots(
    catalog: Catalog, sites: Sequence[str], robots_of: RobotsOf, agent: str
) -> dict[str, tuple[str, Explanation]]:
    """Return the sites that robots.txt refuses, with the kind of obstacle and the reason."""
    urls = sorted({url for site in sites for url in addresses(catalog, site)})
    answers = await asyncio.gather(*(robots_of(url) for url in urls))
    rules = dict(zip(urls, answers, strict=True))
    allowed = {site: permission(catalog, site, rules, agent) for site in sites}
    return {
        site: (str(ObstacleKind.ROBOTS), found.because)
        for site, found in allowed.items()
        if found.state == "not permitted"
    }


def plan_tasks(catalog: Catalog, wanted: VirtualTask, sites: tuple[str, ...]) -> list[NewTask]:
    """Return one task per site, with a partition for each keyword set that gives different search URLs."""
    query = ProductQuery(wanted.product, wanted.keywords, wanted.aliases)
    asked = SearchScope(catalog, sites, pages=wanted.pages)
    planned = []
    for site in sites:
        found = catalog.sites[site]
        pages = Counter(page.keywords for chunk in task_chunks(asked, site, query) for page in chunk)
        partitions = tuple(
            NewPartition(
                words,
                n,
                found.chunk_pages,
                own_words=wanted.own_keywords and words == wanted.keywords,
            )
            for words, n in pages.items()
        )
        planned.append(NewTask(site, found.engine, str(catalog.kind_of(site)), partitions))
    return planned
