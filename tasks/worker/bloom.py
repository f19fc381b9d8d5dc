"""The sizes of a growing blocked Bloom filter: pure arithmetic, for whoever keeps the bits (`redis_seen`).

Blocked (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2009): all bits of a key lie in one
block, so that a question reads 64 bytes in one place. Growing (Almeida, Baquero, Preguiça, Hutchison: Scalable Bloom
Filters, 2007): a full layer is followed by a larger and stricter one, so that the errors of all layers together stay
below a bound however many keys come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

BLOCK_BITS = 512
HASHES = 8
"""Bits set per key: eight places of 9 bits and the number of the block fit into a key of 16 bytes."""

GROWTH = 2
TIGHTENING = 0.5
MOST_BITS = 2**32
"""Of one layer: what a Redis string holds (512 MB)."""


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
    """The least bits a key takes for this error rate, in steps of a quarter bit.

    Raises:
        ValueError: the rate is not between 1e-6 and 0.5.
    """
    if not 1e-6 <= error <= 0.5:
        raise ValueError(f"error rate {error}: must be between 0.000001 and 0.5")
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
