"""The `random` allocation: what was observed does not count. What the others are compared with."""

from __future__ import annotations

from random import Random

from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, Pushing, push
from tasks.scheduling.decision import Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge


class Chance(Pushing):
    """In queue order, each subtask to one of the nodes that may run it and have a free slot, all equally likely."""

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        context = DecisionContext(ready, knowledge, now_s, rng, tell)

        def choose(group: Group) -> Choice | None:
            able = context.able(group)
            return _drawn(rng.choice(able)) if able else None

        return push(context, choose)


def _drawn(chosen: str) -> Choice:
    return Choice(chosen, lambda name: "drawn at random" if name == chosen else "might have been drawn")
