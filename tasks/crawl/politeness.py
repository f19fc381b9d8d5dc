"""When a host may be asked: send times spaced per (host, node address) and per host.

Both spacings hold between any two granted times, so in any 10 s there are at most 10 x limit + 1 of them. A
granted time is met a little late now and then (a busy loop, a slow round trip), which squeezes it against the
next one; `SPACING_MARGIN` keeps room for 0.2 s of that in 10 s and costs 2 % of the rate.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from splitter.catalog.model import Limits

SPACING_MARGIN = 1.02
# A send time further ahead than a lease can bridge is not kept for anybody (DESIGN.md, 3).
MAX_AHEAD_S = 30.0
_SWEEP_HOSTS = 1000


class SendTimes(Protocol):
    """Hands out the moments at which hosts may be asked; first come, first served."""

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """Reserve one send time and tell how many seconds it is away (0: now).

        Where it would be more than `MAX_AHEAD_S` away (a resting host), the wait is told but nothing is
        reserved: end the attempt or ask again later.

        Args:
            host: the server that answers, with its port if it is not the default one.
            address: the node's source address.
            limits: of the host.
        """

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """Let nothing be sent from this address to this host for so many seconds (Retry-After, a rest)."""


def spacings_s(limits: Limits) -> tuple[float, float]:
    """Seconds between two send times of one address, and of the whole host."""
    return SPACING_MARGIN / limits.per_address_per_s, SPACING_MARGIN / limits.total_per_s


@dataclass(slots=True)
class _Host:
    """What is known of a host.

    Attributes:
        granted: times granted, ascending; those that no longer matter are dropped.
        next_of: per node address, the earliest time of its next request.
    """

    granted: list[float] = field(default_factory=list)
    next_of: dict[str, float] = field(default_factory=dict)


class LocalSendTimes:
    """Send times of one process (embedded runner): arithmetic over the clock it is given.

    Args:
        clock: monotonic seconds.
        max_ahead_s: a send time further ahead is told, and not reserved.
    """

    def __init__(self, clock: Callable[[], float], max_ahead_s: float = MAX_AHEAD_S) -> None:
        self._clock = clock
        self._max_ahead_s = max_ahead_s
        self._hosts: dict[str, _Host] = {}
        self._sweep_at = _SWEEP_HOSTS

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """See `SendTimes`."""
        now = self._clock()
        between_own_s, between_all_s = spacings_s(limits)
        state = self._host(host, now)
        # What lies a whole spacing back can no longer be too close to anything.
        del state.granted[: bisect_left(state.granted, now - between_all_s)]
        at = first_gap(state.granted, max(now, state.next_of.get(address, now)), between_all_s)
        if at - now <= self._max_ahead_s:
            insort(state.granted, at)
            state.next_of[address] = at + between_own_s
        return at - now

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """See `SendTimes`."""
        now = self._clock()
        next_of = self._host(host, now).next_of
        next_of[address] = max(next_of.get(address, now), now + delay_s)

    def _host(self, host: str, now: float) -> _Host:
        state = self._hosts.get(host)
        if state is None:
            if len(self._hosts) >= self._sweep_at:
                self._forget_idle(now)
            state = self._hosts[host] = _Host()
        return state

    def _forget_idle(self, now: float) -> None:
        """Drop hosts whose send times have all passed: pages come from very many hosts, few of them twice."""
        self._hosts = {h: s for h, s in self._hosts.items() if any(at > now for at in s.next_of.values())}
        self._sweep_at = _SWEEP_HOSTS + 2 * len(self._hosts)


def first_gap(granted: list[float], earliest: float, spacing_s: float) -> float:
    """The first time from ``earliest`` on that keeps ``spacing_s`` from every granted time (ascending)."""
    at = earliest
    for taken in granted[bisect_left(granted, earliest - spacing_s) :]:
        if taken - at >= spacing_s:
            break
        if at - taken < spacing_s:
            at = taken + spacing_s
    return at
