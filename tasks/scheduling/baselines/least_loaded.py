"""The `least_loaded` allocation: to the node that has the smallest share of its slots taken."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, Pushing, push
from tasks.scheduling.decision import Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge


class LeastLoaded(Pushing):
    """In queue order, each subtask to the node with the smallest share of its slots taken, of those that can take it.

    Between equals the one with fewer attempts, then chance decides. A node that may be given attempts ahead of its
    slots has less than nothing taken while it has none.
    """

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        context = DecisionContext(ready, knowledge, now_s, rng, tell)

        def choose(group: Group) -> Choice | None:
            able = context.able(group)
            if not able:
                return None
            chosen = min(able, key=lambda name: (_share(ready, name), taken(ready, name), rng.random()))
            return Choice(chosen, _reason(ready, chosen), lambda name: _share(ready, name))

        return push(context, choose)


def taken(ready: ReadyQueue, node: str) -> int:
    """Attempts a node has now, as far as its free slots tell."""
    return ready.nodes[node].slots - ready.free.get(node, 0)


def _share(ready: ReadyQueue, node: str) -> float:
    return taken(ready, node) / max(1, ready.nodes[node].slots)


def _reason(ready: ReadyQueue, chosen: str) -> Callable[[str], str]:
    def reason(name: str) -> str:
        has = f"{taken(ready, name)} of {ready.nodes[name].slots} slots taken"
        return f"least loaded: {has}" if name == chosen else has

    return reason
