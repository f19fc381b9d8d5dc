"""A crawl node: runs leases on its slots, says that it lives, and stops without losing anything."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from splitter.catalog.model import Catalog
from sqlalchemy import Connection

from tasks.crawl.attempt import Attempt
from tasks.crawl.fetching import Kit
from tasks.model import Reason
from tasks.store import endings, leases, nodes
from tasks.store.endings import Report
from tasks.store.leases import Counters, Lease
from tasks.store.nodes import Node
from tasks.store.writer import Writer
from tasks.strategies.recall import RecallSettings

log = logging.getLogger("reviewloop.node")

HEARTBEAT_S = 5.0
_WINDOW_S = 60.0


@dataclass(slots=True)
class Throughput:
    """Attempts ended per second: the mean over a fixed window.

    Attributes:
        ended: when each attempt of the window ended, on the node's clock.
    """

    started_at: float
    ended: deque[float] = field(default_factory=deque)

    def count(self, now: float) -> None:
        """One more attempt ended."""
        self.ended.append(now)

    def per_second(self, now: float) -> float:
        """Attempts per second of the window that has passed so far, at most `_WINDOW_S`."""
        while self.ended and self.ended[0] <= now - _WINDOW_S:
            self.ended.popleft()
        return len(self.ended) / max(1.0, min(_WINDOW_S, now - self.started_at))


class CrawlNode:
    """Runs attempts for one node. All methods belong to one event loop.

    Args:
        on_free: called whenever a slot becomes free (the runner then lets allocation run).
    """

    def __init__(
        self,
        node: Node,
        kit: Kit,
        catalog: Catalog,
        writer: Writer,
        rules: RecallSettings,
        on_free: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.node = node
        self._kit = kit
        self._catalog = catalog
        self._writer = writer
        self._rules = rules
        self._on_free = on_free
        self._clock = clock
        self._throughput = Throughput(clock())
        self._running: dict[str, Attempt] = {}
        self._waiting: deque[Lease] = deque()
        self._more = asyncio.Event()
        self._pulse: asyncio.Task[None] | None = None
        self._slots: list[asyncio.Task[None]] = []
        self._stopping = False
        self.drained = False

    async def open(self) -> None:
        """Register the node and begin its heartbeat."""
        await self._writer.run(lambda conn, now: nodes.register(conn, now, self.node))
        self._pulse = asyncio.create_task(self._beat())

    def serve(self) -> None:
        """Begin to take what `offer` brings, on every slot (embedded: the node keeps its own buffer)."""
        self._slots = [asyncio.create_task(self._slot()) for _ in range(self.node.slots)]

    def offer(self, lease: Lease) -> None:
        """The doorbell: a lease for this node."""
        self._waiting.append(lease)
        self._more.set()

    async def run(self, lease: Lease) -> bool:
        """Run one lease to its end; False where it was not ours to run."""
        if self._stopping or self.drained:
            await self._give_back(lease, "the node is drained")
            return False
        attempt = Attempt(lease, self._kit, self._catalog, self._writer, self._rules, clock=self._clock)
        self._running[lease.token] = attempt
        try:
            return await attempt.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception(
                "node %s: attempt %s of subtask %s", self.node.name, lease.attempt_id, lease.subtask_id
            )
            return await self._close_broken(lease, error)
        finally:
            del self._running[lease.token]
            self._throughput.count(self._clock())
            self._on_free()

    async def stop(self, why: str) -> None:
        """Give back what was not started, interrupt what runs (its pages are kept), and leave."""
        self._stopping = True
        await _ended([self._pulse] if self._pulse else [])
        # Before anything is given back: allocation would give it to this node again.
        await self._writer.run(lambda conn, _now: nodes.leave(conn, self.node.name))
        await self._give_all_back(why)
        for attempt in list(self._running.values()):
            attempt.interrupt(why)
        while self._running:
            await asyncio.sleep(0.01)
        await _ended(self._slots)

    async def _slot(self) -> None:
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            await self.run(self._waiting.popleft())

    async def _beat(self) -> None:
        while True:
            await self._heartbeat()
            await asyncio.sleep(HEARTBEAT_S)

    async def _heartbeat(self) -> None:
        rate = self._throughput.per_second(self._clock())
        backlog = len(self._waiting) + len(self._running)
        try:
            self.drained = await self._writer.run(
                lambda conn, now: nodes.heartbeat(
                    conn, now, self.node.name, attempts_per_s=rate, backlog=backlog
                )
            )
            if self.drained:
                await self._give_all_back("the node is drained")
        except Exception:
            # A database that is away for a while must not end the node: leases run out by themselves.
            log.exception("node %s: heartbeat", self.node.name)

    async def _give_all_back(self, why: str) -> None:
        """Give back every lease that was not started, those whose doorbell has not been heard included."""
        self._waiting.clear()

        def release(conn: Connection, now: datetime) -> None:
            for lease in leases.unstarted_of(conn, self.node.name):
                endings.release(conn, now, lease, why)

        await self._writer.run(release)

    async def _give_back(self, lease: Lease, why: str) -> None:
        await self._writer.run(lambda conn, now: endings.release(conn, now, lease, why))

    async def _close_broken(self, lease: Lease, error: Exception) -> bool:
        report = Report(Counters(), Reason.NODE_ERROR, note=f"{type(error).__name__}: {error}"[:500])
        try:
            return await self._writer.run(lambda conn, now: endings.close(conn, now, lease, report))
        except Exception:
            log.exception("node %s: closing attempt %s", self.node.name, lease.attempt_id)
            return False


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
