"""Permits shared by all processes of a cluster: the same arithmetic as LocalPermits, in one Lua script.

Times are whole microseconds of Redis' own clock, so that the clocks of the nodes don't matter. A node that
often asks a host reserves several permits per round trip and hands them out itself. The pace of its own address stays
in its process; the pace of the host as a whole is kept in Redis, written only when it changes, and applied to what any
node reserves.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from redis.asyncio import Redis
from splitter.catalog.model import Limits

from tasks.domain.breaker import LONGEST_ASKED_S
from tasks.fetching.pace import (
    CUT,
    FLOOR,
    FULL,
    NEW_ADDRESS,
    STEP,
    AddressPace,
    AnswerSample,
    Pace,
    address_pace_after,
    host_pace_after,
    round_length_s,
)
from tasks.fetching.permits import MAX_AHEAD_S, MOST_DEBT_S, REMEMBER_S, spacings_s, still_slows

# A batch reaches no further ahead: permits reserved and not used are lost to others, and single times far ahead leave
# gaps too small to use. Addresses with a wider spacing reserve one permit at a time.
_BATCH_AHEAD_S = 0.25
_MAX_BATCH = 32
# A reserved permit is used up to so much late (SPACING_MARGIN leaves as much), then dropped.
_LATE_S = 0.1
_SWEEP_RESERVED = 1000
_PREFIX = "reviewloop:send"
_EXPIRE_AFTER_S = 60

_NOW = """
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
"""

# KEYS: granted times of the host (sorted set), next time of the address, pace of the host (hash).
# ARGV: spacing of the address, spacing of the host, how many, furthest from now, furthest from the first,
#       seconds until the keys expire, now (empty: Redis' clock), most debt. Times are in microseconds.
# Returns: the host's pace, as text, and waits from now. Only one where the times of others push it back (a host at its
# limit); where it would be over the furthest, its wait is returned and nothing reserved.
# A time near others' is put in step with them (see `tasks.fetching.permits.in_step`).
_RESERVE = (
    _NOW
    + """
local now = clock(ARGV[7])
local share = redis.call('HGET', KEYS[3], 'share') or '1'
local own, all = math.ceil(ARGV[1] / share), math.ceil(ARGV[2] / share)
local count, debt, near = tonumber(ARGV[3]), tonumber(ARGV[8]), math.max(own, all) + all
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - near))
local ideal = math.max(now, tonumber(redis.call('GET', KEYS[2]) or now))
local taken = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', ideal - near), '+inf')
local i, before = 1, nil

local function free(at)
  while taken[i] and tonumber(taken[i]) - at < all do
    before = tonumber(taken[i])
    at = math.max(at, before + all)
    i = i + 1
  end
  return at
end

local function in_step(at)
  local after = taken[i] and tonumber(taken[i])
  if after and after - at < near then return after - math.floor((after - at) / all) * all end
  if before and at - before < near then return before + math.ceil((at - before) / all) * all end
  return at
end

local waits, first, last = {share}, nil, nil
while #waits <= count do
  local gap = free(ideal)
  local at = free(in_step(gap))
  if at - now > tonumber(ARGV[4]) then
    if #waits == 1 then return {share, at - now} end
    break
  end
  if first and at - first > tonumber(ARGV[5]) then break end
  if not first and gap > ideal then count = 1 end
  first, before = first or at, at
  local word = string.format('%.0f', at)
  redis.call('ZADD', KEYS[1], word, word)
  waits[#waits + 1] = at - now
  last = at - math.min(at - gap, debt)
  ideal = last + own
  if ideal < at + all then ideal = at + all end
end
local keep = math.ceil(ARGV[6] / share)
redis.call('EXPIRE', KEYS[1], keep)
redis.call('SET', KEYS[2], string.format('%.0f', last + own), 'EX', keep + math.ceil(own / 1000000))
return waits
"""
)

# KEYS: next time of the address. ARGV: delay, seconds until the key expires, now (empty: Redis' clock).
_PUSH_BACK = (
    _NOW
    + """
local now = clock(ARGV[3])
local at = math.max(now + tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[1]) or now))
local left = math.max(tonumber(ARGV[2]), redis.call('TTL', KEYS[1]))
redis.call('SET', KEYS[1], string.format('%.0f', at), 'EX', left)
"""
)

# One step of the law, as `tasks.fetching.pace.stepped` takes it, once for all processes.
# KEYS: pace of the host (hash). ARGV: step up (or 0), factor down, least share, length of a round, seconds until the
# key expires, now (empty: Redis' clock). Returns: the pace, as text.
_MOVE = (
    _NOW
    + """
local now = clock(ARGV[6])
local known = redis.call('HMGET', KEYS[1], 'share', 'cut', 'raised')
local share, cut, raised = tonumber(known[1] or 1), tonumber(known[2] or 0), tonumber(known[3] or 0)
local step, factor, least, round = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if step > 0 then
  if share < 1 and now - math.max(cut, raised) >= round then
    share, raised = math.min(1, share + step), now
  end
elseif share > least and now - cut >= round then
  share, cut = math.max(least, share * factor), now
end
local word = string.format('%.17g', share)
redis.call('HSET', KEYS[1], 'share', word, 'cut', string.format('%.0f', cut),
  'raised', string.format('%.0f', raised))
