"""A crawl node: runs leases on its slots, sends heartbeats, and stops without losing anything."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice, repeat
from types import MappingProxyType

from splitter.catalog.entries import NO_BROWSER
from splitter.catalog.model import Catalog

from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.failures import FailureReason
from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.after_attempt import after_attempt
from tasks.scheduling.recall import RecallSettings
from tasks.store.queue import attempts, leases, nodes
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close
from tasks.store.queue.leases import Lease
from tasks.store.queue.nodes import CLOCK_S, Heartbeat, Node
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer
from tasks.worker.attempt import Attempt
from tasks.worker.fetcher import Dependencies
from tasks.worker.slots import Slots

log = logging.getLogger("reviewloop.node")

HEARTBEAT_S = 5.0
# The first ones follow each other closely: allocation waits to learn what a new node can do.
_FIRST_BEATS_S = (0.5, 0.5, 1.0, 1.0, 2.0)
_STARVING_BEAT_S = 2.0
_ASKING_BEATS = 6
"""Heartbeats in a row with which a node without work asks for some; after them it waits for the scheduler's sweep."""
# A node whose attempts wait for permits can take more of them. It reports that at the earliest this long after its
# last heartbeat.
_SOONEST_BEAT_S = 0.5
_WINDOW_S = 60.0
# Maximum number of leases begun ahead of a free slot, per slot: their targets come from the database, maybe far away.
_MOST_AHEAD = 8
_SMOOTHING = 0.125


@dataclass(slots=True)
class Throughput:
    """Attempts ended per second: the mean over a fixed window.

    Attributes:
        ended: when each attempt of the window ended, on the node's clock.
    """

    started_at: float
    ended: deque[float] = field(default_factory=deque)

    def count(self, now: float) -> None:
        """Record the end of an attempt."""
        self.ended.append(now)

    def per_second(self, now: float) -> float:
        """Attempts per second of the window that has passed so far, at most `_WINDOW_S`."""
        while self.ended and self.ended[0] <= now - _WINDOW_S:
            self.ended.popleft()
        return len(self.ended) / max(1.0, min(_WINDOW_S, now - self.started_at))


