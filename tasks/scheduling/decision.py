"""Decisions of an allocation, and the data behind them (`reviewloop explain` shows these as they are)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import chain
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from splitter.errors import Message, join_messages

from tasks.domain.facts import SubtaskFacts
from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.reasons import Explanation, Reason, as_document, because
from tasks.scheduling import eligibility
from tasks.scheduling.balance.curves import Curve
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge

REPLAN_S = 20.0
"""A plan is made anew after so long. Found by simulation: docs/strategies.md."""

TYPICAL_PAGES = 50
"""Most pages an attempt is expected to take when yields are compared; its quota is set elsewhere."""

MOST_CANDIDATES = 5
"""Candidates that an explained assignment lists, at most: the chosen node and those that came next."""


class Distances(Protocol):
    """How far nodes are from sites, as measured or by coordinates (2010 paper)."""

    def ms(self, sites: Sequence[str], nodes: Sequence[str]) -> NDArray[np.float64]:
        """Estimated delays in milliseconds, an array of (sites, nodes); NaN where nothing is known."""
        ...


def can_always_solve() -> bool:
    """Return True: the solver is loaded by whoever asks it first."""
    return True


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Parameters of allocation.

    Attributes:
        nearest: (`proximity`) a site goes to a random one of so many nearest nodes: 1 is the paper's Top-1.
        distances: (`proximity`, and the distance prior of `feedback`) None: nothing was measured.
        floors: (`feedback`) attempts that make few pages of their requests end early; False: modification is off.
        run_times: (`balance`) curves of nodes by a trained network; of other nodes the means of their attempts count.
        can_solve: (`feedback`) returns False while the solver loads. Then each node takes what it is best at.
    """

    nearest: int = 3
    distances: Distances | None = None
    floors: bool = True
    run_times: Mapping[str, Curve] = field(default_factory=dict)
    can_solve: Callable[[], bool] = can_always_solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node as it was considered for a subtask.

    Attributes:
        eligible: it may take the subtask, now or once a slot is free.
        because: why it was chosen, or why not.
        completion: observed completion rate of (site, node); None without data.
        efficiency_s: observed active seconds per collected page; None without data.
        attempts: faded number of attempts these rest on.
        score: what it was ranked by (`feedback`: pages per second of a slot, as drawn); None where it was not ranked.
    """

    node: str
    eligible: bool
    because: Explanation
    completion: float | None
    efficiency_s: float | None
    attempts: float
    score: float | None


class Ruling(StrEnum):
    """The constraint of the plan that a request at a (site, node) uses up most of, each weighed by its shadow price."""

    PERMITS = "permits"
    SLOTS = "slots"
    NEITHER = "neither"  # there is enough of both


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The worth of a send permit and of a slot in the plan that a decision followed.

    Attributes:
        page_chance: pages a request is expected to give at the (site, node): the posterior mean.
        permit: shadow price of the site's hosts: pages that one more permit would add; 0: they grant enough.
        slot: shadow price of the node: pages that one more second of its slot would add; 0: it has enough.
        ruled: which of the two weighs more at the pair.
    """

    page_chance: float
    permit: float
    slot: float
    ruled: Ruling


def as_detail(facts: Candidate | Prices | PageFloor) -> dict[str, object]:
    """As plain JSON types for the event log, numbers to four digits: more is noise, and it is written often."""
    return {one.name: _short(getattr(facts, one.name)) for one in fields(facts)}


def _short(value: object) -> object:
    if isinstance(value, Explanation):
        return as_document(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A subtask goes to a node.

    Attributes:
        score: what the node was ranked by; None where the strategy ranks nothing.
        forgiven: the node's name, where it had failed this subtask and nobody else was left.
        floor: when the attempt ends early; only where the strategy knows a better node.
        prices: only where the strategy has a plan, and with ``explain``.
        candidates: nodes it was compared with, the best `MOST_CANDIDATES` of them; empty without ``explain``.
    """

    subtask: SubtaskFacts
    node: str
    score: float | None = None
    forgiven: str | None = None
    floor: PageFloor = NO_FLOOR
    prices: Prices | None = None
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Subtasks that stay where they are, for the same reason."""

    subtask_ids: tuple[int, ...]
    why: Explanation | Message


class AllocationStrategy(Protocol):
    """The interface of every allocation strategy. Its memory is a cache or a cursor: losing it costs little."""

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, explain: bool = False
    ) -> list[Assignment]:
        """Give waiting subtasks to nodes: take them from the ready queue, until nothing more goes.

        Args:
            ready: what waits, free slots, capacity of hosts.
            knowledge: what closed attempts say.
            now_s: when, in seconds of the clock that both use.
            rng: the only source of chance.
            explain: fill in the candidates and prices of each assignment.
        """
        ...

    def why_held_back(self, ready: ReadyQueue, group: Group) -> Explanation | None:
        """Return why the strategy leaves a group waiting that could run now; `None` if it does not."""
        ...


