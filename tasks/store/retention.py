"""Dropping old data, a batch a transaction: details of events, old responses, rests, refused records, and event logs.

Events and attempts are numbered as time goes on, so each part walks its table by number and leaves a mark of how far it
has come (`tasks.store.marks`): a batch costs the same however long the table is, and nothing is looked at twice. The
newest row is never processed: its number must not be given again.

A log goes as a whole, with the last event of a subtask that is DONE or CANCELLED; its row says so (`log_dropped`), so
that `verify` knows what it can't prove any more. The rows of subtasks, attempts, targets and pages stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, bindparam, delete, null, select, update

from tasks.domain.states import State
from tasks.store.database import try_lock
from tasks.store.marks import mark_of, set_mark
from tasks.store.tables import attempts, events, host_rests, refused_reviews, subtasks
from tasks.store.writer import Operation

KEEP_DETAIL = timedelta(days=90)
"""How long `explain` shows the candidates of a decision, `failed show` the last response, and `judge` refused texts."""

KEEP_BREAKER = timedelta(days=7)
"""How long after its rest a host's refusals are dropped, if no attempt probed it."""

BATCH = 1000
"""Rows of a transaction: some 10 ms, which SQLite's other writers wait for."""

_LOCK_S = 2.0

Step = Callable[[Connection, datetime], int]
"""Drops the next batch in the caller's transaction; returns how many rows it has looked at, 0 where none is old."""


def drop_old(
    write: Callable[[Operation[int]], int],
    keep_log: timedelta | None,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Drop all that is old, in batches; it ends early where another process is at it, which then does the rest.

    Args:
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        keep_log: how long after its end the log of a subtask is kept; None: for ever.
        go_on: asked before each batch; what is left is for the next sweep.

    Returns:
        How many rows were looked at.
    """
    looked = 0
    for step in steps(keep_log):
        while go_on() and (n := write(step)):
            looked += n
    return looked


def steps(keep_log: timedelta | None) -> Sequence[Step]:
    """Droppers of old rows, each to be called until it returns 0.

    Args:
        keep_log: how long after its end the log of a subtask is kept; None: for ever.
    """
    always = (empty_details, empty_responses, drop_rests, drop_refused)
    if keep_log is None:
        return always
    kept = keep_log
    return (*always, lambda conn, now: drop_logs(conn, now, kept))


def empty_details(conn: Connection, now: datetime) -> int:
    """Empty the details of the next events older than `KEEP_DETAIL`; their transitions stay."""
    old = _old(conn, "details", _EVENTS, now - KEEP_DETAIL)
    if old:
        conn.execute(_emptied(events, "detail", old))
    return len(old)


def empty_responses(conn: Connection, now: datetime) -> int:
    """Empty the last responses of the next attempts that ended longer ago than `KEEP_DETAIL`."""
    old = _old(conn, "responses", _ATTEMPTS, now - KEEP_DETAIL)
    if old:
        conn.execute(_emptied(attempts, "last_response", old))
    return len(old)


def drop_rests(conn: Connection, now: datetime) -> int:
    """Drop breakers of hosts that no attempt probed; there are few, at most one a host and node."""
    if not _free(conn):
        return 0
    return conn.execute(delete(host_rests).where(host_rests.c.until <= now - KEEP_BREAKER)).rowcount


def drop_refused(conn: Connection, now: datetime) -> int:
    """Drop the next records that were refused longer ago than `KEEP_DETAIL`; without a mark, as these go themselves."""
    if not _free(conn):
        return 0
    r = refused_reviews.c
    first = select(r.id).order_by(r.id).limit(BATCH)
    old = r.id.in_(first.scalar_subquery()) & (r.refused_at < now - KEEP_DETAIL)
    return conn.execute(delete(refused_reviews).where(old)).rowcount


def drop_logs(conn: Connection, now: datetime, keep: timedelta) -> int:
    """Drop the logs of subtasks that have been DONE or CANCELLED for longer than `keep`, by the next old events."""
    old = _old(conn, "logs", _EVENTS, now - keep)
    if not old:
        return 0
    s = subtasks.c
    ended = s.id.in_({row.subtask_id for row in old}), s.state.in_((State.DONE, State.CANCELLED))
    done = list(conn.scalars(select(s.id).where(*ended, s.changed_at < now - keep).order_by(s.id)))
    conn.execute(delete(events).where(events.c.subtask_id.in_(done)))
    conn.execute(update(subtasks).where(s.id.in_(done)).values(log_dropped=True))
    return len(old)


def _old(conn: Connection, part: str, following: Select[Any], before: datetime) -> Sequence[Any]:
    """The next rows of a part that are older, up to the first that is not; the mark is moved behind them."""
    if not _free(conn):
        return ()
    after = mark_of(conn, part) or 0
    rows = conn.execute(following, {"after": after, "most": BATCH + 1}).all()[:-1]
    young = next((place for place, row in enumerate(rows) if row.at is None or row.at >= before), len(rows))
    if young:
        set_mark(conn, part, rows[young - 1].id)
    return rows[:young]


def _free(conn: Connection) -> bool:
    """Whether no other process is dropping at this moment: two would wait for each other's rows."""
    return try_lock(conn, "retention", _LOCK_S)


def _following(table: Table, at: Column[Any], *columns: Column[Any]) -> Select[Any]:
    after = bindparam("after", type_=table.c.id.type)
    wanted = select(table.c.id, at.label("at"), *columns)
    return wanted.where(table.c.id > after).order_by(table.c.id).limit(bindparam("most"))


_EVENTS = _following(events, events.c.at, events.c.subtask_id)
_ATTEMPTS = _following(attempts, attempts.c.ended_at)


def _emptied(table: Table, name: str, old: Sequence[Any]) -> Any:
    column = table.c[name]
    rows = table.c.id.between(old[0].id, old[-1].id)
    return update(table).where(rows, column.is_not(None)).values({name: null()})
