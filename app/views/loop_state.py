"""The state of the loop at a moment, with the time left by the rate of the last minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tasks.domain.states import count_open
from tasks.store.queries.queues import (
    HostQueue,
    WaitingSummary,
    count_open_hits,
    get_pace,
    get_waiting_summary,
    list_host_waits,
)
from tasks.store.queue import nodes, snapshot, tasks, transitions
from tasks.store.queue.nodes import NodeRow
from tasks.store.queue.tasks import UnplannedSite
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """The state of the loop at a moment.

    Attributes:
        now: by the store's clock.
        queues: number of subtasks by state.
        load: delayed and waiting subtasks.
        waits: hosts that subtasks wait for.
        unplanned: sites that could not be asked.
    """

    now: datetime
    queues: Mapping[str, int]
    load: WaitingSummary
    waits: Sequence[HostQueue]
    left: TimeLeft
    unplanned: Sequence[UnplannedSite]
    nodes: Sequence[NodeRow]

    @property
    def open(self) -> int:
        """Number of subtasks that are not settled."""
        return count_open(self.queues)


def read_state(tx: Transaction, hosts_of: snapshot.HostsOf, silent_after: timedelta) -> LoopState:
    """Return the state of the loop now.

    Args:
        silent_after: as of `list_host_waits`.
    """
    queues = transitions.count_queues(tx)
    waits = list_host_waits(tx, hosts_of, silent_after)
    return LoopState(
        now=tx.now,
        queues=queues,
        load=get_waiting_summary(tx),
        waits=waits,
        left=estimate_time_left(tx, queues, waits),
        unplanned=tasks.list_late_sites(tx),
        nodes=nodes.list_nodes(tx),
    )


def estimate_time_left(tx: Transaction, queues: Mapping[str, int], waits: Sequence[HostQueue]) -> TimeLeft:
    """Estimate the time left as hits left / pages per second of the last 5 minutes, if no work is added."""
    unsettled, waiting = count_open(queues), sum(one.subtasks for one in waits)
    if not unsettled:
        planned = sum(queues.values()) and snapshot.all_settled(tx)
        return TimeLeft(Ending.NOTHING_LEFT if planned else Ending.NO_WORK)
    silent = [one for one in waits if one.unreachable]
    silent_subtasks = sum(one.subtasks for one in silent)
    next_s = None
    if waits and unsettled <= waiting:
        next_s = max(0.0, min((one.until - tx.now).total_seconds() for one in waits))
    pages_per_s = get_pace(tx, _WINDOW_S).pages_per_s
    if next_s is not None and (silent or not pages_per_s):
        return TimeLeft(Ending.HOSTS, next_s, waiting, silent_subtasks, next_s)
    if not pages_per_s:
        return TimeLeft(Ending.UNKNOWN, 0.0, waiting, silent_subtasks)
    hits = max(0, count_open_hits(tx) - sum(one.left for one in silent))
    seconds = max(next_s or 0.0, hits / pages_per_s)
    return TimeLeft(Ending.DONE_IN, seconds, waiting, silent_subtasks, next_s)
