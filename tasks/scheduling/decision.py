"""Decisions of an allocation and the data behind them, as `reviewloop explain` shows them."""

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
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup
from tasks.scheduling.statistics import Knowledge

REPLAN_S = 20.0
"""Seconds after which a plan is replaced. Found by simulation: docs/strategies.md."""

TYPICAL_PAGES = 50
"""Maximum number of pages per attempt when yields are compared. The quota is set elsewhere."""

MOST_CANDIDATES = 5
"""Maximum number of candidates in an explained assignment: the chosen node and the next best ones."""


class Distances(Protocol):
    """Distances between nodes and sites, measured or from coordinates (2010 paper)."""

    def ms(self, sites: Sequence[str], nodes: Sequence[str]) -> NDArray[np.float64]:
        """Return estimated delays in milliseconds, an array of (sites, nodes); NaN if nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Parameters of allocation.

    Attributes:
        nearest: (`proximity`) a site goes to a random one of this many nearest nodes: 1 is the paper's Top-1.
        distances: (`proximity`, and the distance prior of `feedback`) None: nothing was measured.
        floors: (`feedback`) attempts that make few pages of their requests end early; False: modification is off.
        run_times: (`balance`) curves of nodes by a trained network; of other nodes the means of their attempts count.
    """

    nearest: int = 3
    distances: Distances | None = None
    floors: bool = True
    run_times: Mapping[str, Curve] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that was considered for a subtask.

    Attributes:
        eligible: True if it may take the subtask, now or once a slot is free.
        because: the reason why it was chosen or not.
        completion: observed completion rate of (site, node); `None` without data.
        efficiency_s: observed active seconds per collected page; `None` without data.
        attempts: faded number of attempts behind these two values.
        score: value that nodes were ranked by (`feedback`: drawn pages per second of a slot); `None` without a ranking.
    """

    node: str
    eligible: bool
    because: Explanation
    completion: float | None
    efficiency_s: float | None
    attempts: float
    score: float | None


class Ruling(StrEnum):
    """The constraint that a request at a (site, node) uses most of, weighted by its shadow price."""

    PERMITS = "permits"
    SLOTS = "slots"
    NEITHER = "neither"  # there is enough of both


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The worth of a send permit and of a slot in the plan that a decision followed.

    Attributes:
        page_chance: expected pages per request at the (site, node): the posterior mean.
        permit: shadow price of the site's hosts: pages that one more permit would add; 0 if there are enough.
        slot: shadow price of the node: pages that one more second of its slot would add; 0 if there are enough slots.
        ruled: the one of the two that weighs more at the pair.
    """

    page_chance: float
    permit: float
    slot: float
    ruled: Ruling


def as_detail(facts: Candidate | Prices | PageFloor) -> dict[str, object]:
    """Return facts as JSON values for the event log, with numbers rounded to four digits."""
    return {one.name: _short(getattr(facts, one.name)) for one in fields(facts)}


def _short(value: object) -> object:
    if isinstance(value, Explanation):
        return as_document(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The decision to give a subtask to a node.

    Attributes:
        score: value that nodes were ranked by; `None` if the strategy does not rank.
        forgiven: name of the node if it had failed this subtask and no other node was left.
        floor: condition for ending the attempt early; set only if the strategy knows a better node.
        prices: prices of the plan; set only with ``explain`` and if the strategy has a plan.
        candidates: the best `MOST_CANDIDATES` nodes that were compared; empty without ``explain``.
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
    """Subtasks that keep waiting for the same reason."""

    subtask_ids: tuple[int, ...]
    why: Explanation | Message


class AllocationStrategy(Protocol):
    """The interface of allocation strategies. The memory of a strategy is a cache or cursor; losing it costs little."""

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, explain: bool = False
    ) -> list[Assignment]:
        """Give waiting subtasks to nodes, taking them from the ready queue, until no further one can be given.

        Args:
            ready: waiting subtasks, free slots, capacity of hosts.
            knowledge: statistics of closed attempts.
            now_s: time of the decision, in seconds of the clock that both use.
            rng: the only source of chance.
            explain: True to fill in the candidates and prices of each assignment.
        """
        ...

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return the reason why the strategy leaves a group waiting that could run now; `None` if it does not."""
        ...


Remark = Callable[[str], tuple[Explanation, float | None]]
"""Function that returns, for a node that may take a group, the reason for its choice or not, and its score."""


def candidates(
    ready: ReadyQueue,
    knowledge: Knowledge,
    now_s: float,
    group: SubtaskGroup,
    remark: Remark,
    first: Sequence[str] = (),
) -> tuple[Candidate, ...]:
    """Return the nodes that were considered for a group. Call it before a subtask is taken from the group.

    Args:
        ready, knowledge, now_s: arguments of the decision.
        group: the group whose next subtask is given.
        remark: see `Remark`.
        first: nodes to list before others: the chosen one, then the best in the strategy's ranking.

    Returns:
        At most `MOST_CANDIDATES` nodes, so that the cost does not grow with their number: those in ``first``, then
        those with free slots, then others. The chosen one is first, and eligible ones come before the others.
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
    """Return the subtasks that stay in the ready queue with the reasons, in the order of each group's first one."""
    return tuple(
        Waiting(tuple(one.id for one in group.queue), _why_waiting(ready, strategy, group))
        for level in ready.levels()
        for groups in level.sites.values()
        for group in groups
    )


def _why_waiting(
    ready: ReadyQueue, strategy: AllocationStrategy, group: SubtaskGroup
) -> Explanation | Message:
    """Return the reason why no node got the first subtask of the group."""
    wanted, capacity = group.first, ready.capacity
    if not ready.nodes:
        return because(Reason.NO_NODE)
    able = eligibility.eligible(wanted, ready.nodes, ready.hosts)
    if not able:
        return _why_no_node(ready, wanted)
    if capacity.remaining(wanted.hosts) < 1:
        full = next(host for host in wanted.hosts if capacity.remaining([host]) < 1)
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


def why_busy(ready: ReadyQueue, group: SubtaskGroup, node: str) -> Explanation:
    """Return the reason why a node that may take the group can't get it now."""
    return _why_limited(ready, group.first, node) or because(Reason.NO_FREE_SLOT)


def _why_limited(ready: ReadyQueue, wanted: SubtaskFacts, node: str) -> Explanation | None:
    """Return how a host's limit for one address keeps a node with a free slot from the subtask, else `None`."""
    if node not in ready.free or ready.capacity.remaining_for(wanted.hosts, node) >= 1:
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
