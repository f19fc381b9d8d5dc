"""Check every invariant of the store, from the event log and the tables.

Each subtask is in exactly one queue, the one its last event led to; only legal transitions, each from where the one
before ended; never more than `MAX_RECALLS` recalls in a round; leases exactly where attempts run; every attempt
numbered, closed and added to the statistics once; no page and no review stored twice; nothing lost.

Set-based SQL, and one streaming pass over the event log, on a connection of `Store.read`: one consistent view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from tasks.domain.hit_count import PartitionState, task_hit_count
from tasks.domain.states import State
from tasks.store.attempt_invariants import Violation, attempt_violations, log_violations
from tasks.store.database import count_by
from tasks.store.partitions import COLUMNS, row_of
from tasks.store.tables import (
    attempts,
    events,
    page_products,
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


# --- what is stored: nothing twice, nothing lost; partitions add up -----------------------------------------


def loss_violations(conn: Connection) -> Iterator[Violation]:
    """What is stored twice, and targets, pages, tasks and chunks that were left behind."""
    yield from _stored_twice(conn)
    yield from _lost_targets(conn)
    yield from _lost_pages(conn)
    yield from _lost_tasks(conn)
    yield from _lost_chunks(conn)


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
        select(subtasks.c.id, subtasks.c.chunk, task_parts.c.first_chunk, task_parts.c.chunks)
        .select_from(
            attempts.join(subtasks, subtasks.c.id == attempts.c.subtask_id)
            .join(task_parts, task_parts.c.id == subtasks.c.part_id)
            .outerjoin(released, next_one)
        )
        .where(attempts.c.more, subtasks.c.state == State.DONE, released.c.chunk.is_(None))
        # A span that holds too much is not read on, but divided.
        .where(or_(task_parts.c.state != PartitionState.SPLIT, task_parts.c.start_at.is_(None)))
        .order_by(subtasks.c.id)
    )
    for subtask_id, chunk, first_chunk, chunks in rows:
        if chunk + 1 < first_chunk + len(chunks):
            yield Violation(
                "lost", subtask_id, f"showed that there is more, but chunk {chunk + 1} was not released"
            )


def partition_violations(conn: Connection) -> Iterator[Violation]:
    """Parts against each other and what their tasks have found; then against their subtasks."""
    different = count_by(conn, targets.c.task_id, targets.c.kind == "hit")
    rows = conn.execute(
        select(*COLUMNS, tasks.c.found.label("of_task"), tasks.c.found_provenance.label("rests_on"))
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .order_by(task_parts.c.task_id, task_parts.c.id),
        execution_options={"yield_per": 10_000},
    )
    for task_id, group in groupby(rows, key=lambda row: row.task_id):
        of_task = list(group)
        yield from _replaced(task_id, of_task)
        task = of_task[0]
        found = task_hit_count([row_of(row).summand for row in of_task], different.get(task_id, 0))
        if (task.of_task, task.rests_on) != (found.found, found.provenance):
            message = (
                f"task {task_id} has found {task.of_task} ({task.rests_on}), its partitions add up to "
                f"{found.found} ({found.provenance})"
            )
            yield Violation("partitions", None, message)
    yield from _subtasks_of_partitions(conn)


def _replaced(task_id: int, of_task: Sequence[Any]) -> Iterator[Violation]:
    """Whether what was split or relaxed has what takes its place, and spans share no moment and leave none out."""
    for part in of_task:
        inside = sorted(
            (one.start_at, one.end_at) for one in of_task if one.parent_id == part.id and one.start_at
        )
        below = [one for one in of_task if one.parent_id == part.id]
        name = f"partition {part.id} of task {task_id}"
        if (part.state in (PartitionState.SPLIT, PartitionState.RELAXED)) != bool(below):
            yield Violation("partitions", None, f"{name} is {part.state} and is replaced by {len(below)}")
        if part.state != PartitionState.SPLIT or not inside:
            continue
        meet = all(before[1] == after[0] for before, after in pairwise(inside))
        whole = part.start_at is None or (part.start_at, part.end_at) == (inside[0][0], inside[-1][1])
        if not (meet and whole):
            yield Violation("partitions", None, f"{name}: the spans that replace it overlap or leave a gap")


def _subtasks_of_partitions(conn: Connection) -> Iterator[Violation]:
    theirs = select(subtasks.c.id).where(subtasks.c.part_id == task_parts.c.id).exists()
    for row in conn.execute(select(task_parts.c.id, task_parts.c.task_id).where(~theirs)):
        yield Violation("partitions", None, f"partition {row.id} of task {row.task_id} has no subtask")
    astray = conn.execute(
        select(subtasks.c.id, subtasks.c.part_id)
        .select_from(subtasks.outerjoin(task_parts, task_parts.c.id == subtasks.c.part_id))
        .where(or_(task_parts.c.id.is_(None), task_parts.c.task_id != subtasks.c.task_id))
    )
    for row in astray:
        yield Violation("partitions", row.id, f"is of partition {row.part_id}, which is none of its task")
