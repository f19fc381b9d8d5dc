"""Virtual time: what is to happen, and when."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Events:
    """Calls to be made, in the order of their moments; those of one moment in the order they were announced.

    Attributes:
        now: virtual seconds.
    """

    __slots__ = ("_heap", "_serial", "now")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._serial = 0
        self.now = 0.0

    def __len__(self) -> int:
        """How many calls are still to be made."""
        return len(self._heap)

    @property
    def next_s(self) -> float:
        """When the next call is due; there must be one."""
        return self._heap[0][0]

    def at(self, moment_s: float, call: Callable[[Any], None], what: object) -> None:
        """Announce `call(what)`."""
        self._serial += 1
        heappush(self._heap, (moment_s, self._serial, call, what))

    def step(self) -> None:
        """Go to the next moment at which something is due, and make all its calls."""
        heap = self._heap
        moment_s = self.now = heap[0][0]
        while heap and heap[0][0] == moment_s:
            _, _, call, what = heappop(heap)
            call(what)
