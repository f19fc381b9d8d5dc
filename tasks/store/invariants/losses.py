"""No page and no review is stored twice, and nothing is lost on the way from a product to its reviews."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, and_, func, or_, select

from tasks.domain.hit_count import PartState
from tasks.domain.states import State
from tasks.store.invariants.violation import Violation
from tasks.store.tables import (
    attempts,
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
