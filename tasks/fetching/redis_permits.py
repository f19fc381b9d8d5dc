"""Permits shared by all processes of a cluster: the same arithmetic as LocalPermits, in Lua scripts.

Times are whole microseconds of Redis' own clock, so that the clocks of the nodes don't matter. A node that
often asks a host reserves several permits per round trip and hands them out itself. The pace of an address is worked
out in its process. If a host is asked more slowly than configured, Redis keeps the paces of its addresses, each
written when the address reserves; the share of the host as a whole follows from them (`tasks.fetching.pace`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from redis.asyncio import Redis
from splitter.catalog.model import Limits

from tasks.domain.breaker import LONGEST_ASKED_S
from tasks.domain.grants import AddressGrants, HostGrants
from tasks.fetching.pace import NEW_ADDRESS, AddressPace, AnswerSample, address_pace_after
from tasks.fetching.permit_scripts import GRANTED, PUSH_BACK, RESERVE, TELL
from tasks.fetching.permits import MAX_AHEAD_S, MOST_DEBT_S, REMEMBER_S, spacings_s, still_slows

# A batch reaches no further ahead: permits reserved and not used are lost to others, and single times far ahead leave
# gaps too small to use. Addresses with a wider spacing reserve one permit at a time.
_BATCH_AHEAD_S = 0.25
_MAX_BATCH = 32
# Maximum lateness in seconds at which a reserved permit is used (SPACING_MARGIN leaves as much); then it is dropped.
_LATE_S = 0.1
_SWEEP_RESERVED = 1000
_PREFIX = "reviewloop:send"
_EXPIRE_AFTER_S = 60


@dataclass(slots=True)
class _Reserved:
    """Permits of one (host, address) that are reserved and not yet handed out, and its pace.

    Attributes:
        times: on the local clock, ascending.
        batch: how many to reserve next: grows while all of a batch is used, shrinks when some went stale.
        lock: reserved while Redis is asked, so that those who wait share the answer.
        asking: how many want a permit now.
        own: pace of the address at the host.
    """

    times: deque[float] = field(default_factory=deque)
    batch: int = 1
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: int = 0
    own: AddressPace = NEW_ADDRESS

    def matters(self, now: float) -> bool:
        """True while anything of it still bears on the next permit."""
        return bool(self.times) or self.lock.locked() or still_slows(self.own, now)


class RedisPermits:
    """Permits of a cluster (see `tasks.fetching.permits.Permits`).

    One process, one event loop per object: a node's address must not be shared by several processes, or a
    rest its host asks for would not withdraw the permits that another one has reserved.

    Args:
        redis: an open client; its owner closes it.
        clock: monotonic seconds of this process, to hand out what is reserved.
        max_ahead_s: a permit further ahead is not reserved.
        redis_now_us: in tests, the time to use in place of Redis' own clock.
    """

    def __init__(
        self,
        redis: Redis,
        clock: Callable[[], float],
        max_ahead_s: float = MAX_AHEAD_S,
        *,
        redis_now_us: Callable[[], int] | None = None,
    ) -> None:
        self._clock = clock
        self._max_ahead_s = max_ahead_s
        self._redis_now_us = redis_now_us
        self._reserve = redis.register_script(RESERVE)
        self._push_back = redis.register_script(PUSH_BACK)
        self._tell = redis.register_script(TELL)
        self._granted = redis.register_script(GRANTED)
        self._reserved: dict[tuple[str, str], _Reserved] = {}
        self._sweep_at = _SWEEP_RESERVED

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """See `Permits`. Raises redis.RedisError if Redis doesn't answer."""
        reserved = self._reservation(host, address)
        reserved.asking += 1
        try:
            return await self._next(reserved, host, address, limits)
        finally:
            reserved.asking -= 1

    async def _next(self, reserved: _Reserved, host: str, address: str, limits: Limits) -> float:
        async with reserved.lock:
            now = self._clock()
            while reserved.times and reserved.times[0] < now - _LATE_S:
                reserved.times.popleft()
                reserved.batch = max(1, reserved.batch // 2)
            if reserved.times:
                return max(0.0, reserved.times.popleft() - now)
            # Those that wait for the lock meanwhile go by the same answer.
            reserved.batch = min(_MAX_BATCH, max(reserved.batch, reserved.asking))
            waits_s = await self._ask(host, address, limits, reserved, now)
            if len(waits_s) == reserved.batch:
                reserved.batch = min(_MAX_BATCH, 2 * reserved.batch)
            # Counted from the answer on: a slow round trip makes a request late, never early.
            now = self._clock()
            reserved.times.extend(now + wait_s for wait_s in waits_s[1:])
            return waits_s[0]

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """See `Permits`. Raises redis.RedisError if Redis doesn't answer."""
        self._reservation(host, address).times.clear()
        _, mine, paces = self._keys(host, address)
        keep_s = int(delay_s) + _EXPIRE_AFTER_S
        await self._push_back(keys=[mine, paces], args=[_us(delay_s), keep_s, self._now(), address])

    async def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample) -> None:
        """See `Permits`. Redis is asked only if the pace falls, and for a Retry-After.

        Raises:
            redis.RedisError: Redis doesn't answer.
        """
        reserved = self._reservation(host, address)
        now, before = self._clock(), reserved.own.share(1.0)
        reserved.own = address_pace_after(reserved.own, answer, now, 1.0 / limits.per_address_per_s)
        if reserved.own.share(1.0) < before:
            reserved.times.clear()  # reserved at the pace that was too fast
            _, _, paces = self._keys(host, address)
            await self._tell(keys=[paces], args=[address, *_pace_words(reserved.own, now), self._now()])
        if answer.retry_after_s is not None:
            await self.push_back(host, address, min(answer.retry_after_s, LONGEST_ASKED_S))

    async def get_grants(self, hosts: Collection[str]) -> dict[str, HostGrants]:
        """See `Permits`. Raises redis.RedisError if Redis doesn't answer."""
        names = list(hosts)
        if not names:
            return {}
        keys = [key for name in names for key in self._keys(name, "")[::2]]
        found = {}
        for place, share, reserved_us, well, *addresses in await self._granted(keys=keys, args=[self._now()]):
            found[names[place]] = HostGrants(
                share=float(share),
                next_s=reserved_us / 1e6,
                answers_well=bool(well),
                addresses={
                    name.decode(): AddressGrants(share=float(own), next_s=rest_us / 1e6)
                    for name, own, rest_us in addresses
                },
            )
        return found

    async def _ask(
        self, host: str, address: str, limits: Limits, reserved: _Reserved, now: float
    ) -> list[float]:
        between_own_s, between_all_s = spacings_s(limits)
        waits = await self._reserve(
            keys=self._keys(host, address),
            args=[
                _us(between_own_s),
                _us(between_all_s),
                reserved.batch,
                _us(self._max_ahead_s),
                _us(_BATCH_AHEAD_S),
                int(between_all_s) + _EXPIRE_AFTER_S,
                self._now(),
                _us(MOST_DEBT_S),
                address,
                *_pace_words(reserved.own, now),
            ],
        )
        return [wait / 1e6 for wait in waits]

    def _reservation(self, host: str, address: str) -> _Reserved:
        reserved = self._reserved.get((host, address))
        if reserved is None:
            if len(self._reserved) >= self._sweep_at:
                self._forget_idle(self._clock())
            reserved = self._reserved[host, address] = _Reserved()
        return reserved

    def _forget_idle(self, now: float) -> None:
        self._reserved = {key: reserved for key, reserved in self._reserved.items() if reserved.matters(now)}
        self._sweep_at = _SWEEP_RESERVED + 2 * len(self._reserved)

    def _keys(self, host: str, address: str) -> list[str]:
        times = f"{_PREFIX}:{{{host}}}"
        return [times, f"{times}:{address}", f"{times}:pace"]

    def _now(self) -> int | str:
        return self._redis_now_us() if self._redis_now_us else ""


def _pace_words(own: AddressPace, now: float) -> list[float]:
    """The pace of an address as the scripts take it, and the seconds until it expires."""
    return [own.own_share, own.faults.share, own.evidence(now), int(REMEMBER_S)]


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
