"""The `random` allocation: what was observed does not count. The others are compared with it."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.decision import Assignment


class RandomNode(Baseline):
    """In queue order, each subtask to one of the nodes that can take it, all equally likely."""

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        for group in context.groups():
            able = context.ready.able(group)
            if able:
                yield context.give(group, context.rng.choice(able), _why)


def _why(_: str, chosen: bool) -> str:
    return "drawn at random" if chosen else "might have been drawn"
