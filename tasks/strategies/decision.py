"""What an allocation decides, and the data behind it (`reviewloop explain` shows these as they are)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tasks.model import HostView, NodeView, PairStats, SubtaskView
from tasks.strategies.estimate import EstimateSettings


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Parameters of allocation.

    Attributes:
        estimate: first guesses and their weights.
        typical_pages: most pages an attempt is expected to take when yields are compared (quota is set
            elsewhere).
        poor_fraction: a pair is poor where its yield is below this share of the best live node's; 0
            switches the rule off.
        scarcity: how much the best yield a site could get elsewhere counts against giving it a slot, from 0
            (most pages now) to 1 (each node does what it is comparatively best at).
    """

    estimate: EstimateSettings = field(default_factory=EstimateSettings)
    typical_pages: int = 50
    poor_fraction: float = 0.1
    scarcity: float = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node as it was considered for a subtask.

    Attributes:
        eligible: it might have been given the subtask, now or once a slot is free.
        why: one line for people.
        completion: observed completion rate of (site, node); None without data.
        efficiency_s: observed active seconds per collected page; None without data.
        attempts: faded number of attempts these rest on.
        score: pages per second of a slot it was ranked with (drawn; expected where it was not drawn); None
            where it was not ranked.
    """

    node: str
    eligible: bool
    why: str
    completion: float | None
    efficiency_s: float | None
    attempts: float
    score: float | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A subtask goes to a node.

    Attributes:
        score: pages per second of a slot expected there (drawn); None where the strategy ranks nothing.
        forgiven: the node's name, where it had failed this subtask and nobody else was left.
        candidates: every node shown, in the order shown.
    """

    subtask_id: int
    node: str
    score: float | None
    forgiven: str | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Subtasks that stay where they are, for the same reason."""

    subtask_ids: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """One round's decision: every subtask is in exactly one of both."""

    assignments: tuple[Assignment, ...]
    waiting: tuple[Waiting, ...]


class AllocationStrategy(Protocol):
    """What every allocation strategy looks like."""

    def __call__(
        self,
        subtasks: Sequence[SubtaskView],
        nodes: Sequence[NodeView],
        hosts: Mapping[str, HostView],
        stats: Mapping[tuple[str, str], PairStats],
        settings: AllocationSettings,
        rng: Random,
    ) -> Allocation:
        """Decide which waiting subtasks go to which nodes.

        Args:
            subtasks: in queue order: priority descending, then first in.
            nodes: alive and not drained.
            hosts: by host; a host that is missing has no limit and refuses nobody.
            stats: per (site, node), faded to now; pairs may be missing.
            settings: parameters.
            rng: the only source of chance.
        """
        ...
