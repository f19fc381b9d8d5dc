"""The `round_robin` allocation: nodes take turns."""

from __future__ import annotations

from random import Random

from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, Pushing, push
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge


class RoundRobin(Pushing):
    """In queue order, each subtask to the next node in turn that may run it and has a free slot.

    The turn goes round the nodes in the order they appeared, whatever the site; a node that can't be given the
    subtask misses its turn. Of it all, only whose turn was last is remembered.
    """

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._names: list[str] = []
        self._next = 0

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        self._follow(ready)

        def choose(group: Group) -> Choice | None:
            for step in range(len(self._names)):
                place = (self._next + step) % len(self._names)
                if ready.takes(group, self._names[place]):
                    self._next = place + 1
                    return _in_turn(self._names[place])
            return None

        return push(DecisionContext(ready, knowledge, now_s, rng, tell), choose)

    def _follow(self, ready: ReadyQueue) -> None:
        """Keep the turn where it is when nodes come and go."""
        names = list(ready.nodes)
        if names == self._names:
            return
        turn = self._names[self._next :] + self._names[: self._next]
        self._next = next((names.index(name) for name in turn if name in ready.nodes), 0)
        self._names = names


def _in_turn(chosen: str) -> Choice:
    return Choice(chosen, lambda name: "next in turn" if name == chosen else "its turn comes later")
