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
from tasks.store.verify.invariants import Violation, row_violations

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


class _Due(NamedTuple):
    kind: str
    n: int
    first: datetime | None


def last_sign_of_life(tx: Transaction) -> datetime | None:
    """Return the time of the latest event or heartbeat; None: there was none."""
    return tx.time(_LAST_SIGN)


def find_overdue(tx: Transaction, as_of: datetime) -> dict[str, Overdue]:
    """Return what is overdue, by kind (`BOUNDS`)."""
    alive_since = tx.time(_ALIVE_SINCE, dead=as_of - _ALIVE)
    found = {}
    for kind, n, first in tx.records(_Due, _DUE, as_of=as_of):
        since = max(first, alive_since or first) if first is not None else as_of
        found[kind] = Overdue(n, max(0.0, (as_of - since).total_seconds()))
    return found


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


def overdue_violations(
    tx: Transaction, as_of: datetime, overdue: Mapping[str, Overdue], bounds: Mapping[str, timedelta]
) -> Iterator[Violation]:
    """Yield the kinds that are overdue by more than their bound, and leases that end too early or too late."""
    for kind, one in overdue.items():
        if one.longest_s > bounds[kind].total_seconds():
            by = f"one by {one.longest_s:.0f} s: the bound is {bounds[kind]}"
            yield Violation("overdue", None, f"{kind}: {one.n} are overdue at {as_of}, {by}")
    yield from row_violations(tx, [_LEASES], ahead=as_of + bounds["lease_ahead"])


# After a lapse of the scheduler the deadlines of leases move (`tasks.store.queue.upkeep`).
_LEASES = """
    SELECT subtask_id, lease_deadline, sign, CASE WHEN lease_deadline < sign OR lease_deadline > :ahead
    THEN 'lease: its lease runs until {lease_deadline}, the last sign of life was at {sign}' END AS wrong
    FROM (SELECT s.id AS subtask_id, s.lease_deadline, coalesce(a.progress_at, a.started_at, a.allocated_at) AS sign
        FROM subtasks s JOIN attempts a ON a.id = s.attempt_id WHERE s.state = 'CRAWL') running
"""
