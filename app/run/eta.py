"""The time left of a crawl, from the rate of the last minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import HostQueue
from tasks.store.queue import snapshot
from tasks.store.sql.transaction import Transaction

_WINDOW_S = 300.0


class Ending(StrEnum):
    """Kinds of knowledge about the end of a crawl."""

    NO_WORK = "no work"
    NOTHING_LEFT = "nothing left"
    HOSTS = "hosts"
    DONE_IN = "done in"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The known facts about the end of a crawl.

    Attributes:
        seconds: `HOSTS`: seconds until the next host is asked. `DONE_IN`: seconds until all is done. Otherwise 0.
        waiting: number of subtasks that wait for a host.
        silent: number of those whose host doesn't answer. No estimate includes them.
        next_s: if all subtasks wait, seconds until the first host is asked.
    """

    ending: Ending
    seconds: float = 0.0
    waiting: int = 0
    silent: int = 0
    next_s: float | None = None


def time_left(tx: Transaction, queues: Mapping[str, int], waits: Sequence[HostQueue]) -> TimeLeft:
    """Estimate the time left as hits left / pages per second of the last 5 minutes, if no work is added.

    Args:
        queues: number of subtasks by state.
        waits: hosts that subtasks wait for.
    """
    unsettled, waiting = queue_queries.open_subtasks(queues), sum(one.subtasks for one in waits)
    if not unsettled:
        planned = sum(queues.values()) and snapshot.all_settled(tx)
        return TimeLeft(Ending.NOTHING_LEFT if planned else Ending.NO_WORK)
    silent = [one for one in waits if one.unreachable]
    silent_subtasks = sum(one.subtasks for one in silent)
    next_s = None
    if waits and unsettled <= waiting:
        next_s = max(0.0, min((one.until - tx.now).total_seconds() for one in waits))
    pace = queue_queries.pace(tx, _WINDOW_S)
    if next_s is not None and (silent or not pace.pages):
        return TimeLeft(Ending.HOSTS, next_s, waiting, silent_subtasks, next_s)
    if not pace.pages:
        return TimeLeft(Ending.UNKNOWN, 0.0, waiting, silent_subtasks)
    hits = max(0, queue_queries.open_left(tx) - sum(one.left for one in silent))
    seconds = max(next_s or 0.0, hits * pace.seconds / pace.pages)
    return TimeLeft(Ending.DONE_IN, seconds, waiting, silent_subtasks, next_s)
