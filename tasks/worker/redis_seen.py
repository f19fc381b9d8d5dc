"""The shared set of stored pages in a cluster: a growing blocked Bloom filter in plain Redis strings.

Blocked (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2009): all bits of a key lie in one
block, so that a question reads 64 bytes in one place. Growing (Almeida, Baquero, Preguiça, Hutchison: Scalable Bloom
Filters, 2007): a full layer is followed by a larger and stricter one, so that the errors of all layers add up to less
than a bound however many keys come.

Two Lua scripts read and set the bits, so that a batch of keys is one command and one round trip, and every process
sees the same layers. Nothing in here is the truth: a yes is confirmed in the database, a lost or flushed filter differs
from an empty one by its head, and is filled again from the database (`rebuild`).

Keys are the 16 bytes of `page_key`, a digest, so their bits are used as they are: 6 bytes choose the block, the next 8
and the bits of one more the 8 places in it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

T = TypeVar("T")

ERROR = 0.01
"""Share of new pages that are looked up in the database needlessly."""
FIRST_CAPACITY = 1_000_000

# One more than the last that laid out bits differently. The braces keep all keys on one server of a Redis Cluster.
_HEAD = "reviewloop:{seen:1}"
_BUILDING = f"{_HEAD}:building"
_BUILDING_S = 60
_TIMEOUT_S = 2.0
_REST_S = 5.0

# Of both scripts. KEYS: head. ARGV: keys of 16 bytes in one string.
# Head: ready (1: holds every page that was stored when it was made), layers, blocks:N of each, capacity and count of
# the newest, capacity of the first. A layer's string is there in full from the beginning: a shorter one was evicted;
# its remaining part would call stored pages new, so the head is deleted as well.
_COMMON = """
local head = KEYS[1]
local layers = tonumber(redis.call('HGET', head, 'layers') or 0)
local names, blocks, masks, powers = {}, {}, {128, 64, 32, 16, 8, 4, 2, 1}, {1, 2, 4, 8, 16, 32, 64, 128}
for n = 1, layers do
  names[n] = head .. ':' .. n
  blocks[n] = tonumber(redis.call('HGET', head, 'blocks:' .. n))
end
for n = 1, layers do
  if redis.call('STRLEN', names[n]) ~= blocks[n] * 64 then
    redis.call('DEL', head)
    layers = 0
    break
  end
end
local function places(at)
  local b = {string.byte(ARGV[1], at, at + 14)}
  local block, bits = 0, {}
  for i = 1, 6 do block = block * 256 + b[i] end
  for i = 1, 8 do
    bits[i] = b[6 + i]
    if bit.band(b[15], powers[i]) ~= 0 then bits[i] = bits[i] + 256 end
  end
  return block, bits
end
local function has(n, block, bits)
  local from = block % blocks[n] * 64
  local got = redis.call('GETRANGE', names[n], from, from + 63)
  for i = 1, 8 do
    local place = bits[i]
    local byte = string.byte(got, bit.rshift(place, 3) + 1)
    if bit.band(byte, masks[place % 8 + 1]) == 0 then return false end
  end
  return true
end
local function any(newest, block, bits)
  for n = newest, 1, -1 do
    if has(n, block, bits) then return true end
  end
  return false
end
"""

# Returns a string of 1 (maybe) and 0 (new); nil if there is no set to ask.
_HAS = (
    _COMMON
    + """
