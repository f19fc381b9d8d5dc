"""The subtasks of a task: one a chunk of its search URLs, released in turn, and one for what is left over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from tasks.domain.page_key import page_key
from tasks.store import transitions
from tasks.store.database import insert_new
from tasks.store.leases import HITS_UNREAD
from tasks.store.tables import attempts, products, subtasks, targets, task_parts, tasks


def release_chunks(
    conn: Connection, now: datetime, chunks: Collection[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """Make the subtasks of chunks (task, number from 1), with their result pages as targets.

    Returns:
        Their ids, by chunk; those that a task has not, or that were released before, are left out.
    """
    if not chunks:
        return {}
    of_tasks = {task_id for task_id, _ in chunks}
    rows = conn.execute(
        select(
            tasks.c.id, tasks.c.product_id, tasks.c.site, tasks.c.kind, tasks.c.chunks, products.c.priority
        )
        .join(products, products.c.id == tasks.c.product_id)
        .where(tasks.c.id.in_(of_tasks))
    )
    of = {row.id: row for row in rows}
    released = {
        (row.task_id, row.chunk)
        for row in conn.execute(
            select(subtasks.c.task_id, subtasks.c.chunk).where(subtasks.c.task_id.in_(of_tasks)).distinct()
        )
    }
    wanted = [
        (task_id, number)
        for task_id, number in sorted(set(chunks))
        if number <= len(of[task_id].chunks) and (task_id, number) not in released
    ]
    of_parts = _parts(conn, {task_id for task_id, _ in wanted})
    urls = {(task_id, number): of[task_id].chunks[number - 1]["urls"] for task_id, number in wanted}
    asked = {chunk: part for chunk in wanted if (part := _part_of(of_parts, *chunk)) is not None}
    ids = transitions.create(
        conn,
        now,
        [
            {
                "task_id": task_id,
                "product_id": of[task_id].product_id,
                "parent_id": None,
                "site": of[task_id].site,
                "kind": of[task_id].kind,
                "chunk": number,
                "part_id": asked[task_id, number].id if (task_id, number) in asked else None,
                "priority": of[task_id].priority,
                "left": len(urls[task_id, number]) * HITS_UNREAD,
                "not_before": None,
            }
            for task_id, number in wanted
        ],
        [
            transitions.EventData(
                detail={
                    "chunk": number,
                    "of": len(of[task_id].chunks),
                    "result_pages": len(urls[task_id, number]),
                    **_asks(asked.get((task_id, number))),
                }
            )
            for task_id, number in wanted
        ],
    )
    made = dict(zip(wanted, ids, strict=True))
    result_pages = [
        {
            "task_id": chunk[0],
            "subtask_id": subtask_id,
            "kind": "result",
            "url": url,
            "url_key": page_key(url),
        }
        for chunk, subtask_id in made.items()
        for url in urls[chunk]
    ]
    if result_pages:
        conn.execute(insert_new(conn.dialect, targets), result_pages)
    return made


def _parts(conn: Connection, task_ids: Collection[int]) -> dict[int, list[Row[Any]]]:
    """The parts of tasks, by their first chunks."""
    found: dict[int, list[Row[Any]]] = {}
    for row in conn.execute(
        select(task_parts)
        .where(task_parts.c.task_id.in_(task_ids))
        .order_by(task_parts.c.task_id, task_parts.c.first_chunk)
    ):
        found.setdefault(row.task_id, []).append(row)
    return found


def _part_of(parts: Mapping[int, Sequence[Row[Any]]], task_id: int, chunk: int) -> Row[Any] | None:
    before = [part for part in parts.get(task_id, ()) if part.first_chunk <= chunk]
    return before[-1] if before else None


def _asks(part: Row[Any] | None) -> dict[str, Any]:
    """What a part asks for, where it is not just its product's keywords at any time."""
    told: dict[str, Any] = {}
    if part is not None and part.dropped:
        told["keywords"], told["dropped"] = list(part.keywords), list(part.dropped)
    if part is not None and part.start_at is not None:
        told["span"] = [part.start_at.isoformat(), part.end_at.isoformat()]
    return told


def more_after(conn: Connection, chunks: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of these chunks (task, number) that showed that there is more, and that the next one goes on with."""
    of_tasks = {task_id for task_id, _ in chunks}
    lists = {
        row.id: row.chunks
        for row in conn.execute(select(tasks.c.id, tasks.c.chunks).where(tasks.c.id.in_(of_tasks)))
    }
    go_on = {
        (task_id, number)
        for task_id, number in chunks
        if number < len(lists[task_id]) and not lists[task_id][number]["first"]
    }
    if not go_on:
        return set()
    showed = conn.execute(
        select(subtasks.c.task_id, subtasks.c.chunk)
        .join(attempts, attempts.c.subtask_id == subtasks.c.id)
        .where(subtasks.c.task_id.in_({task_id for task_id, _ in go_on}), attempts.c.more)
        .distinct()
    )
    return {(row.task_id, row.chunk) for row in showed} & go_on


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What a subtask leaves to its follow-up.

    Attributes:
        left: hits to do, as `tasks.store.leases.left_to_do` counts them.
        not_before: earliest time to go on; None: at once.
    """

    parent_id: int
    left: int
    not_before: datetime | None = None


def follow_ups(conn: Connection, now: datetime, left_over: Sequence[LeftOver]) -> dict[int, int]:
    """Make the subtasks that carry on targets still to do; returns their ids, by parent."""
    if not left_over:
        return {}
    inherited = ("task_id", "product_id", "site", "kind", "chunk", "part_id", "priority")
    parents = {
        row.id: row._mapping
        for row in conn.execute(
            select(subtasks.c.id, *(subtasks.c[name] for name in inherited)).where(
                subtasks.c.id.in_([one.parent_id for one in left_over])
            )
        )
    }
    ids = transitions.create(
        conn,
        now,
        [
            {
                **{name: parents[one.parent_id][name] for name in inherited},
                "parent_id": one.parent_id,
                "left": one.left,
                "not_before": one.not_before,
            }
            for one in left_over
        ],
        [transitions.EventData(detail={"follows": one.parent_id, "left": one.left}) for one in left_over],
    )
    made = {one.parent_id: new_id for one, new_id in zip(left_over, ids, strict=True)}
    conn.execute(
        update(targets)
        .where(targets.c.subtask_id == bindparam("parent"), targets.c.state == "todo")
        .values(subtask_id=bindparam("new_id")),
        [{"parent": parent_id, "new_id": new_id} for parent_id, new_id in made.items()],
    )
    return made
