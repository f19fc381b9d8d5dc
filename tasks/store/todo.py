"""Finds whether a turn of the loop has anything to do: one statement that only looks into indexes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, exists, false, func, or_, select

from tasks.domain.states import State
from tasks.store.prepared import Prepared
from tasks.store.tables import UtcDateTime, events, host_rests, subtasks, virtual_tasks
from tasks.store.views import UNDER_WAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """The work of a turn, now.

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
    """The work there is."""
    (found,) = _TODO.rows(conn, {"now": now, "before": now - UNDER_WAY})
    return Todo(**found._asdict())


def any_in(state: State, *where: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether anything is in a queue: the first of it, by the queue's index.

    Of EXISTS, PostgreSQL makes a scan of the table where it believes that many rows are in the queue. It stops at the
    first one, but that may stand behind all that is done.
    """
    first = select(subtasks.c.id).where(subtasks.c.state == state, *where)
    return first.order_by(subtasks.c.priority.desc(), subtasks.c.id).limit(1).scalar_subquery().is_not(None)


def all_settled(conn: Connection) -> bool:
    """True where every product is planned and every subtask DONE, CANCELLED or MANUAL."""
    return not _UNSETTLED.rows(conn)[0].unsettled


_UNSETTLED = Prepared(
    select(
        or_(
            exists().where(virtual_tasks.c.planned_at.is_(None)),
            *(any_in(state) for state in State if not state.settled),
        ).label("unsettled")
    )
)


_now, _before = (bindparam(name, type_=UtcDateTime()) for name in ("now", "before"))
_state, _not_before = subtasks.c.state, subtasks.c.not_before
_TODO = Prepared(
    select(
        select(func.coalesce(func.max(events.c.id), 0)).scalar_subquery().label("last_event"),
        select(func.count())
        .where(_state == State.CRAWL, subtasks.c.lease_started, subtasks.c.changed_at <= _before)
        .scalar_subquery()
        .label("under_way"),
        func.coalesce(
            select(func.min(subtasks.c.lease_deadline)).where(_state == State.CRAWL).scalar_subquery()
            <= _now,
            false(),
        ).label("overdue"),
        any_in(State.FAILED).label("failed"),
        any_in(State.SLEEP).label("sleeping"),
        any_in(State.PRIORITY).label("queued"),
        any_in(State.WAIT, or_(_not_before.is_(None), _not_before <= _now)).label("due"),
        select(func.min(_not_before))
        .where(_state == State.WAIT, _not_before > _now)
        .scalar_subquery()
        .label("due_at"),
        select(func.min(host_rests.c.until))
        .where(host_rests.c.until > _now)
        .scalar_subquery()
        .label("rested_at"),
    )
)