if redis.call('HGET', head, 'ready') ~= '1' then return false end
local answers = {}
for at = 1, #ARGV[1], 16 do
  answers[#answers + 1] = any(layers, places(at)) and '1' or '0'
end
return table.concat(answers)
"""
)

# Returns layers, count and capacity of the newest, capacity of the first; nil if there is no set: its next builder
# reads these pages from the database. A key that is there already does not count.
_ADD = (
    _COMMON
    + """
if layers == 0 then return false end
local new = 0
local name, count = names[layers], blocks[layers]
for at = 1, #ARGV[1], 16 do
  local block, bits = places(at)
  if not any(layers - 1, block, bits) then
    local from, changed = block % count * 64, false
    local bytes = {string.byte(redis.call('GETRANGE', name, from, from + 63), 1, 64)}
    for i = 1, 8 do
      local place, mask = bit.rshift(bits[i], 3) + 1, masks[bits[i] % 8 + 1]
      if bit.band(bytes[place], mask) == 0 then
        bytes[place] = bytes[place] + mask
        changed = true
      end
    end
    if changed then
      redis.call('SETRANGE', name, from, string.char(unpack(bytes)))
      new = new + 1
    end
  end
end
local own = redis.call('HMGET', head, 'capacity', 'first')
return {layers, redis.call('HINCRBY', head, 'count', new), tonumber(own[1]), tonumber(own[2])}
"""
)

# KEYS: head. ARGV: layers there must be, capacity and blocks of the next one, capacity of the first.
_GROW = """
local layers = tonumber(redis.call('HGET', KEYS[1], 'layers') or 0)
if layers ~= tonumber(ARGV[1]) then return 0 end
local name = KEYS[1] .. ':' .. layers + 1
redis.call('DEL', name)
redis.call('SETBIT', name, string.format('%.0f', ARGV[3] * 512 - 1), 0)
redis.call('HSET', KEYS[1], 'layers', layers + 1, 'capacity', ARGV[2], 'count', 0, 'blocks:' .. layers + 1, ARGV[3])
redis.call('HSET', KEYS[1], 'first', ARGV[4])
return 1
"""


BLOCK_BITS = 512
HASHES = 8
"""Bits set per key: eight places of 9 bits and the number of the block fit into a key of 16 bytes."""

GROWTH = 2
TIGHTENING = 0.5
MOST_BITS = 2**32
"""Maximum size of a layer: the limit of a Redis string (512 MB)."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One filter of a series.

    Attributes:
        capacity: keys it takes; the next one begins when it has them.
        blocks: of `BLOCK_BITS` bits.
    """

    capacity: int
    blocks: int


def error_rate(bits_per_key: float) -> float:
    """Share of absent keys a full blocked filter calls present (Putze et al., section 3).

    The keys of a block are Poisson distributed around BLOCK_BITS / bits_per_key; a block that holds i keys errs like a
    Bloom filter of its own.
    """
    mean = BLOCK_BITS / bits_per_key
    rate, weight = 0.0, math.exp(-mean)
    for keys in range(1, int(mean + 12 * math.sqrt(mean)) + 2):
        weight *= mean / keys
        rate += weight * (1 - (1 - 1 / BLOCK_BITS) ** (HASHES * keys)) ** HASHES
    return rate


@lru_cache
def bits_per_key(error: float) -> float:
    """The least bits a key takes for this error rate (above 0), in steps of a quarter bit."""
    quarters = 4
    while error_rate(quarters / 4) > error:
        quarters += 1
    return quarters / 4


def layer(number: int, first_capacity: int, error: float) -> Layer:
    """The layer of this number in a series whose errors add up to less than `error`.

    The first errs at error x (1 - TIGHTENING), each later one at TIGHTENING of the one before (Almeida et al.,
    section 3: the sum is a geometric series).

    Args:
        number: from 1 on.
        first_capacity: keys in layer 1; each later one takes GROWTH times the one before.
    """
    own_error = max(1e-6, error * (1 - TIGHTENING) * TIGHTENING ** (number - 1))
    per_key = bits_per_key(own_error)
    capacity = min(first_capacity * GROWTH ** (number - 1), int(MOST_BITS / per_key))
    return Layer(capacity, math.ceil(capacity * per_key / BLOCK_BITS))


class RedisSeen:
    """A shared set (see `tasks.worker.seen.SharedSet`) of all processes of a cluster.

    While Redis is away, look-ups return None at once; it is tried again every few seconds.

    Args:
        redis: an open client; its owner closes it.
        clock: monotonic seconds.
        note_loss: called with the error if Redis does not answer.
        first_capacity: keys of the first layer a rebuild makes, at least.
    """

    def __init__(
        self,
        redis: Redis,
        clock: Callable[[], float],
        note_loss: Callable[[Exception], None] = lambda _error: None,
        *,
        first_capacity: int = FIRST_CAPACITY,
    ) -> None:
        self._redis = redis
        self._clock = clock
        self._note_loss = note_loss
        self._first_capacity = first_capacity
        self._has = redis.register_script(_HAS)
        self._add = redis.register_script(_ADD)
        self._grow = redis.register_script(_GROW)
        self._away_until: float | None = None

    async def has(self, keys: Sequence[bytes]) -> list[bool] | None:
        """Return for each key whether it may be stored; None if there is no complete set, or Redis is away."""
        answer = await self._try(lambda: self._has(keys=[_HEAD], args=[b"".join(keys)]))
        return (
            None if answer is None else [one in (49, "1") for one in answer]
        )  # bytes or text: the client's choice

    async def add(self, keys: Sequence[bytes]) -> bool:
        """Add pages that are committed; False: Redis is away, so try again later.

        Without a set they are dropped: whoever makes one reads them from the database.
        """
        return await self._try(lambda: self._add_keys(keys)) is not None

    async def rebuild(self, pages: int, batches: Iterable[Sequence[bytes]]) -> bool:
        """Build the set from the database, unless it is complete or another process builds it.

        Nodes may go on adding: the head is there before the first batch is read, so that a page committed later
        comes in through its node.

        Args:
            pages: how many there are, about.
            batches: their keys; read only if they are needed. Not on a node's event loop, if it blocks.

        Returns:
            Whether it was made, whole, by this call.

        Raises:
            RedisError, OSError: Redis is away. The next call completes a half-built set.
        """
        if await self._redis.hget(_HEAD, "ready") is not None:
            return False
        if not await self._redis.set(_BUILDING, 1, nx=True, ex=_BUILDING_S):
            return False
        await self._grow_to(1, max(self._first_capacity, 2 * pages))
        for batch in batches:
            if await self._add_keys(batch) is False:
                return False  # flushed meanwhile: from the beginning, next time
            await self._redis.expire(_BUILDING, _BUILDING_S)
        await self._redis.hset(_HEAD, "ready", 1)
        await self._redis.delete(_BUILDING)
        return True

    async def _add_keys(self, keys: Sequence[bytes]) -> bool:
        """Add keys, and a new layer once the newest is full. Return False if there is no set."""
        answer = await self._add(keys=[_HEAD], args=[b"".join(keys)])
        if answer is None:
            return False
        layers, count, capacity, first = answer
        if count >= capacity:
            await self._grow_to(layers + 1, first)
        return True

    async def _grow_to(self, number: int, first_capacity: int) -> None:
        """Add the layer of this number, unless another node added it."""
        made = layer(number, first_capacity, ERROR)
        await self._grow(keys=[_HEAD], args=[number - 1, made.capacity, made.blocks, first_capacity])

    async def _try(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        if self._away_until is not None and self._clock() < self._away_until:
            return None
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await ask()
        except (RedisError, OSError) as error:  # OSError: TimeoutError is one
            self._note_loss(error)
            self._away_until = self._clock() + _REST_S
            return None
        self._away_until = None
        return answer
