"""Rebalancing: a lease that a node has not begun goes where it would begin sooner (2022 buffering paper).

A node expects to begin the last of its prefetched leases after

    expected wait = (prefetched leases - vacant slots) / start rate          (0 where each finds a vacant slot)

Leases move from the node with the longest expected wait to the one that may take them and would begin them first, the
lease granted last first, as long as one begins sooner by more than `GAIN_S`. The paper moves a surplus from deque to
remote queue to deque; here a lease is given back and granted anew, so only the node that got it last may begin it.

Invariants, held by tests: a lease that was begun stays; a node gives no more than its surplus (had it kept one lease
more, that one would begin later than any it gave); the sum of expected waits falls by more than `GAIN_S` with each
lease that moves, so nothing moves back and forth; and a lease that was granted less than `REST` ago stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tasks.domain.facts import HostFacts, NodeFacts, PrefetchedLease, SubtaskFacts
from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling import eligibility
from tasks.scheduling.capacity import HostCapacity

GAIN_S = 5.0
"""A lease moves only if it is expected to begin sooner by more than this: moving it costs something, and the figures
are as old as a heartbeat."""

REST = timedelta(seconds=10)
"""A lease moves only if it was granted this long ago: two heartbeats, which then show what the last move did."""

MOST_MOVED = 100
"""Leases moved at once, so that the transaction stays short."""

HORIZON_S = 30.0
"""Seconds of work that a node prefetches; what it does is taken to take as long, where nothing is known."""

_HEARTBEAT_S = 5.0
"""A heartbeat's interval: within it a node with a free slot begins a lease, even where a notification was lost."""

_NEVER_S = 31_536_000.0  # stands for a wait without end, which JSON has no number for


@dataclass(frozen=True, slots=True)
class StartRate:
    """How soon a node begins what it is given.

    Attributes:
        per_s: attempts it begins per second once all its slots are taken; positive.
        vacant: attempts it begins at once.
    """

    per_s: float
    vacant: int

    def wait_s(self, leases: int) -> float:
        """Seconds until it begins the last of so many leases."""
        return max(0, leases - self.vacant) / self.per_s


def start_rate(slots: int, working: int, attempts_per_s: float, waited_s: float) -> StartRate:
    """The rate at which a node begins leases, by its heartbeat and its leases.

    Its throughput counts, with two exceptions. Before it has one (it is new, or ended nothing within the window), and
    where a slot is vacant (then throughput shows what it was given, not what it can do), one attempt per slot and
    horizon is assumed, if that is more. And where it had leases and began none for longer than a heartbeat, it begins
    at most one in that time, and has no vacant slot whatever it reports: a node that stalls stands out before its mean
    over the window does.

    Args:
        slots: attempts it runs at once; at least 1.
        working: attempts that hold a slot.
        attempts_per_s: ended, mean over the window.
        waited_s: how long it has had leases without beginning any; 0 where it has none.
    """
    stalled = waited_s > _HEARTBEAT_S
    vacant = 0 if stalled else max(0, slots - working)
    per_s = attempts_per_s
    if per_s <= 0 or vacant:
        per_s = max(per_s, slots / HORIZON_S)
    return StartRate(min(per_s, 1.0 / waited_s) if stalled else per_s, vacant)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoad(NodeFacts):
    """A node that is alive and not drained, with its prefetched leases.

    Attributes:
        prefetched: leases it has not begun.
        rate: at which it begins them.
    """

    prefetched: int
    rate: StartRate

    @property
    def wait_s(self) -> float:
        """Seconds until it begins the last lease it has."""
        return self.rate.wait_s(self.prefetched)


@dataclass(frozen=True, slots=True)
class BufferRule:
    """How many leases a node may prefetch: have beyond its slots.

    As many as it is expected to begin within `HORIZON_S`, but no more than
    `slots_over` times its slots, so that the newest knowledge decides about the rest. Where attempts are short, at
    least as many as it begins within `refill_s`. Attempts that only wait hold no slot: for each of them it gets another
    lease, at most `slots_over` times its slots.

    Attributes:
        refill_s: longest time until a free slot gets its next lease: that of the sweep, if no notification came.
        slots_over: most prefetched leases of a slot.
        silent_after_s: a node is silent after this time without a heartbeat: it gets nothing.
    """

    refill_s: float = 5.0
    slots_over: int = 4
    silent_after_s: float = 60.0

    def most(self, slots: int, idle: int, per_s: float) -> int:
        """How many leases a node may have, begun or not.

        Args:
            slots: attempts it runs at once.
            idle: of those it has begun, how many only wait.
            per_s: attempts it is expected to begin per second.
        """
        bound = self.slots_over * slots
        # Rounding error: a fraction below this is not another lease.
        within, refill = (math.ceil(per_s * s - 1e-9) for s in (HORIZON_S, self.refill_s))
        return slots + min(within, max(bound, refill)) + min(idle, bound)


