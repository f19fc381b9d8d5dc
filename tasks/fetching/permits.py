"""Send permits: when a host may be asked. Spaced per (host, node address) and per host, at the pace of both.

A permit is leave to send one request to a host from one address at a granted time. The spacing of the host holds
between any two granted times, that of an address on average and else up to `MOST_DEBT_S`, so in any 10 s there are at
most 10 x limit + 1 of them. A request is sent a little later than granted now and then (a busy loop, a slow round
trip), which brings it closer to the next one; `SPACING_MARGIN` leaves 0.2 s in 10 s for both and costs 2 % of the rate.
The pace (`tasks.fetching.pace`) only ever widens the spacings.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Protocol

from splitter.catalog.model import Limits

from tasks.domain.breaker import LONGEST_ASKED_S, LONGEST_REST_S
from tasks.domain.grants import AddressGrants, HostGrants
from tasks.fetching.pace import (
    NEW_ADDRESS,
    AddressPace,
    AnswerSample,
    Pace,
    address_pace_after,
    host_share,
)

SPACING_MARGIN = 1.02
# Permits further ahead are not granted: a lease can't bridge a longer wait.
MAX_AHEAD_S = 30.0
# A slowed-down host that was not asked for this long gets its configured pace again.
REMEMBER_S = 600.0
# The rate it bears of an address is remembered over the longest rest.
REMEMBER_THRESHOLD_S = LONGEST_REST_S + REMEMBER_S
MOST_DEBT_S = 0.05
"""The most of a wait to be in step with others that the address's next permit makes up for: of the 0.2 s in 10 s that
`SPACING_MARGIN` leaves."""
_SWEEP_HOSTS = 1000
# Rounding of sums of large times.
_EPSILON_S = 1e-6


class WaitTooLong(Exception):
    """The next permit of a host is further ahead than an attempt may wait.

    Attributes:
        host: which one.
        wait_s: how far ahead, in seconds.
    """

    def __init__(self, host: str, wait_s: float) -> None:
        super().__init__(f"{host} can be asked in {wait_s:.0f} s only")
        self.host = host
        self.wait_s = wait_s


class Permits(Protocol):
    """Grants permits; first come, first served."""

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """Reserve one permit and return the seconds until its time (0: now).

        If that would be more than `MAX_AHEAD_S` (a resting host), the wait is returned and nothing is
        reserved: end the attempt or try again later.

        Args:
            host: the server that answers, with its port if it is not the default one.
            address: the node's source address.
            limits: of the host.
        """

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """Grant this address nothing at this host for `delay_s` seconds (Retry-After, a rest)."""

    async def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample) -> None:
        """Adapt the pace of an address, and with it that of its host, to the outcome of a request.

        A Retry-After is kept as `push_back` keeps it. Call it once for every request that was made.

        Args:
            host: as reserved for.
            address: as reserved for.
            limits: as reserved under.
            answer: the outcome.
        """

    async def get_grants(self, hosts: Collection[str]) -> dict[str, HostGrants]:
        """Return the grants of these hosts now. One at its full pace without a queue may be missing."""


def spacings_s(limits: Limits) -> tuple[float, float]:
    """Seconds between two send times of one address, and of the whole host, at the configured pace."""
    return SPACING_MARGIN / limits.per_address_per_s, SPACING_MARGIN / limits.total_per_s


@dataclass(slots=True)
class _Address:
    """A node address at a host: the earliest time of its next request, and its pace."""

    next_at: float
    own: AddressPace = NEW_ADDRESS


@dataclass(slots=True)
class _Host:
    """Permits and paces of one host.

    Attributes:
        granted: times granted, ascending; those that no longer matter are dropped.
        addresses: by node address.
        share: of its limits, for all addresses.
    """

    granted: list[float] = field(default_factory=list)
    addresses: dict[str, _Address] = field(default_factory=dict)
    share: float = 1.0

    def matters(self, now: float) -> bool:
        """True while anything of it still bears on the next permit."""
        return any(one.next_at > now or still_slows(one.own, now) for one in self.addresses.values())


class PermitBook:
    """Permits and paces of hosts, by arithmetic alone: every method takes the time. See `Permits`.

    Args:
        max_ahead_s: a permit further ahead is not reserved.
    """

    def __init__(self, max_ahead_s: float = MAX_AHEAD_S) -> None:
        self._max_ahead_s = max_ahead_s
        self._hosts: dict[str, _Host] = {}
        self._sweep_at = _SWEEP_HOSTS

    def __len__(self) -> int:
        """Hosts it keeps something of."""
        return len(self._hosts)

    def reserve(self, host: str, address: str, limits: Limits, now: float) -> float:
        """Reserve one permit and return the seconds until its time (0: now)."""
        state = self._hosts.get(host) or self._new_host(host, now)
        mine = state.addresses.get(address)
        if mine is None:
            mine = state.addresses[address] = _Address(now)
        between_own_s = SPACING_MARGIN / (limits.per_address_per_s * mine.own.share(state.share))
        between_all_s = SPACING_MARGIN / (limits.total_per_s * state.share)
        gap_at = at = max(now, mine.next_at)
        granted = state.granted
        if granted:
            near_s = max(between_own_s, between_all_s) + between_all_s
            del granted[: bisect_left(granted, now - near_s)]
            gap_at = first_gap(granted, at, between_all_s)
            at = max(at, next_in_step(granted, gap_at, between_all_s, near_s))
            at = first_gap(granted, at, between_all_s)
        if at - now <= self._max_ahead_s:
            insort(granted, at)
            mine.next_at = at - min(at - gap_at, MOST_DEBT_S) + between_own_s
        return at - now

    def push_back(self, host: str, address: str, delay_s: float, now: float) -> None:
        """Grant this address nothing at this host for `delay_s` seconds."""
        mine = self._address(host, address, now)
        mine.next_at = max(mine.next_at, now + delay_s)

    def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample, now: float) -> None:
        """Adapt the pace of an address, and with it that of its host, to the outcome of a request."""
        mine = self._address(host, address, now)
        mine.own = address_pace_after(mine.own, answer, now, 1.0 / limits.per_address_per_s)
        state = self._hosts[host]
        if state.share < 1.0 or mine.own.faults.share < 1.0:
            state.share = host_share((one.own for one in state.addresses.values()), now)
        if answer.retry_after_s is not None:
            mine.next_at = max(mine.next_at, now + min(answer.retry_after_s, LONGEST_ASKED_S))

    def get_grants(self, hosts: Collection[str], now: float) -> dict[str, HostGrants]:
        """Return the grants of these hosts now. Hosts that were never asked are missing."""
        return {host: _host_grants(self._hosts[host], now) for host in hosts if host in self._hosts}

    def _address(self, host: str, address: str, now: float) -> _Address:
        state = self._hosts.get(host) or self._new_host(host, now)
        mine = state.addresses.get(address)
        if mine is None:
            mine = state.addresses[address] = _Address(now)
        return mine

    def _new_host(self, host: str, now: float) -> _Host:
        if len(self._hosts) >= self._sweep_at:
            self._forget_idle(now)
        state = self._hosts[host] = _Host()
        return state

    def _forget_idle(self, now: float) -> None:
        """Drop idle hosts: pages come from very many hosts, few of them twice."""
        self._hosts = {host: state for host, state in self._hosts.items() if state.matters(now)}
        self._sweep_at = _SWEEP_HOSTS + 2 * len(self._hosts)


def _host_grants(state: _Host, now: float) -> HostGrants:
    return HostGrants(
        share=state.share,
        next_s=max(0.0, state.granted[-1] - now) if state.granted else 0.0,
        answers_well=any(one.own.is_answered_well(now) for one in state.addresses.values()),
        addresses={
            address: AddressGrants(share=one.own.share(state.share), next_s=max(0.0, one.next_at - now))
            for address, one in state.addresses.items()
        },
    )


class LocalPermits:
    """Permits of one process (embedded runner): a book of them, with a clock.

    Args:
        clock: monotonic seconds.
        max_ahead_s: a permit further ahead is not reserved.
    """

    def __init__(self, clock: Callable[[], float], max_ahead_s: float = MAX_AHEAD_S) -> None:
        self._clock = clock
        self._book = PermitBook(max_ahead_s)

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """See `Permits`."""
        return self._book.reserve(host, address, limits, self._clock())

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """See `Permits`."""
        self._book.push_back(host, address, delay_s, self._clock())

    async def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample) -> None:
        """See `Permits`."""
        self._book.observe(host, address, limits, answer, self._clock())

    async def get_grants(self, hosts: Collection[str]) -> dict[str, HostGrants]:
        """See `Permits`."""
        return self._book.get_grants(hosts, self._clock())


def still_slows(own: AddressPace, now: float) -> bool:
    """True while the pace of an address is below the configured one."""
    threshold = own.threshold
    return (
        _still_slows(own.pace, now)
        or _still_slows(own.faults, now)
        or (threshold.share < 1.0 and now - threshold.raised_at < REMEMBER_THRESHOLD_S)
    )


def _still_slows(pace: Pace, now: float) -> bool:
    return pace.share < 1.0 and now - max(pace.cut_at, pace.raised_at) < REMEMBER_S


def next_in_step(granted: list[float], at: float, spacing_s: float, near_s: float) -> float:
    """The first time from ``at`` on that is whole spacings away from the granted times (ascending) around it.

    Times spread at random would leave gaps that are too small for one more: with 8 nodes at 20/s, 81 % of a host of
    50/s were used.

    Args:
        granted: times granted, ascending.
        at: earliest time.
        spacing_s: between two times.
        near_s: granted times further away are ignored.
    """
    place = bisect_left(granted, at)
    if place < len(granted) and granted[place] - at < near_s:
        return granted[place] - floor((granted[place] - at + _EPSILON_S) / spacing_s) * spacing_s
    if place and at - granted[place - 1] < near_s:
        return granted[place - 1] + ceil((at - granted[place - 1] - _EPSILON_S) / spacing_s) * spacing_s
    return at


def first_gap(granted: list[float], earliest: float, spacing_s: float) -> float:
    """The first time from ``earliest`` on that keeps ``spacing_s`` from every granted time (ascending)."""
    at = earliest
    for taken in granted[bisect_left(granted, earliest - spacing_s) :]:
        if taken - at >= spacing_s - _EPSILON_S:
            break
        if at - taken < spacing_s:
            at = taken + spacing_s
    return at
