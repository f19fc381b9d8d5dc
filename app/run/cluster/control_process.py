"""The scheduler's process in a cluster: opens its store, and the connections and functions that its sweeps use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from threading import Event
from typing import Any

from app.run import sweep_wiring, wiring
from app.run.cluster.redis_outage import LOSSES, RedisOutage
from app.run.nodes import browser_obstacle
from app.run.open_store import open_redis, open_store
from app.run.preflight import UnaskedSites, preflight
from app.run.setting_fields import Settings
from splitter.catalog.model import Catalog
from tasks.domain.grants import Grants
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs.celery_tasks import request_turn
from tasks.jobs.runtime import Opened
from tasks.store.content.pages import page_count, page_keys
from tasks.store.queue import tasks
from tasks.store.sql.database import Store
from tasks.store.sql.writer import Writer
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

_GRANTS_S = 1.0
"""Maximum seconds that a turn waits for Redis to report which request rates hosts grant."""
_LOOK_S = 0.2
"""Seconds between two looks of planning whether the process should end."""


@contextmanager
def open_control(settings: Settings, outage: RedisOutage) -> Iterator[Opened]:
    """Open what the tasks in queue `control` use, and close it at the end of the block.

    Args:
        outage: logs that Redis is away.
    """
    catalog, ending = settings.catalog(), Event()
    with open_store(settings) as store:
        writer = Writer(store)
        try:
            browser = partial(browser_obstacle, store)
            unasked = UnaskedSites(partial(preflight, settings, catalog, search=False, browser=browser))
            control = sweep_wiring.control(
                settings,
                catalog,
                store,
                writer,
                ending,
                write=store.write,
                plan=lambda: _plan(settings, store, writer, unasked, catalog, ending),
                fill_seen=lambda: asyncio.run(_fill_seen(settings, store)),
            )
            with _ask_grants(settings, control.context.host_names, outage) as grants:
                yield Opened(control=control, grants=grants)
        finally:
            writer.close()


async def _fill_seen(settings: Settings, store: Store) -> None:
    async with open_redis(settings) as redis:
        seen = RedisSeen(redis, asyncio.get_running_loop().time)
        await seen.rebuild(page_count(store), page_keys(store))


@contextmanager
def _ask_grants(
    settings: Settings, hosts: Collection[str], outage: RedisOutage
) -> Iterator[Callable[[], Grants]]:
    """Yield a function that asks Redis how many requests per second each host grants.

    One thread at a time may call it.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        redis = runner.run(stack.enter_async_context(open_redis(settings)))
        permits = RedisPermits(redis, time.monotonic)

        async def ask() -> Grants:
            try:
                async with asyncio.timeout(_GRANTS_S):
                    return await permits.get_grants(hosts)
            except LOSSES as error:
                outage.note_loss(error)
                return {}

        try:
            yield lambda: runner.run(ask())
        finally:
            runner.run(stack.aclose())


def _plan(
    settings: Settings, store: Store, writer: Writer, unasked: UnaskedSites, catalog: Catalog, ending: Event
) -> None:
    """Make the tasks of new products, then request a turn of the loop."""
    with store.read() as tx:
        late = unasked.due and bool(tasks.list_late_sites(tx))
        if not late and not tasks.list_unplanned(tx, 1):
            return
    if asyncio.run(_until_ending(ending, _make_tasks(settings, writer, unasked, catalog))):
        request_turn()


async def _until_ending(ending: Event, work: Coroutine[Any, Any, int]) -> int:
    """Return the result of `work`, or 0 if the process ends first, because hosts or Redis may take long to answer."""
    task = asyncio.create_task(work)
    while not task.done():
        if ending.is_set():
            task.cancel()
        await asyncio.wait([task], timeout=_LOOK_S)
    return 0 if task.cancelled() else task.result()


async def _make_tasks(settings: Settings, writer: Writer, unasked: UnaskedSites, catalog: Catalog) -> int:
    """Make the tasks of new products, and return the number of tasks.

    Opens connections for this call and closes them again.
    """
    async with open_redis(settings) as redis:
        permits = RedisPermits(redis, asyncio.get_running_loop().time)
        async with wiring.open_tools(
            settings, catalog, RobotsCache(writer), permits, SeenPages(None)
        ) as tools:
            return await sweep_wiring.make_tasks(writer, catalog, tools, unasked)
