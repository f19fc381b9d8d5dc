"""Where things are put together: store, writer, catalog, strategies, crawl nodes."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from random import Random

from app.config import MIGRATIONS, Settings
from app.hardware import this_machine
from app.pseudonyms import pseudonyms
from app.sign_ins import sign_ins
from splitter.catalog.model import Catalog
from tasks.fetching.downloader import Downloader
from tasks.fetching.hosts import HostBook
from tasks.fetching.permits import SendTimes
from tasks.fetching.robots import RobotsRules
from tasks.jobs.context import Context
from tasks.jobs.scheduler_state import SchedulerState
from tasks.signin.signins import signing
from tasks.store import nodes
from tasks.store.database import Store
from tasks.store.nodes import Node
from tasks.store.writer import Writer
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.node import CrawlNode
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages
from tasks.worker.timing import Timing


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """The store, brought to the newest schema."""
    from tasks.store import migrate  # Alembic is slow to import, and crawl nodes do without

    store = Store.open(settings.database_url)
    try:
        migrate.upgrade(store, MIGRATIONS)
        yield store
    finally:
        store.close()


def context(settings: Settings, catalog: Catalog) -> Context:
    """What the sweeps need."""
    loop = settings.loop()
    return Context(catalog, loop, HostBook(catalog), Random(settings.seed), SchedulerState(loop.strategy))


@asynccontextmanager
async def deps(
    settings: Settings,
    catalog: Catalog,
    robots: RobotsBook,
    send_times: SendTimes,
    seen: SeenPages,
    *,
    address: str | None,
) -> AsyncIterator[Dependencies]:
    """The tools of one node, its downloader bound to its own source address.

    Nodes that bind none share their machine's: to a host they are one client, with one `per_address_per_s`.
    """
    crawl = settings.crawl()
    hosts = HostBook(catalog)
    async with Downloader(
        user_agent=crawl.user_agent,
        clock=utc_now,
        local_address=address,
        lab=settings.lab,
        proxy=settings.proxy or None,
        trusts=hosts.may_be_private,
    ) as downloader:
        yield Dependencies(
            downloader,
            send_times,
            robots,
            hosts,
            address or settings.machine or platform.node(),
            crawl,
            utc_now,
            seen,
            sign_ins(settings, catalog, address=address, clock=utc_now) if signing(catalog) else None,
            pseudonyms(settings),
        )


def crawl_node(
    settings: Settings,
    catalog: Catalog,
    writer: Writer,
    node: Node,
    tools: Dependencies,
    on_free: Callable[[], None],
) -> CrawlNode:
    """A node, ready to be opened."""
    return CrawlNode(node, tools, catalog, writer, settings.loop().recall, on_free)


async def describe(writer: Writer, names: Sequence[str]) -> None:
    """Tell of nodes that run here what their machine is like; they work already, as trying the disk takes time."""
    parameters = await asyncio.to_thread(this_machine)
    await writer.run(lambda conn, _now: nodes.describe(conn, names, parameters))


async def robots_of(url: str, tools: Dependencies) -> RobotsRules:
    """What robots.txt of a URL's host says, asked with these tools."""
    fetcher = Fetcher(tools, Timing(time.monotonic), lambda _wait_s: None)
    return await fetcher.robots(url)


def utc_now() -> datetime:
    """The wall clock, for dates on pages (3小时前) and Retry-After; never for leases."""
    return datetime.now(UTC)
