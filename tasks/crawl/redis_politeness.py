"""Send times shared by all processes of a cluster: the same arithmetic as LocalSendTimes, in one Lua script.

Times are whole microseconds of Redis' own clock, so that the clocks of the nodes don't matter. A node that
asks a host often reserves several send times per round trip and hands them out itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from redis.asyncio import Redis
from splitter.catalog.model import Limits

from tasks.crawl.politeness import MAX_AHEAD_S, spacings_s

# A batch reaches no further than this: what is reserved and then not needed is lost to others, and times strewn
# ahead leave gaps too small to use. Addresses with a spacing above it reserve one time after the other.
_BATCH_AHEAD_S = 0.25
_MAX_BATCH = 32
# A held time is met up to so much late (within SPACING_MARGIN's room), then dropped.
_LATE_S = 0.1
_SWEEP_HELD = 1000
_PREFIX = "reviewloop:send"
_EXPIRE_AFTER_S = 60

# KEYS: granted times of the host (sorted set), next time of the address.
# ARGV: spacing of the address, spacing of the host, how many, furthest from now, furthest from the first,
#       seconds until the keys expire, now (empty: Redis' clock). Times are in microseconds.
# Returns: waits from now. Only one where others stand in its way (a host at its limit: measured with 5 nodes at 20/s
# on a host of 50/s, batches regardless used 75 % of it, this 92 %); none reserved where it is over the furthest.
_RESERVE = """
local now = tonumber(ARGV[7])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local own, all, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - all))
local at = math.max(now, tonumber(redis.call('GET', KEYS[2]) or now))
local wanted, first, last = at, nil, nil
local waits = {}
local taken = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', at - all), '+inf')
local i = 1
while #waits < count do
  while taken[i] do
    local other = tonumber(taken[i])
    if other - at >= all then break end
    if at - other < all then at = other + all end
    i = i + 1
  end
  if at - now > tonumber(ARGV[4]) then
    if #waits == 0 then return {at - now} end
    break
  end
  if first and at - first > tonumber(ARGV[5]) then break end
  if not first and at > wanted then count = 1 end
  first, last = first or at, at
  local word = string.format('%.0f', at)
  redis.call('ZADD', KEYS[1], word, word)
  waits[#waits + 1] = at - now
  at = at + math.max(own, all)
end
local keep = tonumber(ARGV[6])
redis.call('EXPIRE', KEYS[1], keep)
redis.call('SET', KEYS[2], string.format('%.0f', last + own), 'EX', keep + math.ceil(own / 1000000))
return waits
"""

# KEYS: next time of the address. ARGV: delay, seconds until the key expires, now (empty: Redis' clock).
_PUSH_BACK = """
local now = tonumber(ARGV[3])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local at = math.max(now + tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[1]) or now))
redis.call('SET', KEYS[1], string.format('%.0f', at), 'EX', ARGV[2])
"""


@dataclass(slots=True)
class _Held:
    """Send times of one (host, address) reserved and not yet handed out.

    Attributes:
        times: on the local clock, ascending.
        batch: how many to reserve next: grows while all of a batch is used, shrinks when some went stale.
        lock: held while Redis is asked, so that those who wait share the answer.
    """

    times: deque[float] = field(default_factory=deque)
    batch: int = 1
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RedisSendTimes:
    """Send times of a cluster (see `tasks.crawl.politeness.SendTimes`).

    One process, one event loop per object: a node's address must not be shared by several processes, or a
    rest its host asks for would not reach the times the other one holds.

    Args:
        redis: an open client; its owner closes it.
        clock: monotonic seconds of this process, to hand out what is held.
        max_ahead_s: a send time further ahead is told, and not reserved.
        redis_now_us: in tests, the time Redis is told instead of asking its own clock.
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
        self._held: dict[tuple[str, str], _Held] = {}

    async def reserve(self, host: str, address: str, limits: Limits) -> float:
        """See `SendTimes`. Raises redis.RedisError where Redis doesn't answer."""
        held = self._held_of(host, address)
        async with held.lock:
            now = self._clock()
            self._drop_stale(held, now)
            if held.times:
                return max(0.0, held.times.popleft() - now)
            waits_s = await self._ask(host, address, limits, held.batch)
            if len(waits_s) == held.batch:
                held.batch = min(_MAX_BATCH, 2 * held.batch)
            # Counted from the answer on: a slow round trip makes a request late, never early.
            now = self._clock()
            held.times.extend(now + wait_s for wait_s in waits_s[1:])
            return waits_s[0]

    async def push_back(self, host: str, address: str, delay_s: float) -> None:
        """See `SendTimes`. Raises redis.RedisError where Redis doesn't answer."""
        self._held_of(host, address).times.clear()
        keys = self._keys(host, address)
        keep_s = int(delay_s) + _EXPIRE_AFTER_S
        await self._push_back(keys=keys[1:], args=[_us(delay_s), keep_s, self._now()])

    async def _ask(self, host: str, address: str, limits: Limits, count: int) -> list[float]:
        between_own_s, between_all_s = spacings_s(limits)
        waits = await self._reserve(
            keys=self._keys(host, address),
            args=[
                _us(between_own_s),
                _us(between_all_s),
                count,
                _us(self._max_ahead_s),
                _us(_BATCH_AHEAD_S),
                int(between_all_s) + _EXPIRE_AFTER_S,
                self._now(),
            ],
        )
        return [wait / 1e6 for wait in waits]

    def _held_of(self, host: str, address: str) -> _Held:
        held = self._held.get((host, address))
        if held is None:
            if len(self._held) >= _SWEEP_HELD:
                self._held = {key: h for key, h in self._held.items() if h.times or h.lock.locked()}
            held = self._held[host, address] = _Held()
        return held

    @staticmethod
    def _drop_stale(held: _Held, now: float) -> None:
        while held.times and held.times[0] < now - _LATE_S:
            held.times.popleft()
            held.batch = max(1, held.batch // 2)

    def _keys(self, host: str, address: str) -> list[str]:
        return [f"{_PREFIX}:{{{host}}}", f"{_PREFIX}:{{{host}}}:{address}"]

    def _now(self) -> int | str:
        return self._redis_now_us() if self._redis_now_us else ""


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