Remark = Callable[[str], tuple[Explanation, float | None]]
"""Of a node that may take a group: why it was or was not chosen, and what it was ranked by."""


def candidates(
    ready: ReadyQueue,
    knowledge: Knowledge,
    now_s: float,
    group: Group,
    remark: Remark,
    first: Sequence[str] = (),
) -> tuple[Candidate, ...]:
    """Nodes as they were considered for the group; to be called before the group is taken from.

    Args:
        ready, knowledge, now_s: of the decision.
        group: whose next subtask is given away.
        remark: see there.
        first: those to be listed before others: the chosen one, then the best by the strategy's ranking.

    Returns:
        At most `MOST_CANDIDATES`, so that it costs the same however many nodes there are: those of ``first``, then
        those with free slots, then others. The chosen one comes first, those that may take it before those that may
        not.
    """
    names: dict[str, None] = {}
    for name in chain(first, ready.free, ready.nodes):
        names[name] = None
        if len(names) == MOST_CANDIDATES:
            break
    found = []
    for name in names:
        excluded = eligibility.why_not(group.first, name, ready.nodes, ready.hosts)
        why, score = (excluded, None) if excluded is not None else remark(name)
        seen = knowledge.pair(group.first.site, name, now_s)
        found.append(
            Candidate(
                node=name,
                eligible=excluded is None,
                because=why,
                completion=seen.completion,
                efficiency_s=seen.efficiency_s,
                attempts=seen.attempts,
                score=score,
            )
        )
    found.sort(key=lambda one: (one.node not in first[:1], not one.eligible, -(one.score or 0.0)))
    return tuple(found)


def still_waiting(ready: ReadyQueue, strategy: AllocationStrategy) -> tuple[Waiting, ...]:
    """The subtasks that stay on the ready queue and why, in queue order of each group's first."""
    return tuple(
        Waiting(tuple(one.id for one in group.queue), _why_waiting(ready, strategy, group))
        for level in ready.levels()
        for groups in level.sites.values()
        for group in groups
    )


def _why_waiting(ready: ReadyQueue, strategy: AllocationStrategy, group: Group) -> Explanation | Message:
    """Return why no node was given the first subtask of the group."""
    wanted, capacity = group.first, ready.capacity
    if not ready.nodes:
        return because(Reason.NO_NODE)
    able = eligibility.eligible(wanted, ready.nodes, ready.hosts)
    if not able:
        return _why_no_node(ready, wanted)
    if capacity.left(wanted.hosts) < 1:
        full = next(host for host in wanted.hosts if capacity.left([host]) < 1)
        return because(Reason.HOST_FULL, host=full)
    if ready.able(group):
        held_back = strategy.why_held_back(ready, group)
        if held_back is not None:
            return held_back
    nodes = join_names(able)
    if eligibility.forgiven(wanted, ready.nodes, ready.hosts) is not None:
        return because(Reason.FORGIVEN_BUSY, nodes=nodes)
    for name in able:
        limit = _why_limited(ready, wanted, name)
        if limit is not None and limit.reason is Reason.PROBES_HOST:
            return because(Reason.HOST_PROBED, nodes=nodes, **limit.parameters)
        if limit is not None:
            return because(Reason.ADDRESSES_BUSY, nodes=nodes)
    return because(Reason.ALL_BUSY, nodes=nodes)


def join_names(names: Sequence[str]) -> str:
    """Return the first five names as one text; dots stand for further ones."""
    return ", ".join([*names[:5], "…"] if len(names) > 5 else names)


def why_busy(ready: ReadyQueue, group: Group, node: str) -> Explanation:
    """Return why a node that may take the group can't be given it now."""
    return _why_limited(ready, group.first, node) or because(Reason.NO_FREE_SLOT)


def _why_limited(ready: ReadyQueue, wanted: SubtaskFacts, node: str) -> Explanation | None:
    """Return how a host's limit for one address keeps a node with a free slot from the subtask, else `None`."""
    if node not in ready.free or ready.capacity.left_for(wanted.hosts, node) >= 1:
        return None
    for host in wanted.hosts:
        if host in ready.hosts and node in ready.hosts[host].probing:
            return because(Reason.PROBES_HOST, host=host)
    return because(Reason.ADDRESS_BUSY)


def _why_no_node(ready: ReadyQueue, wanted: SubtaskFacts) -> Explanation | Message:
    if wanted.assigned is not None and wanted.assigned not in ready.nodes:
        return because(Reason.CHOSEN_NODE_AWAY, node=wanted.assigned)
    if not any(wanted.kind in node.kinds for node in ready.nodes.values()):
        return because(Reason.NO_NODE_OF_KIND, kind=wanted.kind)
    found = [eligibility.why_not(wanted, name, ready.nodes, ready.hosts) for name in ready.nodes]
    reasons = dict.fromkeys(one for one in found if one is not None)
    refusing = [one for one in reasons if one.reason is Reason.ADDRESS_REFUSED]
    return Message("no node may run it now: {reasons}", reasons=join_messages(refusing or reasons, "; "))