@dataclass(frozen=True, slots=True)
class Returned:
    """A lease its node gives back.

    Attributes:
        because: with the figures, for `explain`.
    """

    lease: PrefetchedLease
    because: Explanation


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """The leases that move.

    Attributes:
        returned: leases given back, in the order they were chosen.
        takes: by node, how many of them it should be given; their sum is the number of those returned.
    """

    returned: tuple[Returned, ...] = ()
    takes: Mapping[str, int] = field(default_factory=dict)


def unbalanced(nodes: Sequence[NodeLoad]) -> bool:
    """Whether a lease could begin sooner elsewhere, by expected waits and kinds alone: a check before leases are
    loaded."""
    full = [one for one in nodes if one.prefetched and one.wait_s > GAIN_S]
    return any(
        giver.wait_s - one.rate.wait_s(one.prefetched + 1) > GAIN_S
        for one in nodes
        for giver in full
        if one.free > 0 and one.kinds & giver.kinds
    )


def rebalance(
    nodes: Sequence[NodeLoad],
    leases: Iterable[PrefetchedLease],
    hosts: Mapping[str, HostFacts],
    now: datetime,
) -> Rebalancing:
    """Decide which leases go back so that expected waits become alike.

    A lease goes to a node that may take it (`tasks.scheduling.eligibility`), may be given more, and whose address is
    within the limits of its hosts. A lease a person asked this node for stays. A node that takes gives nothing in the
    same decision. (One that gave never takes: it would have the longest wait again.)

    Args:
        nodes: alive and not drained.
        leases: those not begun, of any node.
        hosts: by host; one that is missing has no limit and refuses nobody.
    """
    waits = _Waits(nodes, hosts)
    of_node: dict[str, list[PrefetchedLease]] = {one.name: [] for one in nodes}
    for lease in sorted(leases, key=lambda one: one.attempt_id):
        if lease.node in of_node and now - lease.granted_at >= REST and lease.assigned is None:
            of_node[lease.node].append(lease)
    returned: list[Returned] = []
    while len(returned) < MOST_MOVED:
        givers = (name for name, its in of_node.items() if its and name not in waits.takes)
        giver = max(givers, key=waits.wait_s, default=None)
        if giver is None or waits.wait_s(giver) - waits.shortest_s() <= GAIN_S:
            break
        # A lease that can't move now can't move later: other waits only grow, and its own only falls.
        lease = of_node[giver].pop()
        taker = waits.taker(lease)
        if taker is not None and waits.wait_s(giver) - waits.wait_s(taker, 1) > GAIN_S:
            returned.append(Returned(lease, waits.why(giver, taker)))
            waits.move(lease, taker)
    return Rebalancing(tuple(returned), waits.takes)


class _Waits:
    """Expected waits of nodes while leases move.

    Attributes:
        takes: by node, leases it is given.
    """

    def __init__(self, nodes: Sequence[NodeLoad], hosts: Mapping[str, HostFacts]) -> None:
        self._loads = {one.name: one for one in nodes}
        self._hosts = hosts
        self._capacity = HostCapacity(hosts.values())
        self._prefetched = {one.name: one.prefetched for one in nodes}
        self.takes: dict[str, int] = {}

    def wait_s(self, node: str, more: int = 0) -> float:
        """Expected wait of the last lease of a node, after so many more."""
        return self._loads[node].rate.wait_s(self._prefetched[node] + more)

    def shortest_s(self) -> float:
        """The soonest that any node would begin another lease."""
        return min((self.wait_s(name, 1) for name in self._loads if self._open(name)), default=math.inf)

    def taker(self, lease: PrefetchedLease) -> str | None:
        """The node that would begin the lease first, of those that may take it."""
        able = (name for name in self._loads if name != lease.node and self._can_take(name, lease))
        return min(able, key=lambda name: (self.wait_s(name, 1), name), default=None)

    def move(self, lease: PrefetchedLease, taker: str) -> None:
        """The lease goes to the taker."""
        self._prefetched[lease.node] -= 1
        self._prefetched[taker] += 1
        self.takes[taker] = self.takes.get(taker, 0) + 1
        self._capacity.take(lease.hosts, taker)

    def why(self, giver: str, taker: str) -> Explanation:
        """Why a lease of the giver goes to the taker now."""
        return because(
            Reason.REBALANCED,
            giver=giver,
            waiting=self._prefetched[giver],
            per_s=self._loads[giver].rate.per_s,
            giver_s=min(self.wait_s(giver), _NEVER_S),
            taker=taker,
            taker_s=min(self.wait_s(taker, 1), _NEVER_S),
        )

    def _open(self, name: str) -> bool:
        return self.takes.get(name, 0) < self._loads[name].free

    def _can_take(self, name: str, subtask: SubtaskFacts) -> bool:
        return (
            self._open(name)
            and eligibility.may_take(subtask, name, self._loads, self._hosts)
            and self._capacity.left_for(subtask.hosts, name) >= 1
        )
