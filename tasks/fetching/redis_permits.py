"""Permits shared by all processes of a cluster: the same arithmetic as LocalPermits, in one Lua script.

Times are whole microseconds of Redis' own clock, so that the clocks of the nodes don't matter. A node that
often asks a host reserves several permits per round trip and hands them out itself. The pace of an address is worked
out in its process. Where a host is asked more slowly than configured, Redis keeps the paces of its addresses, each
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
from tasks.fetching.pace import (
    ALONE,
    NEW_ADDRESS,
    RECENT_S,
    AddressPace,
    AnswerSample,
    address_pace_after,
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

# The share of a host by the paces of its addresses (`tasks.fetching.pace.host_share`), and that of one of them.
_SHARES = f"""
local RECENT = {RECENT_S * 1e6:.0f}

local function host_share(paces, now)
  local best = {{0, 0}}
  for i = 2, #paces, 2 do
    local _, faults, evidence, at = string.match(paces[i], '(%S+) (%S+) (%S+) (%S+)')
    evidence = tonumber(evidence or 0)
    if evidence > 0 and now - at < RECENT then best[evidence] = math.max(best[evidence], faults) end
  end
  if best[2] > 0 then return best[2] end
  if best[1] > 0 then return best[1] end
  return 1
end

local function address_share(own, faults, host)
  if faults < host then faults = math.max(faults, math.min({ALONE}, host)) end
  return own * faults
end

local function tell(key, address, pace, keep, now)
  redis.call('HSET', key, address, pace .. string.format(' %.0f', now))
  redis.call('EXPIRE', key, math.max(keep, redis.call('TTL', key)))
end
"""

# KEYS: granted times of the host (sorted set), next time of the address, paces of the host's addresses (hash).
# ARGV: spacing of the address, spacing of the host, how many, furthest from now, furthest from the first,
#       seconds until the keys expire, now (empty: Redis' clock), most debt, the address, its own share, its share by
#       faults, its evidence (`AddressPace.evidence`), seconds until its pace expires. Times are in microseconds.
# Returns: waits from now. Only one where the times of others push it back (a host at its limit); where it would be over
# the furthest, its wait is returned and nothing reserved.
# A time near others' is put in step with them (see `tasks.fetching.permits.in_step`).
_RESERVE = (
    _NOW
    + _SHARES
    + """
local now = clock(ARGV[7])
local share, mine = 1, tonumber(ARGV[10]) * ARGV[11]
if mine < 1 or redis.call('EXISTS', KEYS[3]) == 1 then
  tell(KEYS[3], ARGV[9], table.concat({ARGV[10], ARGV[11], ARGV[12]}, ' '), ARGV[13], now)
  share = host_share(redis.call('HGETALL', KEYS[3]), now)
  mine = address_share(tonumber(ARGV[10]), tonumber(ARGV[11]), share)
end
local own, all = math.ceil(ARGV[1] / mine), math.ceil(ARGV[2] / share)
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

local waits, first, last = {}, nil, nil
while #waits < count do
  local gap = free(ideal)
  local at = free(in_step(gap))
  if at - now > tonumber(ARGV[4]) then
    if #waits == 0 then return {at - now} end
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

# KEYS: next time of the address, paces of the host's addresses (hash).
# ARGV: delay, seconds until the keys expire, now (empty: Redis' clock), the address.
_PUSH_BACK = (
    _NOW
    + """
local now = clock(ARGV[3])
local at = math.max(now + tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[1]) or now))
local left = math.max(tonumber(ARGV[2]), redis.call('TTL', KEYS[1]))
redis.call('SET', KEYS[1], string.format('%.0f', at), 'EX', left)
redis.call('HSET', KEYS[2], 'rest ' .. ARGV[4], string.format('%.0f', at))
redis.call('EXPIRE', KEYS[2], math.max(left, redis.call('TTL', KEYS[2])))
"""
)

