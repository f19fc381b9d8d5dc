"""How long what is left takes, where pages come the slower the fewer are left.

At the end of a run most hosts have nothing left, and what failed is tried again. So the rate falls with what is left:

    dL/dt = -c L^p    =>    c t = (L0^(1-p) - L^(1-p)) / (1-p)    (p = 1: ln(L0 / L))

That gives c from the time before, and the time until one is left.

p = 0: an even rate; p = 1: half of what is left always takes as long. p is estimated from two times that follow one
another, with the rates r1 and r2, and L1 and L2 left in their middles: ln(r1 / r2) is p ln(L1 / L2), with the variance
1 / (n1 + 1/2) + 1 / (n2 + 1/2) where n1 and n2 pages came. Before that p is believed to be normal with mean `_USUAL`
and standard deviation `_SPREAD`, so a run with many pages decides for itself. (Both from 15 small jobs of
`bench field`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_USUAL, _SPREAD = 0.6, 0.1
_NEARLY_1 = 1e-3


@dataclass(frozen=True, slots=True)
class Came:
    """Pages that came in a time, of a length in seconds above 0."""

    pages: float
    seconds: float


def work_left_s(left: float, first: Came, second: Came) -> float:
    """Seconds until all is done.

    Args:
        left: pages to come, now.
        first, second: what came in two times, one after the other, until now; not nothing in both.
    """
    if left <= 0:
        return 0.0
    came, passed_s = first.pages + second.pages, first.seconds + second.seconds
    span = math.log((left + second.pages + first.pages / 2) / (left + second.pages / 2))
    fall = math.log((first.pages + 0.5) / first.seconds * second.seconds / (second.pages + 0.5))
    variance = 1 / (first.pages + 0.5) + 1 / (second.pages + 0.5)
    certain = 1 / _SPREAD**2
    p = (span * fall / variance + _USUAL * certain) / (span**2 / variance + certain)
    p = min(1.0, max(0.0, p))
    until = min(1.0, left / 2)
    return passed_s * _work(left, until, p) / _work(left + came, left, p)


def _work(begin: float, end: float, p: float) -> float:
    """c t, where so much is left at the begin and at the end of a time t."""
    if 1.0 - p < _NEARLY_1:
        return math.log(begin / end)
    return float(begin ** (1 - p) - end ** (1 - p)) / (1 - p)
