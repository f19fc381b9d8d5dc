"""What a run said of its time left while it went on, beside what came."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from types import MappingProxyType

WITHIN = 0.25
"""A reading is right within this share of what came, ..."""

_ROUNDING_S = 1.0
"""... or within this: it is said in whole seconds."""

_LINE = re.compile(r"^ *(\d+) s \| .* \| ([^|]*)$", re.MULTILINE)
_LEFT = re.compile(r"^about ([\d.e+]+) (ms|s|min|h|d) left")
_RAN = re.compile(r'^  "seconds": ([\d.]+)', re.MULTILINE)
_UNIT_S = MappingProxyType({"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0})

Readings = tuple[tuple[float, float | None], ...]
"""Seconds since the run began, and the seconds left that it said; None: it said that it does not know."""


def readings(text: str) -> Readings:
    """The readings among what `run` or `up` said."""
    return tuple(_readings(text))


def _readings(text: str) -> Iterator[tuple[float, float | None]]:
    for at_s, words in _LINE.findall(text):
        left = _LEFT.match(words)
        yield float(at_s), float(left[1]) * _UNIT_S[left[2]] if left else None


def ran_s(text: str) -> float | None:
    """How long a run took that ended, by its summary; None: it printed none."""
    found = _RAN.search(text)
    return float(found[1]) if found else None


def off(said: Sequence[tuple[float, float | None]], ended_s: float) -> float | None:
    """How far the readings of the second half of a run were off, in the median: a share of what came.

    None: there is none, or most of them said that they do not know. Of readings a second off or less it is 0.

    Args:
        said: see `Readings`.
        ended_s: seconds the run took.
    """
    errors = sorted(
        math.inf
        if left_s is None
        else 0.0
        if abs(left_s - (ended_s - at_s)) <= _ROUNDING_S
        else abs(left_s / (ended_s - at_s) - 1)
        for at_s, left_s in said
        if ended_s / 2 <= at_s <= ended_s
    )
    middle = statistics.median(errors) if errors else math.inf
    return None if math.isinf(middle) else middle


def within(said: Sequence[tuple[float, float | None]], ended_s: float) -> float | None:
    """The share of readings of the second half of a run that were right; None: there is none.

    Args:
        said: see `Readings`.
        ended_s: seconds the run took.
    """
    late = [(ended_s - at_s, left_s) for at_s, left_s in said if ended_s / 2 <= at_s <= ended_s]
    if not late:
        return None
    right = [
        left_s is not None and abs(left_s - came_s) <= max(WITHIN * came_s, _ROUNDING_S)
        for came_s, left_s in late
    ]
    return sum(right) / len(right)
