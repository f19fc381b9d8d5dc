"""The `random`, `round_robin` and `least_loaded` allocations, which ignore all observations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext, count_attempts
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import ReadyQueue


class RandomNode(Baseline):
    """Give each subtask, in queue order, to one of the nodes that can take it, all equally likely."""

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        for group, able in context.choices():
            yield context.give(group, context.rng.choice(able), lambda _: because(Reason.DRAWN))


class RoundRobin(Baseline):
    """Give each subtask, in queue order, to the next node in turn that can take it.

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
                    yield context.give(group, self._names[place], lambda _: because(Reason.TAKES_TURNS))
                    break

    def _follow(self, ready: ReadyQueue) -> None:
        """Keep the turn at its node when nodes come and go."""
        names = list(ready.nodes)
        if names == self._names:
            return
        turn = self._names[self._next :] + self._names[: self._next]
        self._next = next((names.index(name) for name in turn if name in ready.nodes), 0)
        self._names = names


class LeastLoaded(Baseline):
    """Give each subtask, in queue order, to the node with the smallest share of its slots in use that can take it.

    Ties go to the node with fewer attempts, then to chance. A node that may be given attempts ahead of its
    slots has less than nothing taken while it has none.
    """

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready, random = context.ready, context.rng.random
        for group, able in context.choices():
            chosen = min(able, key=lambda name: (_share(ready, name), count_attempts(ready, name), random()))
            yield context.give(group, chosen, partial(self._why, ready), partial(_share, ready))

    @staticmethod
    def _why(ready: ReadyQueue, name: str) -> Explanation:
        return because(Reason.SLOTS_TAKEN, taken=count_attempts(ready, name), slots=ready.nodes[name].slots)


def _share(ready: ReadyQueue, node: str) -> float:
    return count_attempts(ready, node) / max(1, ready.nodes[node].slots)
