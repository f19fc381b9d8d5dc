"""Levelling: work that a node holds and has not begun goes where it would begin sooner (2022 buffering paper).

Nodes are connected vessels. The level of a node is the time until the last lease it holds is begun,

    expected wait = (leases held - vacant slots) / throughput          (0 where a slot is vacant for each)

and leases flow from the highest level to the lowest that may take them, each from the tail (granted last), as long as
one begins sooner by more than `gain_s`: what moving it costs, and what the figures, as old as a heartbeat, may be wrong
by. The paper moves a surplus from deque to remote queue to deque; here it is a lease given back and granted anew, so
that whoever holds it last is the only one who may begin it.

What holds, and is tested: a lease that was begun is no part of this; a node gives no more than its surplus (had it kept
one lease more, that one would begin later than any it gave); the sum of expected waits falls by more than `gain_s` with
each lease that moves, so that a level state stays as it is and nothing swings; and a lease that was granted less than
`rest_s` ago stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tasks.domain.views import HostView, SubtaskView

_BEAT_S = 5.0
"""A heartbeat's interval: within it a node begins what it holds if it has a slot, a lost notification
notwithstanding."""


@dataclass(frozen=True, slots=True)
class LevellingSettings:
    """Parameters of levelling.

    Attributes:
        gain_s: a lease moves only if it is expected to begin sooner by more than this.
        rest_s: and if it was granted this long ago, so that it moves at most once in this time: two heartbeats, which
            then have told what the last move did.
        most: leases moved at once, so that the transaction stays short.
    """

    gain_s: float = 5.0
    rest_s: float = 10.0
    most: int = 100


@dataclass(frozen=True, slots=True)
class Pace:
    """How soon a node begins what it is given.

    Attributes:
        per_s: attempts it begins per second once all its slots are taken; positive.
        vacant: attempts it begins at once.
    """

    per_s: float
    vacant: int

    def wait_s(self, held: int) -> float:
        """Seconds until it begins the last of so many leases."""
        return max(0, held - self.vacant) / self.per_s


def pace(slots: int, working: int, attempts_per_s: float, waited_s: float, horizon_s: float) -> Pace:
    """What to expect of a node by what its heartbeat and its leases tell.

    Its throughput stands, with two exceptions. Before it has one (it is new, or ended nothing within the window), and
    where a slot is vacant (then throughput shows what it was given, not what it can do), one attempt per slot and
    horizon is assumed, if that is more. And where it held leases and began none for longer than a heartbeat, it begins
    at most one in that time, and has no vacant slot whatever it says: a node that stalls stands out before its mean
    over the window does.

    Args:
        slots: attempts it runs at once; at least 1.
        working: attempts that hold a slot.
        attempts_per_s: ended, mean over the window.
        waited_s: how long it has held leases without beginning any; 0 where it holds none.
        horizon_s: see `tasks.store.views.BufferRule`.
    """
    stuck = waited_s > _BEAT_S
    vacant = 0 if stuck else max(0, slots - working)
    per_s = attempts_per_s
    if per_s <= 0 or vacant:
        per_s = max(per_s, slots / horizon_s)
    return Pace(min(per_s, 1.0 / waited_s) if stuck else per_s, vacant)


@dataclass(frozen=True, slots=True)
class Holder:
    """A node that is alive and not drained, with what it holds.

    Attributes:
        held: leases it has not begun.
        room: leases it may be given beyond those it has.
    """

    name: str
    kinds: frozenset[str]
    slots: int
    held: int
    room: int
    pace: Pace

    @property
    def wait_s(self) -> float:
        """Seconds until it begins the last lease it holds."""
        return self.pace.wait_s(self.held)


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease that was not begun.

    Attributes:
        attempt_id: numbers grow with time: a node's tail has its greatest.
        age_s: since it was granted.
    """

    subtask: SubtaskView
    node: str
    attempt_id: int
    age_s: float


@dataclass(frozen=True, slots=True)
class Returned:
    """A lease its node gives back.

    Attributes:
        why: with the figures, for `explain`.
    """

    lease: HeldLease
    why: str


@dataclass(frozen=True, slots=True)
class Levelling:
    """What flows.

    Attributes:
        returned: leases given back, in the order they were chosen.
        takes: by node, how many of them it should be given; their sum is the number of those returned.
    """

    returned: tuple[Returned, ...] = ()
    takes: Mapping[str, int] = field(default_factory=dict)


