"""The `random` allocation: what was observed does not count. What the others are compared with."""

from __future__ import annotations

from random import Random

from tasks.strategies.allocation.pushing import Choice, Moment, Pushing, push
from tasks.strategies.board import Board, Group
from tasks.strategies.decision import Assignment
from tasks.strategies.knowledge import Knowledge


class Chance(Pushing):
    """In queue order, each subtask to one of the nodes that may run it and have a free slot, all equally likely."""

    def decide(
        self, board: Board, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        moment = Moment(board, knowledge, now_s, rng, tell)

        def choose(group: Group) -> Choice | None:
            able = moment.able(group)
            return _drawn(rng.choice(able)) if able else None

        return push(moment, choose)


def _drawn(chosen: str) -> Choice:
    return Choice(chosen, lambda name: "drawn at random" if name == chosen else "might have been drawn")