class CrawlNode:
    """Runs attempts for one node. All methods belong to one event loop.

    While an attempt only waits, another lease is begun in its slot (`tasks.worker.slots`).

    Args:
        on_free: called whenever a slot becomes free: the runner then asks for a turn of the loop.
        entries: of the catalog, as hashes (`splitter.catalog.entries`).
    """

    def __init__(
        self,
        node: Node,
        deps: Dependencies,
        catalog: Catalog,
        writer: Writer,
        rules: RecallSettings,
        on_free: Callable[[], None],
        *,
        entries: Mapping[str, str] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.node = node
        self._deps = deps
        self._catalog = catalog
        self._writer = writer
        self._rules = rules
        self._on_free = on_free
        self._entries = entries
        self._clock = clock
        self._throughput = Throughput(clock())
        self._slots = Slots(node.slots, self._idle)
        self._beginning = 0
        self._start_s = 0.0  # from asking for a lease's targets to having them, smoothed
        self._waiting: dict[str, Lease] = {}
        self._running: dict[str, Attempt] = {}
        self._refused: set[str] = set()  # leases that are being given back
        self._tasks: set[asyncio.Task[None]] = set()
        self._pulse: asyncio.Task[None] | None = None
        self._more_idle = asyncio.Event()  # set when more attempts only wait than at the last heartbeat
        self._reported_idle = 0
        self._beats_without_work = 0
        self._stopping = False
        self._logged_off_s = 0.0
        self.drained = False

    def open(self) -> None:
        """Begin the heartbeat of a node that is registered."""
        self._pulse = asyncio.create_task(self._beat())

    def offer(self, leases: Iterable[Lease]) -> None:
        """Take leases that a notification brought. Those that the node has already are skipped."""
        for lease in leases:
            if lease.token not in self._running and self._knows(lease):
                self._waiting[lease.token] = lease
        self._begin_more()

    def _knows(self, lease: Lease) -> bool:
        """Return True if node and lease have the same catalog entry of the site; else the lease goes back."""
        entry = self._entries.get(lease.site, "")
        if lease.site in self._catalog.sites and (not entry or not lease.entry or entry == lease.entry):
            return True
        if lease.token not in self._refused:
            self._refused.add(lease.token)
            why = self._why_refused(lease.site)
            log.error("%s: restart it with the scheduler's catalog, or with a browser", why)
            task = asyncio.get_running_loop().create_task(self._refuse(lease, why))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return False

    def _why_refused(self, site: str) -> Explanation:
        lacks_browser = self._entries.get(site) == NO_BROWSER
        kind = Reason.NODE_LACKS_BROWSER if lacks_browser else Reason.ENTRY_DIFFERS
        return because(kind, node=self.node.name, site=site)

    async def _refuse(self, lease: Lease, why: Explanation) -> None:
        try:
            await self._writer.run(lambda tx: attempts.release(tx, {lease: why}))
        except Exception:
            log.exception("node %s: giving back attempt %s", self.node.name, lease.attempt_id)
        self._refused.discard(lease.token)

    @property
    def out_of_work(self) -> bool:
        """True while it has nothing to do and nothing prefetched."""
        return not self._running and not self._waiting

    async def stop(self, why: Explanation) -> None:
        """Give back what was not started, interrupt what runs (its pages are kept), and leave."""
        self._stopping = True
        if self._pulse is not None:
            self._pulse.cancel()
            await asyncio.gather(self._pulse, return_exceptions=True)
        # Before anything is given back: allocation would give it to this node again.
        await self._writer.run(lambda tx: nodes.leave(tx, self.node.name))
        await self._give_all_back(why)
        for attempt in list(self._running.values()):
            attempt.interrupt(why)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def abandon(self) -> None:
        """End at once: nothing can be stored any more, so nothing is given back."""
        self._stopping = True
        ending = [*self._tasks, *([self._pulse] if self._pulse is not None else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    # --- slots ----------------------------------------------------------------------------------------------

    def _begin_more(self) -> None:
        """Begin leases for the slots that are free, and for those that will be once the leases' targets are there."""
        if not self._waiting or self._stopping or self.drained:
            return
        ahead = int(self._throughput.per_second(self._clock()) * self._start_s)
        capacity = self._slots.free + min(ahead, _MOST_AHEAD * self.node.slots) - self._beginning
        for token in list(islice(self._waiting, max(0, capacity))):
            self._begin(self._waiting.pop(token))
        if not self._waiting:
            self._on_free()

    def _begin(self, lease: Lease) -> None:
        began = self._clock()
        self._beats_without_work = 0

        def has_begun() -> None:
            self._beginning -= 1
            self._start_s += _SMOOTHING * (self._clock() - began - self._start_s)

        loop = asyncio.get_running_loop()
        try:
            attempt = Attempt(
                lease,
                self._deps,
                self._catalog,
                self._writer,
                self._rules,
                self._slots,
                has_begun,
                clock=self._clock,
            )
        except Exception as error:
            log.exception("node %s: attempt %s could not begin", self.node.name, lease.attempt_id)
            task = loop.create_task(self._close_broken(lease, error))
        else:
            self._beginning += 1
            self._running[lease.token] = attempt
            task = loop.create_task(self._run(attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _idle(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin_more)
        elif sum(attempt.waits for attempt in self._running.values()) > self._reported_idle:
            self._more_idle.set()

    async def _run(self, attempt: Attempt) -> None:
        lease, ours = attempt.lease, True
        try:
            ours = await attempt.run()
        except Exception as error:
            log.exception(
                "node %s: attempt %s of subtask %s", self.node.name, lease.attempt_id, lease.subtask_id
            )
            await self._close_broken(lease, error)
        finally:
            del self._running[lease.token]
            if ours:  # a lease that went to another node is not counted as ended here
                self._throughput.count(self._clock())
            self._begin_more()
            self._on_free()

    # --- heartbeat ------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        for pause_s in chain(_FIRST_BEATS_S, repeat(HEARTBEAT_S)):
            await self._heartbeat()
            starves = bool(self._running) and not self._waiting
            await asyncio.sleep(_SOONEST_BEAT_S)
            longest_s = min(pause_s, _STARVING_BEAT_S) if starves else pause_s
            with suppress(TimeoutError):
                async with asyncio.timeout(longest_s - _SOONEST_BEAT_S):
                    await self._more_idle.wait()

    async def _heartbeat(self) -> None:
        rate = self._throughput.per_second(self._clock())
        waiting = [attempt for attempt in self._running.values() if attempt.waits]
        storing = sum(attempt.stores for attempt in waiting)
        self._more_idle.clear()
        self._reported_idle = len(waiting)
        backlog, idle = len(self._waiting), len(waiting)

        def beat(tx: Transaction) -> tuple[bool, list[Lease]]:
            load = Heartbeat(rate, backlog, idle, storing, self._clock_off(tx.now))
            drained = nodes.record_heartbeat(tx, self.node.name, load)
            return drained, leases.list_unstarted(tx, self.node.name)

        asked = set(self._waiting)
        try:
            self.drained, unstarted = await self._writer.run(beat)
            if self.drained:
                await self._give_all_back(because(Reason.NODE_DRAINED))
            else:
                self._reconcile(unstarted, asked)
                self._beats_without_work += not (self._waiting or self._running)
                if not self._waiting and self._beats_without_work <= _ASKING_BEATS:
                    self._on_free()
        except Exception:
            # A database that is away for a while must not end the node: leases run out by themselves.
            log.exception("node %s: heartbeat", self.node.name)

    def _clock_off(self, now: datetime) -> float:
        """Return the seconds that this machine's clock is ahead of the database's. A large change is logged."""
        off_s = (self._deps.now() - now).total_seconds()
        if abs(off_s - self._logged_off_s) > CLOCK_S:
            self._logged_off_s = off_s
            log.warning("node %s: the clock here is %+.0f s off the database's", self.node.name, off_s)
        return off_s

    def _reconcile(self, unstarted: Sequence[Lease], asked: Collection[str]) -> None:
        """Begin what the store has for this node and no notification brought; drop what was taken back meanwhile.

        Args:
            asked: tokens of the leases that were waiting when the store was read; later ones are not in it.
        """
        for token in set(asked) - {lease.token for lease in unstarted}:
            self._waiting.pop(token, None)
        self.offer(unstarted)

    async def _give_all_back(self, why: Explanation) -> None:
        """Give back every lease that was not started, including those whose notification has not come."""
        self._waiting.clear()

        def release(tx: Transaction) -> None:
            attempts.release(tx, dict.fromkeys(leases.list_unstarted(tx, self.node.name), why))

        await self._writer.run(release)

    async def _close_broken(self, lease: Lease, error: Exception) -> None:
        while isinstance(error, ExceptionGroup):  # of the lanes; the error inside is what counts
            error = error.exceptions[0]
        report = AttemptReport(
            counters=Counters(),
            reason=FailureReason.NODE_ERROR,
            note=because(Reason.NODE_FAILED, error=type(error).__name__, text=str(error)[:500]),
        )
        try:
            await self._writer.soon(
                CLOSE_ATTEMPTS, Close(lease, report, partial(after_attempt, rules=self._rules))
            )
        except Exception:
            log.exception("node %s: closing attempt %s", self.node.name, lease.attempt_id)