def uneven(holders: Sequence[Holder], settings: LevellingSettings) -> bool:
    """Whether a lease could begin sooner elsewhere, by levels and kinds alone: a look before leases are loaded."""
    full = [one for one in holders if one.held and one.wait_s > settings.gain_s]
    return any(
        full_one.wait_s - one.pace.wait_s(one.held + 1) > settings.gain_s
        for one in holders
        for full_one in full
        if one.room > 0 and one.kinds & full_one.kinds
    )


def level(
    holders: Sequence[Holder],
    leases: Iterable[HeldLease],
    hosts: Mapping[str, HostView],
    settings: LevellingSettings,
) -> Levelling:
    """Decide which leases go back so that expected waits level out.

    A lease goes to a node of its kind that has room, has not failed it, whose address none of its hosts refuses, and
    that asks none of them as often as it may already. A lease a person asked this node for stays. A node that takes
    gives nothing in the same decision. (One that gave never takes: it would be the highest again.)

    Args:
        holders: nodes that are alive and not drained.
        leases: those not begun, of any node.
        hosts: by host; one that is missing has no limit and refuses nobody.
        settings: parameters.
    """
    vessels = _Vessels(holders, hosts)
    tails: dict[str, list[HeldLease]] = {one.name: [] for one in holders}
    for lease in sorted(leases, key=lambda one: one.attempt_id):
        if lease.node in tails and lease.age_s >= settings.rest_s and lease.subtask.assigned is None:
            tails[lease.node].append(lease)
    returned: list[Returned] = []
    while len(returned) < settings.most:
        giver = max(
            (n for n in tails if tails[n] and n not in vessels.takes), key=vessels.wait_s, default=None
        )
        if giver is None or vessels.wait_s(giver) - vessels.lowest_s() <= settings.gain_s:
            break
        # What cannot go now cannot go later: other levels only rise, and its own only falls.
        lease = tails[giver].pop()
        taker = vessels.taker(lease)
        if taker is not None and vessels.wait_s(giver) - vessels.wait_s(taker, 1) > settings.gain_s:
            returned.append(Returned(lease, vessels.told(giver, taker)))
            vessels.move(lease, taker)
    return Levelling(tuple(returned), vessels.takes)


class _Vessels:
    """Levels as leases flow."""

    def __init__(self, holders: Sequence[Holder], hosts: Mapping[str, HostView]) -> None:
        self._holders = {one.name: one for one in holders}
        self._hosts = hosts
        self._held = {one.name: one.held for one in holders}
        self._at_host: dict[tuple[str, str], int] = {}
        self.takes: dict[str, int] = {}

    def wait_s(self, node: str, more: int = 0) -> float:
        """Expected wait of the last lease of a node, after so many more."""
        return self._holders[node].pace.wait_s(self._held[node] + more)

    def lowest_s(self) -> float:
        """The soonest that any node would begin another lease."""
        return min((self.wait_s(name, 1) for name in self._holders if self._open(name)), default=math.inf)

    def taker(self, lease: HeldLease) -> str | None:
        """The node that would begin the lease first, of those that may."""
        may = (name for name in self._holders if name != lease.node and self._may(name, lease.subtask))
        return min(may, key=lambda name: (self.wait_s(name, 1), name), default=None)

    def move(self, lease: HeldLease, taker: str) -> None:
        """The lease goes to the taker."""
        self._held[lease.node] -= 1
        self._held[taker] += 1
        self.takes[taker] = self.takes.get(taker, 0) + 1
        for host in set(lease.subtask.hosts):
            self._at_host[host, taker] = self._at_host.get((host, taker), 0) + 1

    def told(self, giver: str, taker: str) -> str:
        """Why a lease of the giver goes to the taker now."""
        rate = self._holders[giver].pace.per_s
        return (
            f"levelled: {giver} holds {self._held[giver]} not begun at {rate:.2g} attempts/s and would begin this one "
            f"in {self.wait_s(giver):.3g} s, {taker} in {self.wait_s(taker, 1):.3g} s"
        )

    def _open(self, name: str) -> bool:
        return self.takes.get(name, 0) < self._holders[name].room

    def _may(self, name: str, subtask: SubtaskView) -> bool:
        fits = subtask.kind in self._holders[name].kinds and name not in subtask.failed_on
        return fits and self._open(name) and all(self._asks(name, host) for host in subtask.hosts)

    def _asks(self, name: str, host: str) -> bool:
        """Whether the node may ask the host, and may do so more often than it does (rule 5 of `round`)."""
        view = self._hosts.get(host)
        if view is None:
            return True
        limit = 1 if name in view.probing else view.address_limit
        there = view.held.get(name, 0) + self._at_host.get((host, name), 0)
        return name not in view.resting and (limit is None or there < limit)
