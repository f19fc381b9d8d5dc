"""Streams for `verify`: rows by groups, and sums by task that are small enough to be held for all."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any


class Groups:
    """Rows of a query that is ordered by its first column, taken by its values in order."""

    def __init__(self, rows: Iterator[Sequence[Any]]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = next(self._groups, None)

    def of(self, key: int) -> list[Sequence[Any]]:
        """The rows with this value; those with smaller ones are passed over."""
        there = self._next
        while there is not None and there[0] < key:
            there = next(self._groups, None)
        found: list[Sequence[Any]] = []
        if there is not None and there[0] == key:
            found = list(there[1])
            there = next(self._groups, None)
        self._next = there
        return found


class TargetSums:
    """Targets of each task: result pages, those of them that were read, hits, and those of them in a legal state.

    Held for all tasks, in 16 bytes each.
    """

    def __init__(self) -> None:
        self._sums = array("i")

    def add(self, task_id: int, sums: Sequence[int]) -> None:
        """Count targets of a subtask for its task."""
        at = 4 * task_id
        if at < 0:
            return
        while len(self._sums) < at + 4:
            self._sums.frombytes(bytes(4 * max(4096, len(self._sums) // 4)))
        for place, n in enumerate(sums, at):
            self._sums[place] += n

    def of(self, task_id: int) -> tuple[int, ...]:
        """The sums of a task."""
        found = self._sums[4 * task_id : 4 * task_id + 4]
        return tuple(found) if len(found) == 4 else (0, 0, 0, 0)
