"""Check every invariant of the store, from the event log and the tables (docs/verify.md lists them).

Each subtask is in exactly one queue, the one its last event led to; every attempt is allocated, begun and closed
once, under one token; what rows say follows from their events; counters add up; no page and no review is stored twice;
nothing is lost; nothing that is due waits for long.

Set-based SQL and streaming passes over the tables, each linear in its rows, in a transaction of `Store.read`: one
consistent view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks.domain.states import State
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import INVARIANTS, Violation, row_violations, statistics_violations
from tasks.store.verify.liveness import BOUNDS, Overdue, find_overdue, last_sign_of_life, overdue_violations
from tasks.store.verify.replay import replay
from tasks.store.verify.search_parts import plan_violations

_CACHE_KIB = 12 * 1024
"""SQLite's cache while all is read once: as fast as the runner's larger one."""
_TABLES = (
    *("products", "virtual_tasks", "tasks", "task_parts", "subtasks", "targets", "attempts", "events"),
    "pages",
)
_COUNTS = {
    **{table: f"SELECT count(*) FROM {table}" for table in _TABLES},
    "reviews": "SELECT count(*) FROM reviews WHERE refused IS NULL",
    "logs_dropped": "SELECT count(*) FROM subtasks WHERE log_dropped",
    "overdue": f"SELECT count(*) FROM subtasks WHERE state = '{State.CRAWL}' AND lease_deadline <= :now",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings of `verify`.

    Attributes:
        violations: empty if every invariant holds.
        counts: rows looked at by table; `overdue`: leases that have run out and wait for the recall sweep;
            `logs_dropped`: subtasks that ended before the retention time, whose events were dropped, so that their
            state can't be proved any longer.
        as_of: the loop's last sign of life; None: there was none.
        overdue: overdue work at that time, by kind (`BOUNDS`).
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]
    as_of: datetime | None
    overdue: Mapping[str, Overdue]


def verify(tx: Transaction, bounds: Mapping[str, timedelta] | None = BOUNDS) -> Verification:
    """Check every invariant over the whole store; changes nothing.

    Args:
        bounds: how long things may be overdue; None: without limit, for a store whose loop does not run by itself.
    """
    if tx.is_sqlite:
        tx.run(f"PRAGMA cache_size=-{_CACHE_KIB}")
    counts = {name: tx.value(statement, now=tx.now) for name, statement in _COUNTS.items()}
    as_of = last_sign_of_life(tx)
    overdue = find_overdue(tx, as_of) if as_of is not None else {}
    violations = (
        *replay(tx),
        *row_violations(tx, INVARIANTS),
        *plan_violations(tx),
        *statistics_violations(tx),
        *(overdue_violations(tx, as_of, overdue, bounds) if as_of is not None and bounds is not None else ()),
    )
    return Verification(violations, counts, as_of, overdue)
