"""What the simpler strategies share: in queue order, the head of each group is given to the node they choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tasks.scheduling.decision import AllocationSettings, Assignment, Note, candidates, why_busy
from tasks.scheduling.ready_queue import Group, Level, ReadyQueue
from tasks.scheduling.statistics import Knowledge

Reason = Callable[[str], str]
"""Of a node that may run a group and could be given it now: why it was or was not chosen."""


class Choice(NamedTuple):
    """What a group's next subtask goes to.

    Attributes:
        node: can be given it now.
        reason: for people.
        scores: what nodes were ranked with, by name; None where nothing is ranked.
    """

    node: str
    reason: Reason
    scores: Callable[[str], float | None] | None = None


Choose = Callable[[Group], Choice | None]
"""Which node a group's next subtask goes to; None: it waits. Asked again for what follows in a group."""


class Pushing:
    """What strategies are that have no settings, tell no more apart than the ready queue does, and hold nobody back."""

    split = None

    def __init__(self, settings: AllocationSettings) -> None:
        del settings

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:  # noqa: ARG002
        """It never does."""
        return None


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a strategy is handed when it decides (`AllocationStrategy.decide`)."""

    ready: ReadyQueue
    knowledge: Knowledge
    now_s: float
    rng: Random
    tell: bool

    def give(self, group: Group, choice: Choice) -> Assignment:
        """Take the group's next subtask from the ready queue for the node chosen."""
        node = choice.node
        score = choice.scores(node) if choice.scores is not None else None
        forgiven = self.ready.forgiven(group)
        told = (
            candidates(self.ready, self.knowledge, self.now_s, group, self._note(group, choice), [node])
            if self.tell
            else ()
        )
        subtask = self.ready.take(group, node)
        return Assignment(subtask, node, score, forgiven if forgiven == node else None, told)

    def able(self, group: Group) -> list[str]:
        """Nodes that can be given the group's next subtask now."""
        ready, first = self.ready, group.first
        if ready.room(group) < 1:
            return []
        if first.assigned is not None or any(host in ready.hosts for host in first.hosts):
            return [name for name in ready.free if ready.takes(group, name)]
        # Nothing but kinds and failures can keep nodes from it: asking all rules of each would be most of the cost.
        kind, failed_on, nodes = first.kind, first.failed_on, ready.nodes
        return [
            name
            for name in ready.free
            if kind in nodes[name].kinds and (name not in failed_on or ready.takes(group, name))
        ]

    def _note(self, group: Group, choice: Choice) -> Note:
        def note(name: str) -> tuple[str, float | None]:
            can = name == choice.node or self.ready.takes(group, name)
            why = choice.reason(name) if can else why_busy(self.ready, group, name)
            return why, choice.scores(name) if choice.scores is not None else None

        return note


def push(context: DecisionContext, choose: Choose) -> list[Assignment]:
    """Give away what waits, priority levels strictly one after the other, each in queue order.

    A group is passed over where its hosts have no room, and where nothing is chosen for it; so this costs what the
    groups cost, however many subtasks wait in them.
    """
    given = list[Assignment]()
    for level in context.ready.levels():
        given += push_level(context, level, choose)
        if not context.ready.free:
            break
    return given


def push_level(context: DecisionContext, level: Level, choose: Choose) -> list[Assignment]:
    """The same of one priority level."""
    ready, given = context.ready, list[Assignment]()
    if not ready.free:
        return given
    for group in ready.in_order(level):
        choice = choose(group) if ready.room(group) >= 1 else None
        if choice is not None:
            given.append(context.give(group, choice))
            if not ready.free:
                break
    return given
