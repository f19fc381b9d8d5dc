"""A Celery worker process: what it opens for its queues before it takes work, and closes after its last task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from threading import Lock
from typing import Any, Self

from celery import bootsteps
from redis.exceptions import RedisError

from app import wiring
from app.cluster.broker import open_redis
from app.config import Settings, from_environment
from app.summary import write_report
from splitter.catalog.model import Catalog
from splitter.errors import ReviewloopError
from tasks.domain.grants import Grants
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs import runtime
from tasks.jobs.celery_tasks import CONTROL, node_of
from tasks.jobs.runtime import Control
from tasks.store import products
from tasks.store.database import Store
from tasks.store.known_pages import page_count, page_keys
from tasks.store.writer import Writer
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages

log = logging.getLogger("reviewloop.worker")

_GRANTS_S = 1.0
"""A turn waits no longer for Redis to tell what hosts grant."""


class Runtime(bootsteps.StartStopStep):
    """Opens the scheduler for queue `control` and the crawl node for queue `crawl.NODE`.

    Started after the pool and before the consumer; stopped between them: no message comes any more, the pool's
    threads still wait for their attempts, and these can still be acknowledged.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._stack = ExitStack()

    def start(self, worker: Any) -> None:
        """Open. Ends the process with 2 where the settings are wrong, 1 where the database doesn't answer."""
        try:
            with ExitStack() as stack:
                self._open(worker, stack)
                self._stack = stack.pop_all()
        except (ReviewloopError, ValueError) as error:
            log.critical("%s", error)
            raise SystemExit(2) from None

    def stop(self, worker: Any) -> None:  # noqa: ARG002
        """Give leases back and close; a node takes at most `node_process.STOP_S`."""
        self._stack.close()

    terminate = stop

    def _open(self, worker: Any, stack: ExitStack) -> None:
        if not worker.pool_cls.__module__.endswith("thread"):
            raise ValueError("a worker's slots are threads of one process: start it with -P threads")
        queues = list(worker.app.amqp.queues.consume_from)
        node = node_of(queues)
        if node is None and CONTROL not in queues:
            raise ValueError(f"-Q {','.join(queues)}: a worker serves crawl.NODE, {CONTROL}, or both")
        settings = from_environment()
        if CONTROL in queues:
            runtime.opened.control = stack.enter_context(opened_control(settings))
        if node is not None:
            from app.cluster.node_process import NodeProcess

            opened = stack.enter_context(NodeProcess(settings, node, worker.concurrency))
            runtime.opened.crawl = opened.crawl


@contextmanager
def opened_control(settings: Settings) -> Iterator[Control]:
    """What the tasks of queue `control` work with, for as long as the block runs."""
    catalog = settings.catalog()
    with wiring.opened_store(settings) as store:
        writer = Writer(store)
        try:
            context = wiring.context(settings, catalog)
            with asyncio.Runner() as runner, _Grants(settings, context.host_names, runner) as grants:
                yield Control(
                    store=store,
                    context=context,
                    plan=partial(_plan_alone, settings, catalog, store, writer, Lock()),
                    report=partial(write_report, store, settings.report_file),
                    fill_seen=lambda: asyncio.run(_fill_seen(settings, store)),
                    grants=grants.ask,
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
        """What they grant; where Redis doesn't answer soon, nothing is known of any."""
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


def _plan_alone(settings: Settings, catalog: Catalog, store: Store, writer: Writer, planning: Lock) -> int:
    """Make the tasks of new products; returns how many. 0 where another thread is doing it."""
    with store.read() as conn:
        if not products.unplanned(conn, 1):
            return 0
    if not planning.acquire(blocking=False):
        return 0
    try:
        return asyncio.run(_plan(settings, catalog, writer))
    finally:
        planning.release()


async def _plan(settings: Settings, catalog: Catalog, writer: Writer) -> int:
    """Make them with tools of their own, on this event loop."""
    robots, seen = RobotsBook(writer), SeenPages(None)
    async with open_redis(settings) as redis:
        permits = RedisPermits(redis, asyncio.get_running_loop().time)
        async with wiring.deps(settings, catalog, robots, permits, seen, address=settings.address) as tools:
            return await wiring.make_tasks(writer, catalog, tools)
