"""Invariants of subtasks and attempts, checked from the event log, the queues, the leases and the statistics.

Each subtask is in the queue its last event led to, by legal transitions only, and recalls of a round are bounded.
Leases are exactly where attempts run; every attempt is numbered, closed and added to the statistics once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, and_, case, func, or_, select

from tasks.domain.pair_stats import SUMS
from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.stats import attempt_sums
from tasks.store.tables import attempts, events, pages, pair_stats, subtasks

_CHECKED = (*SUMS, "wait_s")


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        kind: queue, chain, transition, recalls, lease, attempt, counters, statistics, twice, lost or partitions.
        subtask_id: whose it is; None where it is no single subtask's.
        message: which rows, their values, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


def attempt_violations(conn: Connection) -> Iterator[Violation]:
    """Leases, attempts and the statistics against each other."""
    yield from _leases(conn)
    yield from _open_attempts(conn)
    yield from _attempt_numbers(conn)
    yield from _attempt_counters(conn)
    yield from _statistics(conn)


def _leases(conn: Connection) -> Iterator[Violation]:
    lease = (subtasks.c.lease_token, subtasks.c.lease_node, subtasks.c.lease_deadline, subtasks.c.attempt_id)
    crawling = subtasks.c.state == State.CRAWL
    incomplete = or_(*(column.is_(None) for column in lease))
    left = or_(subtasks.c.lease_started, *(column.is_not(None) for column in lease))
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.state).where(or_(and_(crawling, incomplete), and_(~crawling, left)))
    )
    for row in rows:
        wrong = "without a whole lease" if row.state == State.CRAWL else "with a part of a lease"
        yield Violation("lease", row.id, f"is in {row.state} {wrong} (token, node, deadline, attempt)")


def _open_attempts(conn: Connection) -> Iterator[Violation]:
    theirs = and_(
        subtasks.c.state == State.CRAWL,
        subtasks.c.attempt_id.is_not_distinct_from(attempts.c.id),
        subtasks.c.lease_token.is_not_distinct_from(attempts.c.token),
        subtasks.c.lease_node.is_not_distinct_from(attempts.c.node),
    )
    astray = conn.execute(
        select(attempts.c.id, attempts.c.subtask_id, subtasks.c.state)
        .join(subtasks, subtasks.c.id == attempts.c.subtask_id)
        .where(attempts.c.outcome.is_(None), ~theirs)
    )
    for row in astray:
        message = f"attempt {row.id} is open, but does not hold the lease of its subtask ({row.state})"
        yield Violation("attempt", row.subtask_id, message)
    running = and_(attempts.c.id == subtasks.c.attempt_id, attempts.c.outcome.is_(None))
    alone = conn.execute(
        select(subtasks.c.id)
        .select_from(subtasks.outerjoin(attempts, running))
        .where(subtasks.c.state == State.CRAWL, attempts.c.id.is_(None))
    )
    for row in alone:
        yield Violation("attempt", row.id, "is in CRAWL without an open attempt")


def _attempt_numbers(conn: Connection) -> Iterator[Violation]:
    made = (
        select(
            attempts.c.subtask_id,
            func.count().label("n"),
            func.min(attempts.c.no).label("first"),
            func.max(attempts.c.no).label("last"),
        )
        .group_by(attempts.c.subtask_id)
        .subquery()
    )
    n = func.coalesce(made.c.n, 0)
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.attempts, n.label("n"), made.c.first, made.c.last)
        .select_from(subtasks.outerjoin(made, made.c.subtask_id == subtasks.c.id))
        .where(or_(subtasks.c.attempts != n, made.c.first != 1, made.c.last != made.c.n))
    )
    for row in rows:
        message = f"counts {row.attempts} attempts, has {row.n}, numbered {row.first} to {row.last}"
        yield Violation("attempt", row.id, message)


def _attempt_counters(conn: Connection) -> Iterator[Violation]:
    stored = (
        select(
            pages.c.attempt_id,
            func.sum(case((pages.c.late, 0), else_=1)).label("in_time"),
            func.sum(case((pages.c.late, 1), else_=0)).label("late"),
        )
        .group_by(pages.c.attempt_id)
        .subquery()
    )
    in_time, late = func.coalesce(stored.c.in_time, 0), func.coalesce(stored.c.late, 0)
    a = attempts.c
    rows = conn.execute(
        select(a.id, a.subtask_id, a.offered, a.tried, a.collected, a.late, in_time.label("in_time"))
        .add_columns(late.label("stored_late"))
        .select_from(attempts.outerjoin(stored, stored.c.attempt_id == a.id))
        .where(
            a.outcome.is_not(None),
            or_(a.collected != in_time, a.late != late, a.collected > a.tried, a.tried > a.offered),
        )
    )
    for row in rows:
        message = (
            f"attempt {row.id}: offered {row.offered}, tried {row.tried}, collected {row.collected} "
            f"must not rise; it stored {row.in_time} pages and {row.stored_late} late ones ({row.late} noted)"
        )
        yield Violation("counters", row.subtask_id, message)


def _statistics(conn: Connection) -> Iterator[Violation]:
    counted, a = attempt_sums(), attempts.c
    statement = (
        select(a.site, a.node, *(counted[name] for name in SUMS), func.sum(a.wait_s))
        .where(a.outcome.is_not(None))
        .group_by(a.site, a.node)
    )
    kept = {
        (row.site, row.node): tuple(float(getattr(row, name)) for name in _CHECKED)
        for row in conn.execute(select(pair_stats))
    }
    summed = {(row.site, row.node): tuple(float(v) for v in row[2:]) for row in conn.execute(statement)}
    nothing = (0.0,) * len(_CHECKED)
    for pair in sorted(kept.keys() | summed.keys()):
        for name, is_, should in zip(
            _CHECKED, kept.get(pair, nothing), summed.get(pair, nothing), strict=True
        ):
            if not math.isclose(is_, should, rel_tol=1e-6, abs_tol=1e-6):
                message = (
                    f"{pair[0]} on {pair[1]}: {name} is {is_:g}, its closed attempts sum up to {should:g}"
                )
                yield Violation("statistics", None, message)


def log_violations(conn: Connection) -> Iterator[Violation]:
    """The event log against the queues, in one streaming pass over it."""
    rows = conn.execute(
        select(
            subtasks.c.id,
            subtasks.c.state,
            subtasks.c.recalls,
            events.c.id.label("event"),
            events.c.transition,
            events.c.from_state,
            events.c.to_state,
        )
        .select_from(subtasks.outerjoin(events, events.c.subtask_id == subtasks.c.id))
        .order_by(subtasks.c.id, events.c.id),
        execution_options={"yield_per": 10_000},
    )
    for subtask_id, of_subtask in groupby(rows, key=lambda row: row.id):
        yield from _chain(subtask_id, list(of_subtask))


def _chain(subtask_id: int, rows: Sequence[Any]) -> Iterator[Violation]:
    """The events of one subtask, in order, against its row."""
    here, recalls = None, 0
    for row in rows:
        if row.event is None:
            break
        event = f"event {row.event} ({row.transition}: {row.from_state} to {row.to_state})"
        if row.from_state != here:
            yield Violation("chain", subtask_id, f"{event} does not start from {here}, where it was")
        if not _legal(row.transition, row.from_state, row.to_state):
            yield Violation("transition", subtask_id, f"{event} is no legal transition")
        if row.transition == Transition.RECALL:
            recalls += 1
            if recalls == MAX_RECALLS + 1:
                yield Violation(
                    "recalls", subtask_id, f"{event} is more than recall {MAX_RECALLS} of a round"
                )
        elif row.transition == Transition.RETRY:
            recalls = 0
        here = row.to_state
    last = rows[-1]
    if last.state != here:
        yield Violation("queue", subtask_id, f"is in {last.state}, but its last event led to {here}")
    if last.recalls != recalls:
        yield Violation(
            "recalls", subtask_id, f"says {last.recalls} recalls, its events of the round {recalls}"
        )


def _legal(transition: str, begin: str | None, end: str) -> bool:
    try:
        return LEGAL[Transition(transition)].get(None if begin is None else State(begin)) == end
    except ValueError:
        return False
