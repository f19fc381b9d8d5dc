"""Proof that the loop kept its promises, from the event log and the tables (DESIGN.md, 3).

Proved: each subtask is in exactly one queue, the one its last event led to; only legal transitions, each from where
the one before ended; never more than `MAX_RECALLS` recalls in a round; leases exactly where attempts run; every
attempt numbered, closed and folded into the statistics once; no page and no review stored twice; nothing lost.

Set-based SQL, and one streaming pass over the event log. Give it a connection of `Store.read`, so that all it looks at
is one consistent view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, and_, case, func, or_, select

from tasks.model import State
from tasks.queues import LEGAL, MAX_RECALLS, Transition
from tasks.store import parts
from tasks.store.tables import (
    attempts,
    events,
    page_products,
    pages,
    pair_stats,
    products,
    reviews,
    subtasks,
    targets,
    task_parts,
    tasks,
    virtual_tasks,
)
from tasks.strategies.denominator import PartState, total

_COUNTED = (products, virtual_tasks, tasks, task_parts, subtasks, targets, attempts, events, pages, reviews)
_SUMS = (
    "attempts",
    "failed",
    "silent",
    "offered",
    "tried",
    "collected",
    "active_s",
    "wait_s",
    "lost_s",
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept.

    Attributes:
        kind: queue, chain, transition, recalls, lease, attempt, counters, statistics, twice, lost or parts.
        subtask_id: whose it is; None where it is no single subtask's.
        message: which rows, what they say, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        violations: empty where every promise was kept.
        counts: rows looked at by table, and `overdue`: leases that have run out and wait for the recall sweep.
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]


def verify(conn: Connection, now: datetime) -> Verification:
    """Check every promise over the whole store; changes nothing."""
    violations = (
        *_event_log(conn),
        *_leases(conn),
        *_open_attempts(conn),
        *_attempt_numbers(conn),
        *_attempt_counters(conn),
        *_statistics(conn),
        *_stored_twice(conn),
        *_lost_targets(conn),
        *_lost_pages(conn),
        *_lost_tasks(conn),
        *_lost_chunks(conn),
        *_parts(conn),
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


# --- the event log ------------------------------------------------------------------------------------------


def _event_log(conn: Connection) -> Iterator[Violation]:
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


# --- leases and attempts ------------------------------------------------------------------------------------


def _leases(conn: Connection) -> Iterator[Violation]:
    held = (subtasks.c.lease_token, subtasks.c.lease_node, subtasks.c.lease_deadline, subtasks.c.attempt_id)
    crawling = subtasks.c.state == State.CRAWL
    part_missing = or_(*(column.is_(None) for column in held))
    part_left = or_(subtasks.c.lease_started, *(column.is_not(None) for column in held))
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.state).where(
            or_(and_(crawling, part_missing), and_(~crawling, part_left))
        )
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
    kept = {
        (row.site, row.node): tuple(float(getattr(row, name)) for name in _SUMS)
        for row in conn.execute(select(pair_stats))
    }
    summed = {(row.site, row.node): tuple(float(v) for v in row[2:]) for row in conn.execute(_sums())}
    nothing = (0.0,) * len(_SUMS)
    for pair in sorted(kept.keys() | summed.keys()):
        for name, is_, should in zip(_SUMS, kept.get(pair, nothing), summed.get(pair, nothing), strict=True):
            if not math.isclose(is_, should, rel_tol=1e-6, abs_tol=1e-6):
                message = (
                    f"{pair[0]} on {pair[1]}: {name} is {is_:g}, its closed attempts sum up to {should:g}"
                )
                yield Violation("statistics", None, message)


def _sums() -> Any:
    """Sums over closed attempts per pair, by the rule of `tasks.control.fold`: what was given back without a hit
    tried counts for nothing, and otherwise over the hits it tried."""
    a = attempts.c
    given_back = a.outcome.in_(("released", "cancelled"))
    counts = or_(~given_back, a.tried > 0, a.collected > 0)
    reached = case((a.tried > a.collected, a.tried), else_=a.collected)
    offered = case((and_(given_back, reached < a.offered), reached), else_=a.offered)
    return (
        select(
            a.site,
            a.node,
            func.sum(case((counts, 1), else_=0)),
            func.sum(case((a.outcome == "failed", 1), else_=0)),
            func.sum(case((a.outcome == "silent", 1), else_=0)),
            *(func.sum(case((counts, column), else_=0)) for column in (offered, a.tried, a.collected)),
            func.sum(case((counts, a.active_s), else_=0.0)),
            func.sum(a.wait_s),
            func.sum(case((counts, a.lost_s), else_=0.0)),
        )
        .where(a.outcome.is_not(None))
        .group_by(a.site, a.node)
    )


# --- stored once, and nothing lost --------------------------------------------------------------------------


def _stored_twice(conn: Connection) -> Iterator[Violation]:
    same_page = select(func.min(pages.c.url).label("url"), func.count().label("n")).group_by(pages.c.url_key)
    for row in conn.execute(same_page.having(func.count() > 1)):
        yield Violation("twice", None, f"page {row.url} is stored {row.n} times")
    same_review = select(reviews.c.page_id, reviews.c.key, func.count().label("n")).group_by(
        reviews.c.page_id, reviews.c.key
    )
    for row in conn.execute(same_review.having(func.count() > 1)):
        yield Violation("twice", None, f"review {row.key!r} of page {row.page_id} is stored {row.n} times")


def _lost_targets(conn: Connection) -> Iterator[Violation]:
    left_behind = conn.execute(
        select(targets.c.subtask_id, func.count().label("n"))
        .join(subtasks, subtasks.c.id == targets.c.subtask_id)
        .where(targets.c.state == "todo", subtasks.c.state == State.DONE)
        .group_by(targets.c.subtask_id)
    )
    for row in left_behind:
        yield Violation("lost", row.subtask_id, f"is DONE, but {row.n} of its targets are still to do")
    without_page = conn.execute(
        select(targets.c.id, targets.c.subtask_id, targets.c.url)
        .select_from(targets.outerjoin(pages, pages.c.url_key == targets.c.url_key))
        .where(targets.c.kind == "hit", targets.c.state == "stored", pages.c.id.is_(None))
    )
    for row in without_page:
        yield Violation("lost", row.subtask_id, f"target {row.id} is stored, but there is no page {row.url}")


def _lost_pages(conn: Connection) -> Iterator[Violation]:
    linked = select(page_products.c.page_id).where(page_products.c.page_id == pages.c.id).exists()
    for row in conn.execute(select(pages.c.id, pages.c.url).where(~linked)):
        yield Violation("lost", None, f"page {row.id} ({row.url}) belongs to no product")
    read = select(reviews.c.page_id, func.count().label("n")).group_by(reviews.c.page_id).subquery()
    n = func.coalesce(read.c.n, 0)
    short = conn.execute(
        select(pages.c.id, pages.c.reviews, n.label("n"))
        .select_from(pages.outerjoin(read, read.c.page_id == pages.c.id))
        .where(pages.c.reviews != n)
    )
    for page_id, read_then, stored in short:
        yield Violation("lost", None, f"page {page_id} had {read_then} reviews, {stored} are stored")


def _lost_tasks(conn: Connection) -> Iterator[Violation]:
    has_subtask = select(subtasks.c.id).where(subtasks.c.task_id == tasks.c.id).exists()
    for row in conn.execute(select(tasks.c.id, tasks.c.site).where(~has_subtask)):
        yield Violation("lost", None, f"task {row.id} ({row.site}) has no subtask")
    wanted = select(virtual_tasks.c.id).where(virtual_tasks.c.product_id == products.c.id).exists()
    for row in conn.execute(select(products.c.id, products.c.name).where(~wanted)):
        yield Violation("lost", None, f"product {row.id} ({row.name}) has no virtual task")
    half = (
        select(virtual_tasks.c.id)
        .join(tasks, tasks.c.virtual_task_id == virtual_tasks.c.id)
        .where(virtual_tasks.c.planned_at.is_(None))
        .distinct()
    )
    for virtual_task_id in conn.scalars(half):
        yield Violation(
            "lost", None, f"virtual task {virtual_task_id} has tasks, but counts as still to be planned"
        )


def _lost_chunks(conn: Connection) -> Iterator[Violation]:
    """Chunks whose predecessor is DONE and showed that there is more, and that were not released."""
    released = select(subtasks.c.task_id, subtasks.c.chunk).distinct().subquery()
    next_one = and_(released.c.task_id == subtasks.c.task_id, released.c.chunk == subtasks.c.chunk + 1)
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.chunk, tasks.c.chunks)
        .select_from(
            attempts.join(subtasks, subtasks.c.id == attempts.c.subtask_id)
            .join(tasks, tasks.c.id == subtasks.c.task_id)
            .outerjoin(released, next_one)
        )
        .outerjoin(task_parts, task_parts.c.id == subtasks.c.part_id)
        .where(attempts.c.more, subtasks.c.state == State.DONE, released.c.chunk.is_(None))
        # A span that holds too much is not read on: its parts are.
        .where(
            or_(
                task_parts.c.id.is_(None),
                task_parts.c.state != PartState.SPLIT,
                task_parts.c.start_at.is_(None),
            )
        )
        .order_by(subtasks.c.id)
    )
    for subtask_id, chunk, chunks in rows:
        if chunk < len(chunks) and not chunks[chunk]["first"]:
            yield Violation(
                "lost", subtask_id, f"showed that there is more, but chunk {chunk + 1} was not released"
            )


# --- parts --------------------------------------------------------------------------------------------------


def _parts(conn: Connection) -> Iterator[Violation]:
    """Parts against each other and what their tasks have found; then against their subtasks."""
    hits = conn.execute(
        select(targets.c.task_id, func.count()).where(targets.c.kind == "hit").group_by(targets.c.task_id)
    )
    different = {row[0]: row[1] for row in hits}
    rows = conn.execute(
        select(task_parts, tasks.c.found.label("of_task"), tasks.c.found_provenance.label("rests_on"))
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .order_by(task_parts.c.task_id, task_parts.c.id),
        execution_options={"yield_per": 10_000},
    )
    for task_id, group in groupby(rows, key=lambda row: row.task_id):
        of_task = list(group)
        yield from _replaced(task_id, of_task)
        told = of_task[0]
        found = total([parts.row_of(row).summand for row in of_task], different.get(task_id, 0))
        if (told.of_task, told.rests_on) != (found.found, found.provenance):
            message = (
                f"task {task_id} has found {told.of_task} ({told.rests_on}), its parts add up to "
                f"{found.found} ({found.provenance})"
            )
            yield Violation("parts", None, message)
    yield from _subtasks_of_parts(conn)


def _replaced(task_id: int, of_task: Sequence[Any]) -> Iterator[Violation]:
    """Whether what was split or relaxed has what takes its place, and spans share no moment and leave none out."""
    for part in of_task:
        inside = sorted(
            (one.start_at, one.end_at) for one in of_task if one.parent_id == part.id and one.start_at
        )
        below = [one for one in of_task if one.parent_id == part.id]
        name = f"part {part.id} of task {task_id}"
        if (part.state in (PartState.SPLIT, PartState.RELAXED)) != bool(below):
            yield Violation("parts", None, f"{name} is {part.state} and has {len(below)} parts in its place")
        if part.state != PartState.SPLIT or not inside:
            continue
        meet = all(before[1] == after[0] for before, after in pairwise(inside))
        whole = part.start_at is None or (part.start_at, part.end_at) == (inside[0][0], inside[-1][1])
        if not (meet and whole):
            yield Violation("parts", None, f"{name}: the spans of its parts overlap or leave a gap")


def _subtasks_of_parts(conn: Connection) -> Iterator[Violation]:
    theirs = select(subtasks.c.id).where(subtasks.c.part_id == task_parts.c.id).exists()
    for row in conn.execute(select(task_parts.c.id, task_parts.c.task_id).where(~theirs)):
        yield Violation("parts", None, f"part {row.id} of task {row.task_id} has no subtask")
    astray = conn.execute(
        select(subtasks.c.id, subtasks.c.part_id)
        .select_from(subtasks.outerjoin(task_parts, task_parts.c.id == subtasks.c.part_id))
        .where(
            subtasks.c.part_id.is_not(None),
            or_(task_parts.c.id.is_(None), task_parts.c.task_id != subtasks.c.task_id),
        )
    )
    for row in astray:
        yield Violation("parts", row.id, f"is of part {row.part_id}, which is none of its task")
