"""The one module that writes the state of a subtask, and counts the subtasks of each queue.

Every transition is one compare-and-set on (state, lease token) plus one row in the append-only event log, in the
caller's transaction, with the numbers of the queues. A transition whose compare fails changes nothing.

The numbers of the queues that grow without bound are stored: each transaction adds a row with its changes, and a
sweep adds the rows up. So no transaction waits for another one's row, and the sum is exact in every view of the
database. The other queues are short, and counted by their index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, select, union_all, update

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.states import LEGAL, State, Transition, source, target
from tasks.store.sql.prepared import Prepared, defer, insertion
from tasks.store.sql.tables import events, queue_counts, subtasks
from tasks.store.sql.transaction import Transaction

_NO_LEASE: Mapping[str, Any] = {
    **dict.fromkeys(("lease_token", "lease_node", "lease_deadline", "attempt_id")),
    "lease_started": False,
}


@dataclass(frozen=True, slots=True)
class EventData:
    """The rest of an event: lease, node, reason, and the data behind the decision (`detail`)."""

    token: str | None = None
    attempt_id: int | None = None
    node: str | None = None
    reason: str | None = None
    detail: Mapping[str, Any] | None = None


def create(
    conn: Transaction, now: datetime, rows: Sequence[Mapping[str, Any]], data: Sequence[EventData]
) -> list[int]:
    """Put new subtasks into PRIORITY.

    Args:
        rows: the columns task_id, product_id, site, kind, chunk, part_id, priority, left of each; of all or none,
            parent_id and not_before.
        data: of the events, one a row.

    Returns:
        Their ids, in the order of `rows`.
    """
    if not rows:
        return []
    added = {"state": State.PRIORITY, "failed_on": [], "created_at": now, "changed_at": now}
    made = insertion(subtasks, (*added, *rows[0]), subtasks.c.id)
    ids = [row.id for row in made.rows_of_each(conn, [{**added, **row} for row in rows])]
    _log(
        conn,
        now,
        [(i, Transition.CREATE, None, State.PRIORITY, one) for i, one in zip(ids, data, strict=True)],
    )
    return ids


def move(
    conn: Transaction,
    now: datetime,
    subtask_id: int,
    transition: Transition,
    event: EventData,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Perform one transition of a subtask that has no lease.

    Args:
        values: further columns to set.

    Raises:
        IllegalTransition: it is in another queue.
        UnknownSubtask: there is no such subtask.
    """
    if not try_move(conn, now, subtask_id, transition, event, values):
        found = conn.execute(select(subtasks.c.state).where(subtasks.c.id == subtask_id)).scalar_one_or_none()
        if found is None:
            raise UnknownSubtask(f"there is no subtask {subtask_id}")
        raise IllegalTransition(
            f"subtask {subtask_id} is in {found}: {transition} starts from {source(transition)}"
        )


def try_move(
    conn: Transaction,
    now: datetime,
    subtask_id: int,
    transition: Transition,
    event: EventData,
    values: Mapping[str, Any] | None = None,
) -> bool:
    """As `move`, but False instead of an exception where the compare fails."""
    begin = source(transition)
    end = target(transition, begin)
    given = {"state": end, "changed_at": now, **(values or {})}
    key = {"of_subtask": subtask_id, "of_state": begin}
    if not _moving(tuple(given)).rows(
        conn, {**key, **{f"new_{name}": value for name, value in given.items()}}
    ):
        return False
    _log(conn, now, [(subtask_id, transition, begin, end, event)])
    return True


@cache
def _moving(columns: tuple[str, ...]) -> Prepared:
    """The compare-and-set of `try_move`; returns a row where it changed one."""
    found = update(subtasks).where(
        subtasks.c.id == bindparam("of_subtask"),
        subtasks.c.state == bindparam("of_state"),
        subtasks.c.lease_token.is_(None),
    )
    given = found.values({name: bindparam(f"new_{name}") for name in columns})
    return Prepared(given.returning(subtasks.c.id))


@dataclass(frozen=True, slots=True)
class Move:
    """One transition of a batch.

    Attributes:
        values: further columns to set; the same ones in every move of a batch.
        token: the lease token that must be in force; for transitions out of CRAWL.
    """

    subtask_id: int
    event: EventData
    values: Mapping[str, Any]
    token: str | None = None


