"""Resources of the scheduler's process in a cluster: the store, and what its sweeps run on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from typing import Any, Self

from redis.exceptions import RedisError

from app.reports.scheduled_files import deliver_due
from app.reports.summary import write_report
from app.run import open_store, wiring
from app.run.cluster.broker import open_redis
from app.run.node_browsers import browser_of_nodes
from app.run.preflight import Askable, preflight
from app.run.setting_fields import Settings
from splitter.catalog.model import Catalog
from tasks.domain.grants import Grants
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs.runtime import Control
from tasks.store import products, unplanned_sites
from tasks.store.database import Store
from tasks.store.known_pages import page_count, page_keys
from tasks.store.writer import Writer
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

log = logging.getLogger("reviewloop.worker")

_GRANTS_S = 1.0
"""A turn waits no longer for Redis to tell what hosts grant."""
_LOOK_S = 0.2
"""So often planning looks whether the process is to end."""


@contextmanager
def opened_control(settings: Settings) -> Iterator[Control]:
    """The context of the tasks in queue `control`, for as long as the block runs."""
    catalog, ending = settings.catalog(), Event()

    def goes_on() -> bool:
        return not ending.is_set()

    with open_store.opened_store(settings) as store:
        writer = Writer(store)
        try:
            context = wiring.context(settings, catalog)
            browser = partial(browser_of_nodes, store)
            askable = Askable(partial(preflight, settings, catalog, search=False, browser=browser))
            planning = _Planning(catalog, askable, Lock(), goes_on)
            with asyncio.Runner() as runner, _Grants(settings, context.host_names, runner) as grants:
                yield Control(
                    store=store,
                    context=context,
                    plan=partial(_plan_alone, settings, store, writer, planning),
                    report=partial(write_report, store, settings.report_file),
                    deliver=partial(
                        deliver_due, wiring.delivery_tools(settings), store, writer.call, goes_on
                    ),
                    fill_seen=lambda: asyncio.run(_fill_seen(settings, store)),
                    grants=grants.ask,
                    alerts=partial(
                        wiring.alerting(settings, catalog, context.hosts, goes_on).look, writer.call
                    ),
                    ending=ending,
                )
        finally:
            writer.close()


async def _fill_seen(settings: Settings, store: Store) -> None:
    async with open_redis(settings) as redis:
        seen = RedisSeen(redis, asyncio.get_running_loop().time)
        await seen.rebuild(page_count(store), page_keys(store))


class _Grants:
    """Asks Redis what hosts grant, over one connection; a context manager, for one thread at a time.

    Args:
        hosts: which ones.
        runner: of the event loop the connection belongs to.
    """

    def __init__(self, settings: Settings, hosts: Collection[str], runner: asyncio.Runner) -> None:
        self._settings = settings
        self._hosts = hosts
        self._runner = runner
        self._stack = AsyncExitStack()
        self._permits: RedisPermits | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._stack.aclose())

    def ask(self) -> Grants:
        """The hosts' grants; empty where Redis doesn't answer soon."""
        return self._runner.run(self._ask())

    async def _ask(self) -> Grants:
        try:
            async with asyncio.timeout(_GRANTS_S):
                if self._permits is None:
                    redis = await self._stack.enter_async_context(open_redis(self._settings))
                    self._permits = RedisPermits(redis, asyncio.get_running_loop().time)
                return await self._permits.granted(self._hosts)
        except (RedisError, TimeoutError) as error:
            log.warning("what hosts grant is not known: %s", error or "Redis does not answer")
            return {}


@dataclass(frozen=True, slots=True)
class _Planning:
    """The inputs of planning, the lock that keeps it to one thread at a time, and whether it may go on."""

    catalog: Catalog
    askable: Askable
    lock: Lock
    goes_on: Callable[[], bool]


def _plan_alone(settings: Settings, store: Store, writer: Writer, planning: _Planning) -> int:
    """Make the tasks of new products; returns how many. 0 where another thread is doing it."""
    with store.read() as conn:
        late = planning.askable.due and bool(unplanned_sites.sites(conn))
        if not late and not products.unplanned(conn, 1):
            return 0
    if not planning.lock.acquire(blocking=False):
        return 0
    try:
        return asyncio.run(_while(planning.goes_on, _plan(settings, planning, writer)))
    finally:
        planning.lock.release()


async def _while(goes_on: Callable[[], bool], work: Coroutine[Any, Any, int]) -> int:
    """The result of work that is cancelled once it may not go on; 0 then: hosts or Redis may take long to answer."""
    task = asyncio.create_task(work)
    while not task.done():
        if not goes_on():
            task.cancel()
        await asyncio.wait([task], timeout=_LOOK_S)
    return 0 if task.cancelled() else task.result()


async def _plan(settings: Settings, planning: _Planning, writer: Writer) -> int:
    """Make them with tools of their own, on this event loop."""
    robots, seen = RobotsCache(writer), SeenPages(None)
    async with open_redis(settings) as redis:
        permits = RedisPermits(redis, asyncio.get_running_loop().time)
        async with wiring.deps(
            settings, planning.catalog, robots, permits, seen, address=settings.address
        ) as tools:
            return await wiring.make_tasks(writer, planning.catalog, tools, planning.askable)
