"""A crawl node in a Celery worker process: one event loop in a background thread, on which all its attempts run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from threading import Thread
from types import TracebackType

from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from app.run import wiring
from app.run.cluster.pulse import EVERY_S, Pulse
from app.run.open_store import open_redis
from app.run.process import event_loop_runner
from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from splitter.catalog.model import Catalog
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.errors import TaskError, WrongRevision
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs.celery_tasks import open_broker_connection, request_turn
from tasks.store.queue import closing, nodes
from tasks.store.queue.leases import Lease
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store
from tasks.store.sql.schema import check_revision
from tasks.store.sql.writer import Writer
from tasks.worker.node import CrawlNode
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import BATCH, SeenPages

log = logging.getLogger("reviewloop.worker")

STOP_S = 10.0
"""Longest time a node may take to give its leases back; then they run out by themselves."""

_CLOSE_S = 2.0
_STOPS = "the worker stops"
_CONNECTIONS = 3
"""Transactions of a node under way at once: the database may be far away."""
_TURN_EVERY_MS = 200
_TURN_KEY = "reviewloop:turn"


class NodeProcess:
    """This process's node; a context manager. `crawl` may be called from any thread.

    Args:
        settings: address and kinds here come before the node's row.
        name: of the node.
        slots: attempts at work at once: the pool's size.
    """

    def __init__(self, settings: Settings, name: str, slots: int) -> None:
        self._settings = settings
        self._name = name
        self._slots = slots
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, CrawlNode]] = Future()
        self._thread = Thread(target=self._live, name=f"reviewloop-{name}", daemon=True)

    def __enter__(self) -> NodeProcess:
        """Open the node. Raises what opening raised."""
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the node; attempts that run are interrupted, what they stored is kept."""
        loop, end, _ = self._ready.result()
        loop.call_soon_threadsafe(end.set)
        self._thread.join(STOP_S + 3 * _CLOSE_S)

    def crawl(self, leases: Sequence[Lease]) -> None:
        """Hand leases to the node; they run on its event loop.

        Raises:
            TaskError: a lease is another node's: its message came to the wrong queue.
        """
        others = sorted({lease.node for lease in leases} - {self._name})
        if others:
            raise TaskError(f"leases of {', '.join(others)}, and this is {self._name}")
        loop, _, node = self._ready.result()
        loop.call_soon_threadsafe(node.offer, leases)

    def _live(self) -> None:
        try:
            # Bringing the schema up is the control worker's part; to import it costs a node a tenth of its start.
            store = Store.open(self._settings.database_url)
            try:
                with event_loop_runner() as runner:
                    runner.run(self._serve(store))
            finally:
                store.close()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                log.exception("node %s", self._name)

    async def _serve(self, store: Store) -> None:
        end = asyncio.Event()
        beating = asyncio.create_task(_beating(Pulse(self._settings.pulse_file)))
        catalog = self._settings.catalog()
        # Servers that may be far away are connected to at the same time.
        Thread(target=_be_ready_to_ask, daemon=True).start()
        writer = Writer(store, most=self._settings.batch, connections=_CONNECTIONS)
        try:
            async with AsyncExitStack() as stack:
                redis = await stack.enter_async_context(open_redis(self._settings))
                turns = TurnRequests(redis, request_turn)
                serving = asyncio.create_task(_served(turns, redis))
                node = await self._open(stack, catalog, writer, redis, turns.ask)
                self._ready.set_result((asyncio.get_running_loop(), end, node))
                describing = asyncio.create_task(wiring.describe(writer, [self._name]))
                await end.wait()
                serving.cancel()
                describing.cancel()
                await self._stop(node, writer)
                beating.cancel()
                with suppress(TimeoutError):  # Redis may be away
                    async with asyncio.timeout(_CLOSE_S):
                        await self._seen.close()
        finally:
            # A writer that waits for a database that doesn't answer is left behind.
            last = Thread(target=writer.close, daemon=True)
            last.start()
            last.join(_CLOSE_S)

    async def _open(
        self,
        stack: AsyncExitStack,
        catalog: Catalog,
        writer: Writer,
        redis: Redis,
        on_free: Callable[[], None],
    ) -> CrawlNode:
        try:
            entries = wiring.entries_of_node(self._settings, catalog)
            row = await writer.run(partial(self._registered, entries))
        except (ProgrammingError, WrongRevision) as error:
            told = (
                error
                if isinstance(error, WrongRevision)
                else f"its tables are of another version: {error.orig}"
            )
            raise InputError(f"{told}; a worker with -Q control does so at its start") from None
        on_free()
        self._seen = SeenPages(
            RedisSeen(redis, time.monotonic),
            remembered=self._settings.remembered,
            batch=min(self._settings.batch, BATCH),
        )
        permits = RedisPermits(redis, time.monotonic, self._settings.crawl().longest_wait_s)
        tools = await stack.enter_async_context(
            wiring.deps(
                self._settings,
                catalog,
                RobotsCache(writer),
                permits,
                self._seen,
                address=row.address,
                requests=stack.enter_context(wiring.request_log(self._settings)),
            )
        )
        tools.reader.start()
        recall = self._settings.loop().recall
        node = CrawlNode(row, tools, catalog, writer, recall, on_free, entries=entries)
        node.open()
        return node

    def _registered(self, entries: Mapping[str, str], conn: Connection, now: datetime) -> Node:
        """Register the node, by its row and this process's settings over it; from now on it may be given leases."""
        check_revision(conn, MIGRATIONS)
        row = nodes.find(conn, self._name) or Node(self._name, frozenset(Kind), self._slots)
        kinds = self._settings.kinds or row.kinds
        node = Node(
            self._name,
            kinds,
            self._slots,
            self._settings.address or row.address,
            wiring.machine(self._settings),
        )
        # One process is one node: what it has under way is a dead predecessor's.
        if back := closing.release_leases(conn, now, self._name, "its process was killed"):
            log.warning(
                "node %s was killed: %d subtasks that it had under way are taken back", self._name, back
            )
        nodes.register(conn, now, node, entries)
        return node

    async def _stop(self, node: CrawlNode, writer: Writer) -> None:
        """Let the node stop; then take back what it was too slow to give back, or was given meanwhile."""
        try:
            async with asyncio.timeout(STOP_S):
                await node.stop(_STOPS)
        except Exception:
            log.exception("node %s did not stop in order", self._name)
        try:
            async with asyncio.timeout(_CLOSE_S):
                await writer.run(lambda conn, now: closing.release_leases(conn, now, self._name, _STOPS))
        except Exception:
            log.exception("node %s could not give back all of its leases: they will run out", self._name)


