"""The scheduler's process: what the tasks of queue `control` work with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from app import wiring
from app.cluster.broker import open_redis
from app.config import Settings
from app.summary import write_report
from splitter.catalog.model import Catalog
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs import planning
from tasks.jobs.runtime import Control
from tasks.store import products
from tasks.store.database import Store
from tasks.store.known_pages import page_count, page_keys
from tasks.store.writer import Writer
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages


@contextmanager
def opened_control(settings: Settings) -> Iterator[Control]:
    """The scheduler's parts, for as long as the block runs."""
    catalog = settings.catalog()
    with wiring.opened_store(settings) as store:
        writer = Writer(store)
        try:
            planner = Planner(settings, catalog, store, writer)

            def report() -> None:
                if settings.report_file:
                    write_report(store, settings.report_file)

            def fill_seen() -> None:
                asyncio.run(_fill_seen(settings, store))

            yield Control(store, wiring.context(settings, catalog), planner.plan, report, fill_seen)
        finally:
            writer.close()


async def _fill_seen(settings: Settings, store: Store) -> None:
    async with open_redis(settings) as redis:
        seen = RedisSeen(redis, asyncio.get_running_loop().time)
        await seen.rebuild(page_count(store), page_keys(store))


class Planner:
    """Makes the tasks of new products; asks robots.txt with tools of its own, on an event loop of its own."""

    def __init__(self, settings: Settings, catalog: Catalog, store: Store, writer: Writer) -> None:
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._writer = writer
        self._planning = Lock()

    def plan(self) -> int:
        """Plan what is there; returns how many tasks were made. Nothing where another thread is at it."""
        with self._store.read() as conn:
            if not products.unplanned(conn, 1):
                return 0
        if not self._planning.acquire(blocking=False):
            return 0
        try:
            return asyncio.run(self._plan())
        finally:
            self._planning.release()

    async def _plan(self) -> int:
        async with (
            open_redis(self._settings) as redis,
            wiring.deps(
                self._settings,
                self._catalog,
                RobotsBook(self._writer),
                RedisPermits(redis, asyncio.get_running_loop().time),
                SeenPages(None),
                address=self._settings.address,
            ) as tools,
        ):
            return await planning.plan(
                self._writer,
                self._catalog,
                lambda url: wiring.robots_of(url, tools),
                tools.settings.robots_token,
            )
