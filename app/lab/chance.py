"""Random numbers that are a function of a seed and names, so they are the same in any order and process."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

_SEPARATOR = "\x1f"


def number(seed: int, *names: object) -> int:
    """Return a whole number in [0, 2**64). The same seed and names always give the same number."""
    key = _SEPARATOR.join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def share(seed: int, *names: object) -> float:
    """Return a number in [0, 1). The same seed and names always give the same number."""
    return (number(seed, *names) >> 11) / 2**53


def generator(seed: int, *names: object) -> Random:
    """Return a random generator that is seeded by a seed and names, such as those of a page or a site."""
    return Random(number(seed, *names))
