"""Chance without a state: the same seed and names give the same draw, in any order and process."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

_SEPARATOR = "\x1f"


def number(seed: int, *names: object) -> int:
    """A whole number, uniform in [0, 2**64), of a seed and of what it is drawn for."""
    key = _SEPARATOR.join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def share(seed: int, *names: object) -> float:
    """A number uniform in [0, 1) of a seed and of what it is drawn for."""
    return (number(seed, *names) >> 11) / 2**53


def generator(seed: int, *names: object) -> Random:
    """A random generator of its own for what is drawn for one thing (a page, a site)."""
    return Random(number(seed, *names))