def locked(
    conn: Transaction,
    ids: Iterable[int],
    *columns: ColumnElement[Any],
    state: State | None = None,
    skip_locked: bool = False,
) -> dict[int, Any]:
    """Lock these subtasks, or those of them that are in a queue; their rows, with these columns, by id.

    Args:
        skip_locked: pass over those that another transaction has locked: a sweep comes again, and waits for nobody.
    """
    return {row.id: row for row in _locking(columns, state, skip_locked).rows(conn, {"ids": list(ids)})}


@cache
def _locking(columns: tuple[ColumnElement[Any], ...], state: State | None, skip_locked: bool) -> Prepared:
    wanted = select(subtasks.c.id, *columns).where(subtasks.c.id.in_(bindparam("ids", expanding=True)))
    if state is not None:
        wanted = wanted.where(subtasks.c.state == state)
    # Every transaction locks in the same order.
    return Prepared(wanted.order_by(subtasks.c.id).with_for_update(skip_locked=skip_locked))


def move_many(conn: Transaction, now: datetime, transition: Transition, moves: Sequence[Move]) -> None:
    """Perform one transition (any but CREATE, CANCEL) for many subtasks.

    Each must be locked and in its queue, with its lease in force (`locked`, `tasks.store.queue.leases.in_force`).
    The compare-and-set is made all the same.
    """
    if not moves:
        return
    begin = source(transition)
    end = target(transition, begin)
    same = {"state": end, "changed_at": now, **(_NO_LEASE if begin is State.CRAWL else {})}
    # The queue is a column of the rows given, not a constant: the planner, whose statistics may be of a time when that
    # queue was empty, is not to look for the rows by it.
    key = ("id", "state", "lease_token") if begin is State.CRAWL else ("id", "state")
    each = [{**dict(zip(key, (m.subtask_id, begin, m.token), strict=False)), **m.values} for m in moves]
    conn.update("subtasks", key, each, shared=same)
    _log(conn, now, [(m.subtask_id, transition, begin, end, m.event) for m in moves])


def set_aside(conn: Transaction, now: datetime, told: Mapping[int, EventData]) -> int:
    """Move subtasks that nobody can do anything with to MANUAL, from any queue without a lease; returns how many.

    Args:
        told: the event of each; its reason becomes the subtask's.
    """
    if not told:
        return 0
    rows = locked(conn, told, subtasks.c.state, skip_locked=True)
    logged = []
    for row in rows.values():
        begin, event = State(row.state), told[row.id]
        if begin not in LEGAL[Transition.SET_ASIDE]:
            continue
        end = target(Transition.SET_ASIDE, begin)
        mine = update(subtasks).where(subtasks.c.id == row.id)
        clean: dict[str, Any] = {"failed_on": [], "not_before": None, "waits_for": None}
        defer(conn, mine.values(state=end, changed_at=now, reason=event.reason, **clean))
        logged.append((row.id, Transition.SET_ASIDE, begin, end, event))
    _log(conn, now, logged)
    return len(logged)


def cancel(conn: Transaction, now: datetime, subtask_id: int, why: str) -> int | None:
    """Cancel a subtask that is not settled for good; returns the attempt whose lease this ends.

    Raises:
        IllegalTransition: it is DONE or CANCELLED.
        UnknownSubtask: there is no such subtask.
    """
    row = conn.execute(
        select(subtasks.c.state, subtasks.c.attempt_id).where(subtasks.c.id == subtask_id).with_for_update()
    ).one_or_none()
    if row is None:
        raise UnknownSubtask(f"there is no subtask {subtask_id}")
    begin = State(row.state)
    end = target(Transition.CANCEL, begin)
    defer(
        conn,
        update(subtasks)
        .where(subtasks.c.id == subtask_id)
        .values(state=end, changed_at=now, waits_for=None, **_NO_LEASE),
    )
    event = EventData(attempt_id=row.attempt_id, reason="cancelled", detail={"why": why})
    _log(conn, now, [(subtask_id, Transition.CANCEL, begin, end, event)])
    attempt_id: int | None = row.attempt_id
    return attempt_id


