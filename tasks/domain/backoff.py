"""Exponential back-off: how long to wait after a number of failures in a row."""

from __future__ import annotations

_MOST_DOUBLINGS = 32
"""Beyond it a doubled time would only grow past what a float holds."""


def backoff_s(first_s: float, failures: int, longest_s: float) -> float:
    """Seconds to wait: `first_s` after one failure, twice as long after each further one in a row, at most `longest_s`.

    A caller whose waits would end all at once adds jitter (Brooker, Exponential backoff and jitter, AWS Architecture
    Blog, 2015).

    Args:
        failures: in a row, this one included.
    """
    return min(longest_s, first_s * 2.0 ** min(max(0, failures - 1), _MOST_DOUBLINGS))
