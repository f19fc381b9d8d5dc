"""The `least_loaded` allocation: to the node that has the smallest share of its slots taken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.decision import Assignment
from tasks.scheduling.ready_queue import ReadyQueue


class LeastLoaded(Baseline):
    """In queue order, each subtask to the node with the smallest share of its slots taken, of those that can take it.

    Between equals the one with fewer attempts, then chance decides. A node that may be given attempts ahead of its
    slots has less than nothing taken while it has none.
    """

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready, random = context.ready, context.rng.random
        for group in context.groups():
            able = ready.able(group)
            if able:
                chosen = min(able, key=lambda name: (_share(ready, name), taken(ready, name), random()))
                yield context.give(group, chosen, partial(_why, ready), partial(_share, ready))


def taken(ready: ReadyQueue, node: str) -> int:
    """Attempts a node has now, by its free slots."""
    return ready.nodes[node].slots - ready.free.get(node, 0)


def _share(ready: ReadyQueue, node: str) -> float:
    return taken(ready, node) / max(1, ready.nodes[node].slots)


def _why(ready: ReadyQueue, name: str, chosen: bool) -> str:
    has = f"{taken(ready, name)} of {ready.nodes[name].slots} slots taken"
    return f"least loaded: {has}" if chosen else has
