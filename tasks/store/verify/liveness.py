"""Overdue work, and by how long it is overdue: a loop that is alive would have done it by now.

"Now" is the last sign of life of the loop itself: the latest event, or heartbeat. So a run that was stopped is not
overdue, however long ago that was. After a pause, time counts from when the node that now lives longest came back.

Sweeps run every few seconds and take a batch at a time, so the bounds are generous. Older work is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from tasks.domain.states import State
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import Violation

BOUNDS: Mapping[str, timedelta] = MappingProxyType(
    {
        "lease": timedelta(minutes=5),
        "failed": timedelta(minutes=5),
        "sleeping": timedelta(minutes=5),
        "unplanned": timedelta(hours=1),
        "recrawl": timedelta(minutes=15),
        "lease_ahead": timedelta(hours=1),
    }
)
"""How long each may be overdue: a lease that ran out, a subtask in FAILED or SLEEP, a virtual task without tasks, a
product's next round; and how far ahead of its last sign of life a lease may end."""

_ALIVE = timedelta(minutes=2)
"""A node whose last heartbeat is older than this, seen from the latest sign of life, is not alive."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Overdue work of one kind.

    Attributes:
        n: how many.
        longest_s: seconds, of the one that is overdue longest; 0 if none is.
    """

    n: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class Liveness:
    """Overdue work, by kind (`BOUNDS`), as of the last sign of life; None: there was none."""

    as_of: datetime | None
    overdue: Mapping[str, Overdue]


class _Due(NamedTuple):
    kind: str
    n: int
    first: datetime | None


def liveness(tx: Transaction) -> Liveness:
    """Return what is overdue."""
    as_of = tx.time(_LAST_SIGN)
    if as_of is None:
        return Liveness(None, {})
    alive_since = tx.time(_ALIVE_SINCE, dead=as_of - _ALIVE)
    overdue = {}
    for kind, n, first in tx.records(_Due, _DUE, as_of=as_of):
        since = max(first or as_of, alive_since or first or as_of)
        overdue[kind] = Overdue(n, max(0.0, (as_of - since).total_seconds()))
    return Liveness(as_of, overdue)


_LAST_SIGN = """
    SELECT max(at) FROM (
        SELECT at FROM (SELECT at FROM events ORDER BY id DESC LIMIT 1) last UNION ALL SELECT seen_at FROM nodes
    ) signs
"""
_ALIVE_SINCE = "SELECT min(registered_at) FROM nodes WHERE seen_at > :dead"
_DUE = f"""
    SELECT 'lease' AS kind, count(*) AS n, min(lease_deadline) AS first FROM subtasks
    WHERE state = '{State.CRAWL}' AND lease_deadline <= :as_of
    UNION ALL SELECT 'failed', count(*), min(changed_at) FROM subtasks
    WHERE state = '{State.FAILED}' AND changed_at <= :as_of
    UNION ALL SELECT 'sleeping', count(*), min(changed_at) FROM subtasks
    WHERE state = '{State.SLEEP}' AND changed_at <= :as_of
    UNION ALL SELECT 'unplanned', count(*), min(created_at) FROM virtual_tasks
    WHERE planned_at IS NULL AND created_at <= :as_of
    UNION ALL SELECT 'recrawl', count(*), min(next_at) FROM schedules
    WHERE what = 'recrawl' AND next_at <= :as_of
"""


class _RunningLease(NamedTuple):
    subtask_id: int
    lease_deadline: datetime
    allocated_at: datetime
    started_at: datetime | None
    progress_at: datetime | None


def overdue_violations(
    tx: Transaction, live: Liveness, bounds: Mapping[str, timedelta] = BOUNDS
) -> Iterator[Violation]:
    """Yield the kinds that are overdue by more than their bound, and leases that end too early or too late."""
    for kind, one in live.overdue.items():
        if one.longest_s > bounds[kind].total_seconds():
            by = f"one by {one.longest_s:.0f} s: the bound is {bounds[kind]}"
            yield Violation("overdue", None, f"{kind}: {one.n} are overdue at {live.as_of}, {by}")
    for subtask_id, deadline, *signs in tx.records(_RunningLease, _LEASES):
        sign = max(at for at in signs if at is not None)
        # After a lapse of the scheduler the deadlines of leases move (`tasks.store.queue.upkeep`).
        if not sign <= deadline <= max(sign, live.as_of or sign) + bounds["lease_ahead"]:
            message = f"its lease runs until {deadline}, the last sign of life was at {sign}"
            yield Violation("lease", subtask_id, message)


_LEASES = f"""
    SELECT s.id AS subtask_id, s.lease_deadline, a.allocated_at, a.started_at, a.progress_at
    FROM subtasks s JOIN attempts a ON a.id = s.attempt_id
    WHERE s.state = '{State.CRAWL}' AND s.lease_deadline IS NOT NULL
"""
