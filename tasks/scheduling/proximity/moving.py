"""The delay of a pair as attempt after attempt measures it: a value that moves slowly.

A measurement is the distance and whatever was in its way, and what is in the way only adds. So a faster one counts by
the number of its response times, and a slower one a quarter as much: a host that is busy for an hour has not moved, one
that moved is seen all the same. What was known before weighs as `MEMORY` response times at most.
"""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 50
"""Response times beyond which older ones fade."""

_SLOWER = 0.25


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """How far a site is from a node.

    Attributes:
        ms: with the noise removed, above 0.
        n: response times it rests on, at least 1.
    """

    ms: float
    n: int


def moved(known: RoundTrip | None, measured: RoundTrip) -> RoundTrip:
    """What is known of a pair once another attempt has measured it; within the range of both."""
    if known is None:
        return measured
    before = min(known.n, MEMORY)
    weight = measured.n * (_SLOWER if measured.ms > known.ms else 1.0)
    share = weight / (before + weight)
    return RoundTrip(known.ms + share * (measured.ms - known.ms), known.n + measured.n)
