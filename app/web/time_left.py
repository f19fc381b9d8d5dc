"""How long what is left takes, and what it waits for, from the store alone: whoever looks first is told, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.work_left import Came, work_left_s
from tasks.store.host_waits import HostQueue
from tasks.store.trends import Pace, open_subtasks

_FEWEST_PAGES = 5


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The known facts about the end.

    Attributes:
        said: the phrase that tells it (phrases.yaml), with `{n}` for subtasks that wait for hosts.
        seconds: until all is done, or until the next host is asked; None: not known.
        waiting: subtasks that wait for a host.
    """

    said: str
    seconds: float | None = None
    waiting: int = 0


def time_left(
    queues: Mapping[str, int], left: int, pace: Pace, waits: Sequence[HostQueue], now: datetime
) -> TimeLeft:
    """The time left.

    Args:
        left: hits to do of all open subtasks.
        pace: what was stored lately.
        waits: hosts that subtasks wait for.
    """
    unsettled, waiting = open_subtasks(queues), sum(one.subtasks for one in waits)
    if not sum(queues.values()):
        return TimeLeft("There is no work yet.")
    if not unsettled:
        return TimeLeft("Nothing is left to do.")
    if waits and unsettled <= waiting:
        soonest_s = min((one.until - now).total_seconds() for one in waits)
        return TimeLeft(
            "All that is left waits for hosts; the next one is asked in:", max(0.0, soonest_s), waiting
        )
    if pace.pages < _FEWEST_PAGES:
        return TimeLeft(
            "The time left is not known yet: hardly any page came in the last minutes.", None, waiting
        )
    silent = sum(one.left for one in waits if one.unreachable)
    half_s = pace.seconds / 2
    first, second = Came(pace.pages - pace.later_pages, half_s), Came(pace.later_pages, half_s)
    rests_s = max((((one.until - now).total_seconds()) for one in waits if not one.unreachable), default=0.0)
    return TimeLeft(
        "Time left, about:", max(rests_s, work_left_s(max(0, left - silent), first, second)), waiting
    )