async def _beating(pulse: Pulse) -> None:
    """Beat until cancelled: the loop that crawls says by itself that it is not held."""
    while True:
        pulse.beat()
        await asyncio.sleep(EVERY_S)


async def _served(turns: TurnRequests, redis: Redis) -> None:
    with suppress(RedisError):  # the first turn will meet it again
        await redis.ping()
    await turns.serve()


def _be_ready_to_ask() -> None:
    try:
        open_broker_connection()
    except Exception:
        log.warning("the broker does not answer yet", exc_info=True)


class TurnRequests:
    """Requests turns of the loop from the control worker, a few a second in the whole cluster at most.

    Args:
        redis: holds the mark of the last turn asked for.
        send: asks the control worker; blocks for a moment.
    """

    def __init__(self, redis: Redis, send: Callable[[], None]) -> None:
        self._redis = redis
        self._send = send
        self._free = asyncio.Event()

    def ask(self) -> None:
        """Request a turn, as a slot is free; call it on the event loop."""
        self._free.set()

    async def serve(self) -> None:
        """Ask until cancelled. A turn that cannot be asked for is the next sweep's."""
        while True:
            await self._free.wait()
            self._free.clear()
            try:
                await self._turn()
            except Exception:
                log.warning("no turn could be asked for", exc_info=True)

    async def _turn(self) -> None:
        if not await self._ours():
            # It may have been asked for before our slot was free; one asked for after it serves us too.
            await asyncio.sleep(_TURN_EVERY_MS / 1000)
            if not await self._ours():
                return
        await asyncio.to_thread(self._send)

    async def _ours(self) -> bool:
        return bool(await self._redis.set(_TURN_KEY, "asked for", nx=True, px=_TURN_EVERY_MS))
