"""The `round_robin` allocation: nodes take turns."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import ReadyQueue


class RoundRobin(Baseline):
    """In queue order, each subtask to the next node in turn that can take it.

    The turn goes round the nodes in the order they appeared, whatever the site. A node that can't take the subtask
    misses its turn. The strategy remembers only whose turn was last.
    """

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._names: list[str] = []
        self._next = 0

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        self._follow(context.ready)
        for group in context.groups():
            for step in range(len(self._names)):
                place = (self._next + step) % len(self._names)
                if context.ready.can_take(group, self._names[place]):
                    self._next = place + 1
                    yield context.give(group, self._names[place], _why)
                    break

    def _follow(self, ready: ReadyQueue) -> None:
        """Keep the turn where it is when nodes come and go."""
        names = list(ready.nodes)
        if names == self._names:
            return
        turn = self._names[self._next :] + self._names[: self._next]
        self._next = next((names.index(name) for name in turn if name in ready.nodes), 0)
        self._names = names


def _why(_: str, chosen: bool) -> str:
    return "next in turn" if chosen else "its turn comes later"
