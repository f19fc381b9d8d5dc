"""A crawl node in a Celery worker process. All its attempts run on one event loop in a background thread."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from functools import partial
from threading import Thread
from types import TracebackType

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.run import wiring
from app.run.cluster.pulse import EVERY_S, Pulse
from app.run.cluster.redis_outage import RedisOutage
from app.run.open_store import open_redis
from app.run.process import event_loop_runner
from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from splitter.catalog.model import Catalog
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.errors import StoreUnavailable, TaskError, WrongRevision
from tasks.domain.reasons import Reason, because
from tasks.fetching.redis_permits import RedisPermits
from tasks.jobs.celery_tasks import open_broker_connection, request_turn
from tasks.store.queue import attempts, nodes
from tasks.store.queue.leases import Lease
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store
from tasks.store.sql.schema import check_revision
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer
from tasks.worker.node import CrawlNode
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import BATCH, SeenPages

log = logging.getLogger("reviewloop.worker")

STOP_S = 10.0
"""Maximum seconds that a node may take to give its leases back. Remaining leases expire."""

_CLOSE_S = 2.0
_STOPS = because(Reason.WORKER_STOPS)
_LEASES_LEFT = "node %s could not give back all of its leases, they will run out"
_CONNECTIONS = 3
"""Number of concurrent transactions of a node, as the database may be far away."""
_TURN_EVERY_MS = 200
_TURN_KEY = "reviewloop:turn"


class NodeProcess:
    """The crawl node of this process, as a context manager. Any thread may call `crawl`.

    Args:
        settings: their address and kinds override those of the node's row in the database.
        slots: number of attempts that run at the same time, equal to the size of the pool.
        outage: logs that Redis is away.
    """

    def __init__(self, settings: Settings, name: str, slots: int, outage: RedisOutage) -> None:
        self._settings = settings
        self._name = name
        self._slots = slots
        self._outage = outage
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, CrawlNode]] = Future()
        self._thread = Thread(target=self._live, name=f"reviewloop-{name}", daemon=True)

    def __enter__(self) -> NodeProcess:
        """Open the node. If the background thread fails, raise its error."""
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the node. Running attempts are interrupted; the pages that they stored remain."""
        loop, end, _ = self._ready.result()
        loop.call_soon_threadsafe(end.set)
        self._thread.join(STOP_S + 3 * _CLOSE_S)

    def crawl(self, leases: Sequence[Lease]) -> None:
        """Hand leases to the node, which runs them on its event loop.

        Raises:
            TaskError: a lease belongs to another node, because its message came to the wrong queue.
        """
        others = sorted({lease.node for lease in leases} - {self._name})
        if others:
            raise TaskError(
                "leases of {others}, and this is {name}", others=", ".join(others), name=self._name
            )
        loop, _, node = self._ready.result()
        loop.call_soon_threadsafe(node.offer, leases)

    def _live(self) -> None:
        try:
            # Only the control worker upgrades the schema. To import that costs a node a tenth of its start.
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
        Thread(target=_open_broker, daemon=True).start()
        writer = Writer(store, most=self._settings.batch, connections=_CONNECTIONS)
        try:
            async with AsyncExitStack() as stack:
                redis = await stack.enter_async_context(open_redis(self._settings))
                turns = TurnRequests(redis, request_turn)
                serving = asyncio.create_task(_serve_turns(turns, redis))
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
        entries = wiring.entries_of_node(self._settings, catalog)
        try:
            row = await writer.run(partial(self._register, entries))
        except WrongRevision as error:
            raise InputError(
                "{error}; a worker with -Q control upgrades it at its start", error=error
            ) from None
        on_free()
        self._seen = SeenPages(
            RedisSeen(redis, time.monotonic, self._outage.note_loss),
            remembered=self._settings.remembered,
            batch=min(self._settings.batch, BATCH),
        )
        permits = RedisPermits(redis, time.monotonic, self._settings.crawl().longest_wait_s)
        own = self._settings.replace(address=row.address)
        shared = await stack.enter_async_context(wiring.open_shared_tools(own))
        shared.reader.start()
        tools = await stack.enter_async_context(
            wiring.open_tools(own, catalog, RobotsCache(writer), permits, self._seen, shared)
        )
        return wiring.open_node(own, row, tools, catalog, writer, on_free)

    def _register(self, entries: Mapping[str, str], tx: Transaction) -> Node:
        """Register the node, so that it gets leases.

        The address and kinds of this process override those of the node's row.
        """
        check_revision(tx, MIGRATIONS)
        row = nodes.find(tx, self._name) or Node(self._name, frozenset(Kind), self._slots)
        own, machine = self._settings, wiring.machine(self._settings)
        node = Node(self._name, own.kinds or row.kinds, self._slots, own.address or row.address, machine)
        # One process is one node: leases under way belong to a dead predecessor.
        if back := attempts.release_leases(tx, self._name, because(Reason.WORKER_KILLED)):
            log.warning(
                "node %s was killed: %d subtasks that it had under way are taken back", self._name, back
            )
        nodes.register(tx, node, entries)
        return node

    async def _stop(self, node: CrawlNode, writer: Writer) -> None:
        """Stop the node. Then release the leases that the node did not give back in time, or got while it stopped."""
        try:
            async with asyncio.timeout(STOP_S):
                await node.stop(_STOPS)
        except TimeoutError:
            log.warning("node %s did not stop within %g s", self._name, STOP_S)
        except Exception:
            log.exception("node %s did not stop in order", self._name)
        try:
            async with asyncio.timeout(_CLOSE_S):
                await writer.run(lambda tx: attempts.release_leases(tx, self._name, _STOPS))
        except (TimeoutError, StoreUnavailable) as error:
            reason = str(error) or f"nothing in {_CLOSE_S:g} s"
            log.warning(_LEASES_LEFT + ": %s", self._name, reason)
        except Exception:
            log.exception(_LEASES_LEFT, self._name)


async def _beating(pulse: Pulse) -> None:
    """Write the pulse until cancelled, on the event loop of the crawl, so that a blocked loop is noticed."""
    while True:
        pulse.beat()
        await asyncio.sleep(EVERY_S)


async def _serve_turns(turns: TurnRequests, redis: Redis) -> None:
    with suppress(RedisError):  # the first request reports it again
        await redis.ping()
    await turns.serve()


def _open_broker() -> None:
    try:
        open_broker_connection()
    except Exception:
        log.warning("the broker does not answer yet", exc_info=True)


class TurnRequests:
    """Asks the control worker for turns of the loop, at most a few times a second in the whole cluster.

    Args:
        redis: holds the mark of the last request.
        send: sends a request to the control worker. The call blocks for a moment.
    """

    def __init__(self, redis: Redis, send: Callable[[], None]) -> None:
        self._redis = redis
        self._send = send
        self._free = asyncio.Event()

    def ask(self) -> None:
        """Ask for a turn because a slot is free. Call it on the event loop."""
        self._free.set()

    async def serve(self) -> None:
        """Ask the scheduler for work until cancelled. If that fails, its next regular turn sees the free slot."""
        while True:
            await self._free.wait()
            self._free.clear()
            try:
                await self._turn()
            except Exception:
                log.warning("no turn could be asked for", exc_info=True)

    async def _turn(self) -> None:
        if not await self._ours():
            # That request may be older than our free slot. A later request by any node has the same effect.
            await asyncio.sleep(_TURN_EVERY_MS / 1000)
            if not await self._ours():
                return
        await asyncio.to_thread(self._send)

    async def _ours(self) -> bool:
        return bool(await self._redis.set(_TURN_KEY, "asked for", nx=True, px=_TURN_EVERY_MS))