def renew(
    conn: Transaction, tokens: Mapping[str, int], now: datetime, deadline: datetime, *, start: bool = False
) -> set[str]:
    """Move the deadlines of leases that were not taken back; not a transition.

    A renewal that comes after the deadline counts as long as nobody has taken the lease back: the database may have
    been away meanwhile. A lease is begun before its deadline only.

    Args:
        tokens: the leases' tokens, each with its subtask.
        start: begin them, those that have not begun; else only those that have are renewed.

    Returns:
        The tokens of those that were renewed, or begun.
    """
    given = {"ids": list(tokens.values()), "tokens": list(tokens), "deadline": deadline}
    rows = _BEGIN.rows(conn, {**given, "now": now}) if start else _KEEP.rows(conn, given)
    return {row.lease_token for row in rows}


_IN_FORCE = (
    update(subtasks)
    .where(
        subtasks.c.id.in_(bindparam("ids", expanding=True)),
        subtasks.c.lease_token.in_(bindparam("tokens", expanding=True)),
        subtasks.c.state == State.CRAWL,
    )
    .values(lease_deadline=bindparam("deadline"), lease_started=True)
    .returning(subtasks.c.lease_token)
)
_BEGIN = Prepared(
    _IN_FORCE.where(subtasks.c.lease_started.is_(False), subtasks.c.lease_deadline > bindparam("now"))
)
_KEEP = Prepared(_IN_FORCE.where(subtasks.c.lease_started))


def _log(
    conn: Transaction,
    now: datetime,
    rows: Sequence[tuple[int, Transition, State | None, State, EventData]],
) -> None:
    if not rows:
        return
    logged = [
        (*moved, e.token, e.attempt_id, e.node, e.reason, dict(e.detail) if e.detail is not None else None)
        for *moved, e in rows
    ]
    conn.insert("events", _LOGGED, logged, shared={"at": now})
    _note_moves(conn, ((begin, end) for _, _, begin, end, _ in rows))


_LOGGED = tuple(column.name for column in events.c if column.name not in ("id", "at"))


KEPT = (State.PRIORITY, State.MANUAL, State.DONE, State.CANCELLED)
"""Queues whose numbers are kept."""

_SHORT = [str(state) for state in State if state not in KEPT]
_MANY_ROWS = 100
"""Maximum number of rows that are read as fast as one; more are added up."""


def _note_moves(conn: Transaction, moved: Iterable[tuple[State | None, State]]) -> None:
    """Keep what a transaction changed: the queue that each subtask left (None: none), and the one it came to."""
    changed: Counter[State] = Counter()
    for begin, end in moved:
        if begin in KEPT:
            changed[begin] -= 1
        if end in KEPT:
            changed[end] += 1
    rows = [(str(state), n) for state, n in changed.items() if n]
    if rows:
        conn.insert("queue_counts", ("state", "n"), rows)


def count_queues(conn: Transaction) -> dict[str, int]:
    """Subtasks per queue, every queue named."""
    return dict.fromkeys(map(str, State), 0) | {row.state: row.n for row in _COUNTS.rows(conn)}


_q, _s = queue_counts.c, subtasks.c
_COUNTED = union_all(
    select(_q.state, func.sum(_q.n).label("n")).group_by(_q.state),
    select(_s.state, func.count()).where(_s.state.in_(_SHORT)).group_by(_s.state),
).subquery("counted")
_COUNTS = Prepared(select(_COUNTED.c.state, _COUNTED.c.n))


def add_up_queues(conn: Transaction) -> None:
    """Replace the rows that transactions left with one row per queue, if there are many."""
    if conn.execute(select(func.count()).select_from(queue_counts)).scalar_one() < _MANY_ROWS:
        return
    # Rows of transactions that are still under way are not seen: they stay.
    total: Counter[str] = Counter()
    for row in conn.execute(delete(queue_counts).returning(_q.state, _q.n)):
        total[row.state] += row.n
    if total:  # else another transaction added them up meanwhile
        conn.execute(insert(queue_counts), [{"state": state, "n": n} for state, n in total.items()])
