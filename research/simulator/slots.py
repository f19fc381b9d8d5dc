"""The slots of one node: how many attempts it may be given, and, where they may wait for permits, who shares them.

As on a node (`tasks.worker.slots`), an attempt that waits for a permit holds no slot, and goes on at the permit's time
whether one is free or not. Where a scenario's slots stand for what the node can do (`shared_slots`), and more attempts
are at work than it has slots, all of them work more slowly, so that it never does more than `slots` seconds of work in
a second (processor sharing).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from research.simulator.attempts import Events
from research.simulator.world import MOST_ATTEMPTS, Node


class NodeState:
    """A node: whether it is `alive`, whether strategies still see it (`shown`), and how many leases it has."""

    __slots__ = ("alive", "leases", "node", "shown")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.leases = 0
        self.alive = self.shown = False

    def free(self, waiting: int) -> int:
        """Attempts that strategies may give it; those that only wait hold no slot (`tasks.store.queue.snapshot`).

        Args:
            waiting: its attempts that only wait.
        """
        slots = self.node.spec.slots
        return max(0, min(slots + waiting, MOST_ATTEMPTS * slots) - self.leases)


class SharedSlots:
    """Work under way on one node.

    Args:
        events: virtual time.
        slots: of the node; infinite where attempts at work don't share them.
    """

    def __init__(self, events: Events, slots: float) -> None:
        self._events = events
        self._slots = slots
        self._work: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._serial = 0
        self._stuck = 0
        self._done_s = 0.0  # that a piece of work would have got since the beginning
        self._since_s = 0.0
        self._announced = 0

    def begin(self, seconds: float, call: Callable[[Any], None], what: object) -> None:
        """Begin a piece of work of so many seconds of a slot; `call(what)` once it is done."""
        self._settle()
        self._serial += 1
        heappush(self._work, (self._done_s + seconds, self._serial, call, what))
        self._announce()

    def stick(self, attempts: int) -> None:
        """So many attempts more hold a slot without an end of their own; negative: fewer."""
        self._settle()
        self._stuck += attempts
        self._announce()

    def stop(self) -> None:
        """Drop all that is under way: it will not be done."""
        self._settle()
        self._work.clear()
        self._announce()

    def _speed(self) -> float:
        at_work = len(self._work) + self._stuck
        return 1.0 if at_work <= self._slots else self._slots / at_work

    def _settle(self) -> None:
        now = self._events.now
        self._done_s += (now - self._since_s) * self._speed()
        self._since_s = now

    def _announce(self) -> None:
        """Announce the next end; earlier announcements hold no longer."""
        self._announced += 1
        if self._work:
            left_s = max(0.0, self._work[0][0] - self._done_s) / self._speed()
            self._events.at(self._events.now + left_s, self._end, self._announced)

    def _end(self, announced: int) -> None:
        if announced != self._announced:
            return
        self._settle()
        end_s, _, call, what = heappop(self._work)
        self._done_s = end_s  # rounding errors don't add up
        self._announce()
        call(what)
