"""What an allocation decides, and the data behind it (`reviewloop explain` shows these as they are)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.domain.views import NodeView, SubtaskView
from tasks.scheduling.balance.curves import Curve
from tasks.scheduling.fluid import FluidSettings
from tasks.scheduling.posterior import EstimateSettings
from tasks.scheduling.ready_queue import Group, ReadyQueue, Split
from tasks.scheduling.statistics import Knowledge


class Distances(Protocol):
    """How far nodes are from sites, as measured or by coordinates (2010 paper)."""

    def ms(self, sites: Sequence[str], nodes: Sequence[str]) -> NDArray[np.float64]:
        """Estimated delays in milliseconds, an array of (sites, nodes); NaN where nothing is known."""
        ...


MOST_TOLD = 5
"""Candidates that are told of an assignment, at most: the chosen node and those that came next."""


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Parameters of allocation; those of `feedback` unless they say otherwise.

    Attributes:
        estimate: first guesses and their weights.
        fluid: of the plan.
        typical_pages: most pages an attempt is expected to take when yields are compared (quota is set
            elsewhere).
        replan_s: a plan is made anew after so long.
        scarcity: how much the best yield a subtask could get elsewhere counts against giving it a slot, from 0
            (most pages now) to 1 (each node does what it is comparatively best at).
        poor_fraction: (`feedback2014`) efficiency worse than the best node's by more than 1 / this is too poor.
        nearest: (`proximity`) a site goes to a random one of so many nearest nodes: 1 is the paper's Top-1.
        distances: (`proximity`, and first guesses of `feedback`) None: nothing was measured.
        waits_hold_slots: an attempt that waits for a send time keeps its slot meanwhile (the simulator's do, a node's
            don't).
        curve_of: (`balance`) run times of a node as a trained network predicts them; None: as observed.
    """

    estimate: EstimateSettings = field(default_factory=EstimateSettings)
    fluid: FluidSettings = field(default_factory=FluidSettings)
    typical_pages: int = 50
    replan_s: float = 20.0
    scarcity: float = 0.7
    poor_fraction: float = 0.5
    nearest: int = 3
    distances: Distances | None = None
    waits_hold_slots: bool = False
    curve_of: Callable[[NodeView], Curve] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node as it was considered for a subtask.

    Attributes:
        eligible: it might have been given the subtask, now or once a slot is free.
        why: one line for people.
        completion: observed completion rate of (site, node); None without data.
        efficiency_s: observed active seconds per collected page; None without data.
        attempts: faded number of attempts these rest on.
        score: what it was ranked with (`feedback`: pages per second of a slot, as drawn); None where it was not
            ranked.
    """

    node: str
    eligible: bool
    why: str
    completion: float | None
    efficiency_s: float | None
    attempts: float
    score: float | None

    def as_detail(self) -> dict[str, object]:
        """As plain JSON types for the event log, numbers to four digits: more is noise, and it is written often."""
        return {
            "node": self.node,
            "eligible": self.eligible,
            "why": self.why,
            "completion": _short(self.completion),
            "efficiency_s": _short(self.efficiency_s),
            "attempts": _short(self.attempts),
            "score": _short(self.score),
        }


def _short(figure: float | None) -> float | None:
    return float(f"{figure:.4g}") if figure is not None else None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A subtask goes to a node.

    Attributes:
        score: what the node was ranked with; None where the strategy ranks nothing.
        forgiven: the node's name, where it had failed this subtask and nobody else was left.
        candidates: nodes it was compared with, the best `MOST_TOLD` of them; empty where nobody wanted to be told.
    """

    subtask: SubtaskView
    node: str
    score: float | None
    forgiven: str | None
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Subtasks that stay where they are, for the same reason."""

    subtask_ids: tuple[int, ...]
    why: str


class AllocationStrategy(Protocol):
    """What every allocation strategy looks like. What one remembers is a cache or a cursor: losing it costs little."""

    @property
    def split(self) -> Split | None:
        """What it tells waiting subtasks apart by, beyond the ready queue's rules; to be given to the ready queue."""
        ...

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """Give waiting subtasks to nodes: take them from the ready queue, until nothing more goes.

        Args:
            ready: what waits, who is free, what hosts allow.
            knowledge: what closed attempts say.
            now_s: when, in seconds of the clock that both use.
            rng: the only source of chance.
            tell: fill in the candidates of each assignment.
        """
        ...

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Why the strategy leaves a group waiting that could run now, for people; None where it doesn't."""
        ...


