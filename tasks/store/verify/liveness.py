"""Overdue work, and by how long it is overdue: a loop that is alive would have done it by now.

"Now" is the last sign of life of the loop itself: the latest event, or heartbeat. So a run that was stopped is not
overdue, however long ago that was. After a pause, time counts from when the node that now lives longest came back.

Sweeps run every few seconds and take a batch at a time, so the bounds are generous: what is older is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import bindparam, func, select

from tasks.domain.states import State
from tasks.store.sql.tables import UtcDateTime, attempts, events, nodes, schedules, subtasks, virtual_tasks
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
        longest_s: seconds, of the one that is overdue longest; 0 where none is.
    """

    n: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class Liveness:
    """Overdue work, by kind (`BOUNDS`), as of the last sign of life; None: there was none."""

    as_of: datetime | None
    overdue: Mapping[str, Overdue]


def liveness(conn: Transaction) -> Liveness:
    """Look what is overdue."""
    as_of, since = _signs_of_life(conn)
    if as_of is None:
        return Liveness(None, {})
    overdue = {}
    for kind, statement in _DUE.items():
        n, first = conn.execute(statement, {"as_of": as_of}).one()
        from_ = max(first, since) if first is not None and since is not None else first
        late_s = max(0.0, (as_of - from_).total_seconds()) if from_ is not None else 0.0
        overdue[kind] = Overdue(n, late_s if n else 0.0)
    return Liveness(as_of, overdue)


def overdue_violations(
    conn: Transaction, live: Liveness, bounds: Mapping[str, timedelta] = BOUNDS
) -> Iterator[Violation]:
    """The kinds that are overdue by more than their bound."""
    for kind, one in live.overdue.items():
        if one.longest_s > bounds[kind].total_seconds():
            by = f"one by {one.longest_s:.0f} s: the bound is {bounds[kind]}"
            message = f"{kind}: {one.n} are overdue at {live.as_of}, {by}"
            yield Violation("overdue", None, message)
    for row in conn.execute(_LEASES):
        sign = max(at for at in (row.allocated_at, row.started_at, row.progress_at) if at is not None)
        if row.lease_deadline is None or sign is None:
            continue
        # After a lapse of the scheduler leases get a new time (`tasks.store.queue.upkeep`).
        last = max(sign, live.as_of) if live.as_of is not None else sign
        if not sign <= row.lease_deadline <= last + bounds["lease_ahead"]:
            message = f"its lease runs until {row.lease_deadline}, the last sign of life was at {sign}"
            yield Violation("lease", row.id, message)


def _signs_of_life(conn: Transaction) -> tuple[datetime | None, datetime | None]:
    """The last sign of life, and since when the loop has been alive (None: from the beginning)."""
    last = conn.execute(select(events.c.at).order_by(events.c.id.desc()).limit(1)).scalar_one_or_none()
    known = [(row.seen_at, row.registered_at) for row in conn.execute(_SEEN)]
    as_of: datetime | None = max(
        (at for at in (last, *(seen for seen, _ in known)) if at is not None), default=None
    )
    if as_of is None:
        return None, None
    return as_of, min((came for seen, came in known if seen > as_of - _ALIVE), default=None)


_SEEN = select(nodes.c.seen_at, nodes.c.registered_at).where(nodes.c.seen_at.is_not(None))
_as_of = bindparam("as_of", type_=UtcDateTime())


def _due(column: Any, *where: Any) -> Any:
    return select(func.count(), func.min(column, type_=column.type)).where(column <= _as_of, *where)


_DUE: Mapping[str, Any] = MappingProxyType(
    {
        "lease": _due(subtasks.c.lease_deadline, subtasks.c.state == State.CRAWL),
        "failed": _due(subtasks.c.changed_at, subtasks.c.state == State.FAILED),
        "sleeping": _due(subtasks.c.changed_at, subtasks.c.state == State.SLEEP),
        "unplanned": _due(virtual_tasks.c.created_at, virtual_tasks.c.planned_at.is_(None)),
        "recrawl": _due(schedules.c.next_at, schedules.c.what == "recrawl"),
    }
)
_LEASES = (
    select(
        subtasks.c.id,
        subtasks.c.lease_deadline,
        attempts.c.allocated_at,
        attempts.c.started_at,
        attempts.c.progress_at,
    )
    .join(attempts, attempts.c.id == subtasks.c.attempt_id)
    .where(subtasks.c.state == State.CRAWL)
)
