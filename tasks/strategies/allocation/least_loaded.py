"""The `least_loaded` allocation: to the node that has the smallest share of its slots taken."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tasks.strategies.allocation.pushing import Choice, Moment, Pushing, push
from tasks.strategies.board import Board, Group
from tasks.strategies.decision import Assignment
from tasks.strategies.knowledge import Knowledge


class LeastLoaded(Pushing):
    """In queue order, each subtask to the node with the smallest share of its slots taken, of those that can take it.

    Between equals the one with fewer attempts, then chance decides. A node that may be given attempts ahead of its
    slots has less than nothing taken while it has none.
    """

    def decide(
        self, board: Board, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        moment = Moment(board, knowledge, now_s, rng, tell)

        def choose(group: Group) -> Choice | None:
            able = moment.able(group)
            if not able:
                return None
            chosen = min(able, key=lambda name: (_share(board, name), taken(board, name), rng.random()))
            return Choice(chosen, _reason(board, chosen), lambda name: _share(board, name))

        return push(moment, choose)


def taken(board: Board, node: str) -> int:
    """Attempts a node has now, as far as its free slots tell."""
    return board.nodes[node].slots - board.free.get(node, 0)


def _share(board: Board, node: str) -> float:
    return taken(board, node) / max(1, board.nodes[node].slots)


def _reason(board: Board, chosen: str) -> Callable[[str], str]:
    def reason(name: str) -> str:
        has = f"{taken(board, name)} of {board.nodes[name].slots} slots taken"
        return f"least loaded: {has}" if name == chosen else has

    return reason
