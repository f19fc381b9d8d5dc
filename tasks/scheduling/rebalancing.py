"""Rebalancing: move a lease that a node has not begun to a node that would begin it sooner (2022 buffering paper).

A node expects to begin the last of its prefetched leases after

    expected wait = (prefetched leases - vacant slots) / start rate          (0 if each finds a vacant slot)

Leases move from the node with the longest expected wait to the one that may take them and would begin them first, the
lease granted last first, while one begins sooner by more than `GAIN_S`. The paper moves a surplus from deque to
remote queue to deque. Here a lease is given back and granted again, so only the node that got it last may begin it.

Invariants, checked by tests: a begun lease stays; a node gives no more than its surplus (if it kept one lease more,
that one would begin later than any that it gave); the sum of expected waits falls by more than `GAIN_S` with each
moved lease, so no lease moves back and forth; and a lease that was granted less than `REST` ago stays.
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
"""Minimum gain in seconds for moving a lease, as moving has a cost and the figures may be as old as a heartbeat."""

REST = timedelta(seconds=10)
"""Minimum time since a lease was granted before it moves: two heartbeats, which show the effect of the last move."""

MOST_MOVED = 100
"""Maximum number of leases moved in one transaction, so that it stays short."""

HORIZON_S = 30.0
"""Seconds of work that a node prefetches, and the assumed duration of an attempt without data."""

_HEARTBEAT_S = 5.0
"""Seconds between heartbeats. A node with a free slot begins a lease within them, even if a notification was lost."""

_NEVER_S = 31_536_000.0  # stands for an infinite wait, which JSON can't represent


@dataclass(frozen=True, slots=True)
class StartRate:
    """The rate at which a node begins leases.

    Attributes:
        per_s: attempts begun per second when all slots are taken; positive.
        vacant: number of attempts that begin without a wait.
    """

    per_s: float
    vacant: int

    def wait_s(self, leases: int) -> float:
        """Return the seconds until it begins the last of `leases` leases."""
        return max(0, leases - self.vacant) / self.per_s


def start_rate(slots: int, working: int, attempts_per_s: float, waited_s: float) -> StartRate:
    """Return the rate at which a node begins leases, from its heartbeat and its leases.

    It is the node's throughput, with two exceptions. If the node has no throughput yet (it is new, or ended no attempt
    within the window) or has a vacant slot (then its throughput is limited by its leases), the rate is at least one
    attempt per slot and horizon. If the node had leases but began none for longer than a heartbeat, the rate is at most
    one lease in that time, without a vacant slot. So a stalled node is noticed before its mean throughput falls.

    Args:
        slots: number of slots; at least 1.
        working: number of attempts that hold a slot.
        attempts_per_s: ended attempts per second, mean over the window.
        waited_s: seconds for which it has had leases without beginning any; 0 if it has none.
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
        prefetched: number of leases that it has not begun.
        rate: rate at which it begins them.
    """

    prefetched: int
    rate: StartRate

    @property
    def wait_s(self) -> float:
        """Seconds until it begins its last lease."""
        return self.rate.wait_s(self.prefetched)


@dataclass(frozen=True, slots=True)
class BufferRule:
    """The number of leases that a node may prefetch: leases beyond its slots.

    It is the number that the node is expected to begin within `HORIZON_S`, at most `slots_over` times its slots,
    so that the newest statistics decide about the rest. If attempts are short, it is at least the number that
    begins within `refill_s`. Attempts that only wait hold no slot. For each of them the node gets a further lease,
    at most `slots_over` times its slots.

    Attributes:
        refill_s: maximum seconds until a free slot gets its next lease, reached if a notification was lost.
        slots_over: maximum number of prefetched leases per slot.
        silent_after_s: seconds without a heartbeat after which a node is silent and gets no leases.
    """

    refill_s: float = 5.0
    slots_over: int = 4
    silent_after_s: float = 60.0

    def max_leases(self, slots: int, idle: int, per_s: float) -> int:
        """Return the number of leases that a node may have, begun or not.

        Args:
            slots: number of slots.
            idle: number of begun attempts that only wait.
            per_s: expected number of attempts begun per second.
        """
        bound = self.slots_over * slots
        # Rounding error: a fraction below this is not another lease.
        within, refill = (math.ceil(per_s * s - 1e-9) for s in (HORIZON_S, self.refill_s))
        return slots + min(within, max(bound, refill)) + min(idle, bound)


@dataclass(frozen=True, slots=True)
class Returned:
    """A lease that its node gives back.

    Attributes:
        because: the reason with its figures, for `explain`.
    """

    lease: PrefetchedLease
    because: Explanation


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """The leases that move.

    Attributes:
        returned: leases given back, in the order of the decision.
        takes: number of leases to give to each node, by name. Their sum is the number of `returned`.
    """

    returned: tuple[Returned, ...] = ()
    takes: Mapping[str, int] = field(default_factory=dict)


def is_unbalanced(nodes: Sequence[NodeLoad]) -> bool:
    """Return True if a lease might begin sooner at another node, by expected waits and kinds alone. Leases need not be
    loaded for this check."""
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
    """Decide which leases go back, so that the expected waits become similar.

    A lease goes to a node that may take it (`tasks.scheduling.eligibility`), may get more leases, and whose address is
    within the limits of the hosts. A lease stays if a person chose its node. A node that takes leases gives none in the
    same decision, and a node that gives never takes, as it would have the longest wait again.

    Args:
        nodes: nodes that are alive and not drained.
        leases: leases of all nodes that are not begun.
        hosts: hosts by name. A missing host has no limit and refuses no node.
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
        takes: number of leases given to each node, by name.
    """

    def __init__(self, nodes: Sequence[NodeLoad], hosts: Mapping[str, HostFacts]) -> None:
        self._loads = {one.name: one for one in nodes}
        self._hosts = hosts
        self._capacity = HostCapacity(hosts.values())
        self._prefetched = {one.name: one.prefetched for one in nodes}
        self.takes: dict[str, int] = {}

    def wait_s(self, node: str, more: int = 0) -> float:
        """Return the expected wait of a node's last lease after `more` further ones."""
        return self._loads[node].rate.wait_s(self._prefetched[node] + more)

    def shortest_s(self) -> float:
        """Return the shortest wait of any node for one further lease."""
        return min((self.wait_s(name, 1) for name in self._loads if self._open(name)), default=math.inf)

    def taker(self, lease: PrefetchedLease) -> str | None:
        """Return the node that would begin the lease first among those that may take it; `None` if there is none."""
        able = (name for name in self._loads if name != lease.node and self._can_take(name, lease))
        return min(able, key=lambda name: (self.wait_s(name, 1), name), default=None)

    def move(self, lease: PrefetchedLease, taker: str) -> None:
        """Move a lease to the taker."""
        self._prefetched[lease.node] -= 1
        self._prefetched[taker] += 1
        self.takes[taker] = self.takes.get(taker, 0) + 1
        self._capacity.take(lease.hosts, taker)

    def why(self, giver: str, taker: str) -> Explanation:
        """Return the reason why a lease of the giver goes to the taker now."""
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
            and self._capacity.remaining_for(subtask.hosts, name) >= 1
        )