Note = Callable[[str], tuple[str, float | None]]
"""Of a node that may run a group: why it was or was not chosen, and what it was ranked with."""


def candidates(
    ready: ReadyQueue, knowledge: Knowledge, now_s: float, group: Group, note: Note, first: Sequence[str] = ()
) -> tuple[Candidate, ...]:
    """Nodes as they were considered for the group; to be called before the group is taken from.

    Args:
        note: see there.
        first: those to be told before others: the chosen one, then the best by the strategy's ranking.

    Returns:
        At most `MOST_TOLD`, so that telling costs the same however many nodes there are: those of ``first``, then those
        that have room, then others. The chosen one comes first, those that may run it before those that may not.
    """
    names: dict[str, None] = {}
    for name in chain(first, ready.free, ready.nodes):
        names[name] = None
        if len(names) == MOST_TOLD:
            break
    site = group.first.site
    found = []
    for name in names:
        refused = ready.refused(group, name)
        why, score = (refused, None) if refused is not None else note(name)
        seen = knowledge.pair(site, name, now_s)
        found.append(
            Candidate(name, refused is None, why, seen.completion, seen.efficiency_s, seen.attempts, score)
        )
    found.sort(key=lambda one: (one.node not in first[:1], not one.eligible, -(one.score or 0.0)))
    return tuple(found)


def waits(ready: ReadyQueue, strategy: AllocationStrategy) -> tuple[Waiting, ...]:
    """What stays on the ready queue and why, in queue order of each group's first."""
    return tuple(
        Waiting(tuple(one.id for one in group.queue), why_waiting(ready, strategy, group))
        for level in ready.levels()
        for groups in level.sites.values()
        for group in groups
    )


def why_waiting(ready: ReadyQueue, strategy: AllocationStrategy, group: Group) -> str:
    """Why nobody was given the group's first, for people."""
    wanted = group.first
    if not ready.nodes:
        return "no node is alive"
    able = ready.eligible(group)
    if not able:
        return _why_nobody(ready, group)
    if ready.room(group) < 1:
        full = next(host for host in wanted.hosts if ready.host_room(host) < 1)
        return f"{full} is asked as often as it allows: no room for another attempt"
    if any(ready.takes(group, name) for name in able):
        held_back = strategy.holds_back(ready, group)
        if held_back is not None:
            return held_back
    busy = [_busy(ready, group, name) for name in able if name in ready.free]
    names = ", ".join(able[:5]) + (f" and {len(able) - 5} more" if len(able) > 5 else "")
    if ready.forgiven(group) is not None:
        return f"waits for a free slot of {names}, whose failure would be forgiven"
    told = next((why for why in busy if why), None)
    return f"{told} ({names})" if told else f"every node that may run it is busy ({names})"


def why_busy(ready: ReadyQueue, group: Group, node: str) -> str:
    """Why a node that may run the group can't be given it now."""
    return _busy(ready, group, node) or "busy: no free slot"


def _busy(ready: ReadyQueue, group: Group, node: str) -> str | None:
    if node in ready.free and ready.address_room(group, node) < 1:
        views = (ready.hosts.get(host) for host in group.first.hosts)
        probed = next((view.host for view in views if view is not None and node in view.probing), None)
        return f"probes {probed} after a rest" if probed else "already asks there as often as its address may"
    return None


def _why_nobody(ready: ReadyQueue, group: Group) -> str:
    wanted = group.first
    if wanted.assigned is not None and wanted.assigned not in ready.nodes:
        return f"{wanted.assigned}, which a person asked for, is not alive or is drained"
    if not any(wanted.kind in node.kinds for node in ready.nodes.values()):
        return f"no live node crawls {wanted.kind} sites"
    reasons = dict.fromkeys(ready.refused(group, name) or "" for name in ready.nodes)
    told = [reason for reason in reasons if "refuses" in reason] or list(reasons)
    return "no node may run it now: " + "; ".join(told)