redis.call('EXPIRE', KEYS[1], ARGV[5])
return word
"""
)


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
        return bool(self.times) or self.lock.locked() or still_slows(self.own.pace, now)


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
        self._reserve = redis.register_script(_RESERVE)
        self._push_back = redis.register_script(_PUSH_BACK)
        self._move = redis.register_script(_MOVE)
        # Of hosts as a whole; the share is the last one read from Redis. Hosts at full pace are missing.
        self._paces: dict[str, Pace] = {}
        self._reserved: dict[tuple[str, str], _Reserved] = {}
        self._sweep_at = _SWEEP_RESERVED

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """See `Permits`. Raises redis.RedisError where Redis doesn't answer."""
        reserved = self._reserved_of(host, address)
        reserved.asking += 1
        try:
            return await self._next(reserved, host, address, limits)
        finally:
            reserved.asking -= 1

    async def _next(self, reserved: _Reserved, host: str, address: str, limits: Limits) -> float:
        async with reserved.lock:
            now = self._clock()
            self._drop_stale(reserved, now)
            if reserved.times:
                return max(0.0, reserved.times.popleft() - now)
            # Those that wait for the lock meanwhile go by the same answer.
            reserved.batch = min(_MAX_BATCH, max(reserved.batch, reserved.asking))
            waits_s = await self._ask(host, address, limits, reserved)
            if len(waits_s) == reserved.batch:
                reserved.batch = min(_MAX_BATCH, 2 * reserved.batch)
            # Counted from the answer on: a slow round trip makes a request late, never early.
            now = self._clock()
            reserved.times.extend(now + wait_s for wait_s in waits_s[1:])
            return waits_s[0]

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """See `Permits`. Raises redis.RedisError where Redis doesn't answer."""
        self._reserved_of(host, address).times.clear()
        _, mine, _ = self._keys(host, address)
        keep_s = int(delay_s) + _EXPIRE_AFTER_S
        await self._push_back(keys=[mine], args=[_us(delay_s), keep_s, self._now()])

    async def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample) -> None:
        """See `Permits`. Redis is asked only where the host's pace is to change, and for a Retry-After.

        Raises:
            redis.RedisError: Redis doesn't answer.
        """
        reserved = self._reserved_of(host, address)
        now = self._clock()
        before = reserved.own.pace.share
        reserved.own = address_pace_after(reserved.own, answer, now, 1.0 / limits.per_address_per_s)
        if reserved.own.pace.share < before:
            reserved.times.clear()  # reserved at the pace that was too fast
        pace = self._paces.get(host, FULL)
        if answer.error is not None or pace is not FULL:
            after = host_pace_after(pace, answer, now, 1.0 / limits.total_per_s)
            self._keep(host, after)
            if after.share != pace.share:
                await self._step(host, limits, pace, after)
        if answer.retry_after_s is not None:
            await self.push_back(host, address, min(answer.retry_after_s, LONGEST_ASKED_S))

    async def _step(self, host: str, limits: Limits, before: Pace, after: Pace) -> None:
        """Let Redis take the step for all processes, and take over the pace that comes of it."""
        round_s = round_length_s(before.share, 1.0 / limits.total_per_s)
        share = await self._move(
            keys=[self._keys(host, "")[2]],
            args=[
                STEP if after.share > before.share else 0,
                CUT,
                FLOOR,
                _us(round_s),
                int(REMEMBER_S + round_s),
                self._now(),
            ],
        )
        self._keep(host, replace(self._paces.get(host, FULL), share=float(share)))

    def _keep(self, host: str, pace: Pace) -> None:
        if pace.untroubled:
            self._paces.pop(host, None)
        else:
            self._paces[host] = pace

    async def _ask(self, host: str, address: str, limits: Limits, reserved: _Reserved) -> list[float]:
        between_own_s, between_all_s = spacings_s(limits)
        share, *waits = await self._reserve(
            keys=self._keys(host, address),
            args=[
                _us(between_own_s / reserved.own.pace.share),
                _us(between_all_s),
                reserved.batch,
                _us(self._max_ahead_s),
                _us(_BATCH_AHEAD_S),
                int(between_all_s) + _EXPIRE_AFTER_S,
                self._now(),
                _us(MOST_DEBT_S),
            ],
        )
        known = self._paces.get(host, FULL)
        if float(share) != known.share:
            self._keep(host, replace(known, share=float(share)))
        return [wait / 1e6 for wait in waits]

    def _reserved_of(self, host: str, address: str) -> _Reserved:
        reserved = self._reserved.get((host, address))
        if reserved is None:
            if len(self._reserved) >= self._sweep_at:
                self._forget_idle(self._clock())
            reserved = self._reserved[host, address] = _Reserved()
        return reserved

    def _forget_idle(self, now: float) -> None:
        self._reserved = {key: reserved for key, reserved in self._reserved.items() if reserved.matters(now)}
        self._paces = {host: pace for host, pace in self._paces.items() if still_slows(pace, now)}
        self._sweep_at = _SWEEP_RESERVED + 2 * len(self._reserved)

    @staticmethod
    def _drop_stale(reserved: _Reserved, now: float) -> None:
        while reserved.times and reserved.times[0] < now - _LATE_S:
            reserved.times.popleft()
            reserved.batch = max(1, reserved.batch // 2)

    def _keys(self, host: str, address: str) -> list[str]:
        times = f"{_PREFIX}:{{{host}}}"
        return [times, f"{times}:{address}", f"{times}:pace"]

    def _now(self) -> int | str:
        return self._redis_now_us() if self._redis_now_us else ""


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
