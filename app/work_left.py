"""How long what is left takes, and what it waits for; pages come the slower the fewer are left.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tasks.store.host_waits import HostQueue
from tasks.store.trends import open_subtasks

_USUAL, _SPREAD = 0.6, 0.1
_NEARLY_1 = 1e-3
_FEWEST_SETTLED = 5


class Ending(StrEnum):
    """What is known of the end: there is no work, or none left; a host is asked next in, or all is done in, a time."""

    NO_WORK = "no work"
    NOTHING_LEFT = "nothing left"
    HOSTS = "hosts"
    DONE_IN = "done in"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The known facts about the end.

    Attributes:
        seconds: of `HOSTS` until the next host is asked, of `DONE_IN` until all is done; else 0.
        waiting: subtasks that wait for a host.
        silent: those of them whose host does not answer: nobody knows how long they take.
    """

    ending: Ending
    seconds: float = 0.0
    waiting: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True)
class Came:
    """Pages that came in a time, of a length in seconds above 0."""

    pages: float
    seconds: float


def time_left(
    queues: Mapping[str, int],
    left: int,
    first: Came,
    second: Came | None,
    waits: Sequence[HostQueue],
    now: datetime,
    *,
    fewest_pages: int,
    settled: int = 0,
) -> TimeLeft:
    """The time left, if no work is added.

    Args:
        left: hits to do of all open subtasks.
        first, second: what came in two times, one after the other, until now; no second: the rate stays as it is.
        waits: hosts that subtasks wait for; where it is known until when, that is part of the time.
        fewest_pages: fewer than this say nothing.
        settled: subtasks settled in these times, which tell where too few pages came.
    """
    unsettled, waiting = open_subtasks(queues), sum(one.subtasks for one in waits)
    if not sum(queues.values()):
        return TimeLeft(Ending.NO_WORK)
    if not unsettled:
        return TimeLeft(Ending.NOTHING_LEFT)
    ends_s = [((one.until - now).total_seconds(), one.unreachable) for one in waits]
    if waits and unsettled <= waiting:
        return TimeLeft(Ending.HOSTS, max(0.0, min(end_s for end_s, _ in ends_s)), waiting)
    silent = [one for one in waits if one.unreachable]
    of_silent = sum(one.subtasks for one in silent)
    pages, passed_s = first.pages, first.seconds
    if second is not None:
        pages, passed_s = pages + second.pages, passed_s + second.seconds
    if pages >= fewest_pages and left:
        known = max(0, left - sum(one.left for one in silent))
        work_s = known * passed_s / pages if second is None else work_left_s(known, first, second)
    elif settled >= _FEWEST_SETTLED:
        work_s = (unsettled - of_silent) * passed_s / settled
    elif pages >= fewest_pages:
        work_s = 0.0  # no hit is left
    else:
        return TimeLeft(Ending.UNKNOWN, 0.0, waiting, of_silent)
    rests_s = max((end_s for end_s, unreachable in ends_s if not unreachable), default=0.0)
    return TimeLeft(Ending.DONE_IN, max(work_s, rests_s), waiting, of_silent)


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