# KEYS: paces of the host's addresses (hash).
# ARGV: the address, its own share, its share by faults, its evidence, seconds until its pace expires, now.
_TELL = (
    _NOW
    + _SHARES
    + """
tell(KEYS[1], ARGV[1], table.concat({ARGV[2], ARGV[3], ARGV[4]}, ' '), ARGV[5], clock(ARGV[6]))
"""
)

# KEYS: of each host, its granted times (sorted set) and the paces of its addresses (hash).
# ARGV: now (empty: Redis' clock).
# Returns, of each host with anything reserved or a pace: its place among the hosts, its share as text, microseconds
# until the last reserved time, 1 where an address is answered well, and of each address its name, share as text, and
# microseconds until its rest is over.
_GRANTED = (
    _NOW
    + _SHARES
    + """
local now, found = clock(ARGV[1]), {}
for i = 1, #KEYS, 2 do
  local last = redis.call('ZREVRANGE', KEYS[i], 0, 0)[1]
  local paces = redis.call('HGETALL', KEYS[i + 1])
  if last or #paces > 0 then
    local share, rests = host_share(paces, now), {}
    for j = 1, #paces, 2 do
      local name = string.match(paces[j], '^rest (.*)')
      if name then rests[name] = math.max(0, paces[j + 1] - now) end
    end
    local host = {(i - 1) / 2, tostring(share), math.max(0, (last or now) - now), 0}
    for j = 1, #paces, 2 do
      local own, faults, evidence, at = string.match(paces[j + 1], '(%S+) (%S+) (%S+) (%S+)')
      if own then
        local name = paces[j]
        host[#host + 1] = {name, tostring(address_share(own, tonumber(faults), share)), rests[name] or 0}
        rests[name] = nil
        if evidence == '2' and tonumber(faults) == 1 and now - at < RECENT then host[4] = 1 end
      end
    end
    for name, wait in pairs(rests) do host[#host + 1] = {name, '1', wait} end
    found[#found + 1] = host
  end
end
return found
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
        self._reserve = redis.register_script(_RESERVE)
        self._push_back = redis.register_script(_PUSH_BACK)
        self._tell = redis.register_script(_TELL)
        self._granted = redis.register_script(_GRANTED)
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
        """See `Permits`. Raises redis.RedisError where Redis doesn't answer."""
        self._reserved_of(host, address).times.clear()
        _, mine, paces = self._keys(host, address)
        keep_s = int(delay_s) + _EXPIRE_AFTER_S
        await self._push_back(keys=[mine, paces], args=[_us(delay_s), keep_s, self._now(), address])

    async def observe(self, host: str, address: str, limits: Limits, answer: AnswerSample) -> None:
        """See `Permits`. Redis is asked only where the pace falls, and for a Retry-After.

        Raises:
            redis.RedisError: Redis doesn't answer.
        """
        reserved = self._reserved_of(host, address)
        now, before = self._clock(), reserved.own.share(1.0)
        reserved.own = address_pace_after(reserved.own, answer, now, 1.0 / limits.per_address_per_s)
        if reserved.own.share(1.0) < before:
            reserved.times.clear()  # reserved at the pace that was too fast
            _, _, paces = self._keys(host, address)
            await self._tell(keys=[paces], args=[address, *_pace_words(reserved.own, now), self._now()])
        if answer.retry_after_s is not None:
            await self.push_back(host, address, min(answer.retry_after_s, LONGEST_ASKED_S))

    async def granted(self, hosts: Collection[str]) -> dict[str, HostGrants]:
        """See `Permits`. Raises redis.RedisError where Redis doesn't answer."""
        names = list(hosts)
        if not names:
            return {}
        keys = [key for name in names for key in self._keys(name, "")[::2]]
        found = {}
        for place, share, reserved_us, well, *addresses in await self._granted(keys=keys, args=[self._now()]):
            found[names[place]] = HostGrants(
                share=float(share),
                next_s=reserved_us / 1e6,
                well=bool(well),
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

    def _reserved_of(self, host: str, address: str) -> _Reserved:
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
