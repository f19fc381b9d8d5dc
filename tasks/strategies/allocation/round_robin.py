"""The `round_robin` allocation: nodes take turns."""

from __future__ import annotations

from random import Random

from tasks.strategies.allocation.pushing import Choice, Moment, Pushing, push
from tasks.strategies.board import Board, Group
from tasks.strategies.decision import AllocationSettings, Assignment
from tasks.strategies.knowledge import Knowledge


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
        self, board: Board, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        self._follow(board)

        def choose(group: Group) -> Choice | None:
            for step in range(len(self._names)):
                place = (self._next + step) % len(self._names)
                if board.takes(group, self._names[place]):
                    self._next = place + 1
                    return _in_turn(self._names[place])
            return None

        return push(Moment(board, knowledge, now_s, rng, tell), choose)

    def _follow(self, board: Board) -> None:
        """Keep the turn where it is when nodes come and go."""
        names = list(board.nodes)
        if names == self._names:
            return
        turn = self._names[self._next :] + self._names[: self._next]
        self._next = next((names.index(name) for name in turn if name in board.nodes), 0)
        self._names = names


def _in_turn(chosen: str) -> Choice:
    return Choice(chosen, lambda name: "next in turn" if name == chosen else "its turn comes later")
