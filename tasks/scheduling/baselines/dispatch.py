"""The frame of the baseline strategies: the order of waiting subtasks, and how one is given away."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from random import Random

from tasks.domain.facts import SubtaskFacts
from tasks.domain.reasons import Explanation
from tasks.scheduling import eligibility
from tasks.scheduling.decision import AllocationSettings, Assignment, candidates, why_busy
from tasks.scheduling.ready_queue import Level, ReadyQueue, SubtaskGroup
from tasks.scheduling.statistics import Knowledge

Why = Callable[[str], Explanation]
"""Returns, for people, why a node that could be given a subtask now was chosen, or was not."""

_MANY_PAIRS = 10_000
"""With more pairs than this, estimates are made less often, because their cost grows with the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """The arguments of `AllocationStrategy.decide`."""

    ready: ReadyQueue
    knowledge: Knowledge
    now_s: float
    rng: Random
    explain: bool

    def groups(self, levels: Iterable[Level] | None = None) -> Iterator[SubtaskGroup]:
        """Groups whose hosts can take an attempt, while nodes are free: by priority, then in queue order.

        A group whose next subtask was taken comes again. This costs what the groups cost, however many subtasks wait.

        Args:
            levels: None: all.
        """
        for level in self.ready.levels() if levels is None else levels:
            if not self.ready.free:
                return
            for group in self.ready.iter_groups(level):
                if self.ready.capacity.remaining(group.first.hosts) >= 1:
                    yield group
                if not self.ready.free:
                    return

    def choices(self) -> Iterator[tuple[SubtaskGroup, list[str]]]:
        """Yield the groups with the nodes that can take the next subtask. Groups without such a node are left out."""
        for group in self.groups():
            able = self.ready.able(group)
            if able:
                yield group, able

    def give(
        self,
        group: SubtaskGroup,
        node: str,
        why: Why,
        scores: Callable[[str], float | None] | None = None,
        place: int = 0,
    ) -> Assignment:
        """Take a subtask of the group for the node: the next one, or the one at this place.

        Args:
            group, node, place: what goes where.
            why: for people.
            scores: value of each node in the ranking, by name; None if nothing is ranked.
        """
        ready, first = self.ready, group.first
        score_of = scores if scores is not None else lambda _: None

        def remark(name: str) -> tuple[Explanation, float | None]:
            able = name == node or ready.can_take(group, name)
            return why(name) if able else why_busy(ready, group, name), score_of(name)

        considered = (
            candidates(ready, self.knowledge, self.now_s, group, remark, [node]) if self.explain else ()
        )
        score, forgiven = score_of(node), eligibility.forgiven(first, ready.nodes, ready.hosts)
        return Assignment(
            subtask=ready.take(group, node, place),
            node=node,
            score=score,
            forgiven=forgiven if forgiven == node else None,
            candidates=considered,
        )


class Baseline(ABC):
    """A strategy to compare with; one that has no settings and holds nothing back only needs `assign`."""

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._made = (-math.inf, -1)

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, explain: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        context = DecisionContext(ready=ready, knowledge=knowledge, now_s=now_s, rng=rng, explain=explain)
        return list(self.assign(context))

    @abstractmethod
    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """Give subtasks away one by one."""

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:  # noqa: ARG002
        """See `AllocationStrategy`."""
        return None

    def is_outdated(self, context: DecisionContext, lasts_s: float) -> bool:
        """Return True once the strategy must repeat its calculation, which the caller then does.

        That is so after `lasts_s` seconds, and when a site is new, a node came or went, or a host refuses others.
        """
        made_at_s, version = self._made
        if version == context.ready.version and 0 <= context.now_s - made_at_s < lasts_s:
            return False
        self._made = context.now_s, context.ready.version
        return True


def stretch(lasts_s: float, ready: ReadyQueue) -> float:
    """Return how long estimates last, in seconds: `lasts_s`, and longer in proportion if there are very many pairs."""
    return lasts_s * max(1.0, len(ready.sites) * len(ready.nodes) / _MANY_PAIRS)


def alike(group: SubtaskGroup) -> tuple[object, ...]:
    """The facts that the nodes that may take a group, and their yields, depend on."""
    one = group.first
    return one.site, one.kind, one.hosts, one.failed_on, one.assigned


def count_attempts(ready: ReadyQueue, node: str) -> int:
    """Attempts a node has now, by its free slots."""
    return ready.nodes[node].slots - ready.free.get(node, 0)


def give_to_owners(
    context: DecisionContext,
    owner: Callable[[SubtaskGroup, SubtaskFacts], str | None],
    why: Callable[[SubtaskGroup, str], Explanation],
) -> Iterator[Assignment]:
    """Give each waiting subtask to the one node it belongs to, in queue order; those whose node is busy wait.

    Args:
        context: of the decision.
        owner: returns the node of a subtask, one that may take it; None if there is none.
        why: for people, of the subtasks of a group and a node.
    """
    ready = context.ready
    for level in list(ready.levels()):
        for group, place in _one_by_one(context, level):
            node = owner(group, group.queue[place])
            if node is not None and ready.can_take(group, node):
                yield context.give(group, node, partial(why, group), place=place)
            if not ready.free:
                return


def _one_by_one(context: DecisionContext, level: Level) -> Iterator[tuple[SubtaskGroup, int]]:
    """Waiting subtasks of a level that some node can take, in queue order: group and place, which may be taken."""
    arriving = context.groups([level])
    coming, seen = next(arriving, None), set[SubtaskGroup]()
    opened: list[tuple[int, int, SubtaskGroup]] = []  # subtask, place, group
    while coming is not None or opened:
        if coming is not None and (not opened or coming.first.id < opened[0][0]):
            if coming not in seen and context.ready.able(coming):
                heappush(opened, (coming.first.id, 0, coming))
            seen.add(coming)
            coming = next(arriving, None)
            continue
        number, place, group = heappop(opened)
        yield group, place
        if place < len(group.queue) and group.queue[place].id == number:
            place += 1  # it was passed over
        if place < len(group.queue):
            heappush(opened, (group.queue[place].id, place, group))
