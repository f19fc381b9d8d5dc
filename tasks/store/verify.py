"""Check every invariant of the store, from the event log and the tables.

Each subtask is in exactly one queue, the one its last event led to; only legal transitions, each from where the one
before ended; never more than `MAX_RECALLS` recalls in a round; leases exactly where attempts run; every attempt
numbered, closed and added to the statistics once; no page and no review stored twice; nothing lost.

Set-based SQL, and one streaming pass over the event log, on a connection of `Store.read`: one consistent view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from tasks.domain.states import State
from tasks.store.attempt_invariants import Violation, attempt_violations, log_violations
from tasks.store.storage_invariants import loss_violations, partition_violations
from tasks.store.tables import (
    attempts,
    events,
    pages,
    products,
    reviews,
    subtasks,
    targets,
    task_parts,
    tasks,
    virtual_tasks,
)

_COUNTED = (products, virtual_tasks, tasks, task_parts, subtasks, targets, attempts, events, pages, reviews)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        violations: empty where every invariant holds.
        counts: rows looked at by table, and `overdue`: leases that have run out and wait for the recall sweep.
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]


def verify(conn: Connection, now: datetime) -> Verification:
    """Check every invariant over the whole store; changes nothing."""
    violations = (
        *log_violations(conn),
        *attempt_violations(conn),
        *loss_violations(conn),
        *partition_violations(conn),
    )
    return Verification(violations, _counts(conn, now))


def _counts(conn: Connection, now: datetime) -> dict[str, int]:
    counts = {
        table.name: int(conn.execute(select(func.count()).select_from(table)).scalar_one())
        for table in _COUNTED
    }
    overdue = select(func.count()).where(subtasks.c.state == State.CRAWL, subtasks.c.lease_deadline <= now)
    counts["overdue"] = int(conn.execute(overdue).scalar_one())
    return counts
