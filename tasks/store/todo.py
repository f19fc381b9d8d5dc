"""What there is to do for a turn of the loop: one statement that only looks into indexes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, func, or_, select

from tasks.domain.states import State
from tasks.store.tables import UtcDateTime, events, host_rests, subtasks
from tasks.store.views import UNDER_WAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """What there is to do, now.

    Attributes:
        last_event: number of the newest event: it grows with every transition; 0 where there is none.
        under_way: attempts past their result pages, as a rule (`tasks.store.views.UNDER_WAY`).
        overdue, failed, sleeping, queued: a lease has run out; something is in FAILED, in SLEEP, in PRIORITY.
        due: something in WAIT may be given to a node.
        due_at: when the next of what waits there may be.
        rested_at: when the next rest of a node at a host ends.
    """

    last_event: int
    under_way: int
    overdue: bool
    failed: bool
    sleeping: bool
    queued: bool
    due: bool
    due_at: datetime | None
    rested_at: datetime | None


def todo(conn: Connection, now: datetime) -> Todo:
    """What there is to do."""
    return Todo(**conn.execute(_TODO, {"now": now, "before": now - UNDER_WAY}).one()._mapping)


_now, _before = (bindparam(name, type_=UtcDateTime()) for name in ("now", "before"))
_state, _not_before = subtasks.c.state, subtasks.c.not_before
_TODO = select(
    select(func.coalesce(func.max(events.c.id), 0)).scalar_subquery().label("last_event"),
    select(func.count())
    .where(_state == State.CRAWL, subtasks.c.lease_started, subtasks.c.changed_at <= _before)
    .scalar_subquery()
    .label("under_way"),
    exists().where(_state == State.CRAWL, subtasks.c.lease_deadline <= _now).label("overdue"),
    exists().where(_state == State.FAILED).label("failed"),
    exists().where(_state == State.SLEEP).label("sleeping"),
    exists().where(_state == State.PRIORITY).label("queued"),
    exists().where(_state == State.WAIT, or_(_not_before.is_(None), _not_before <= _now)).label("due"),
    select(func.min(_not_before))
    .where(_state == State.WAIT, _not_before > _now)
    .scalar_subquery()
    .label("due_at"),
    select(func.min(host_rests.c.until))
    .where(host_rests.c.until > _now)
    .scalar_subquery()
    .label("rested_at"),
)
