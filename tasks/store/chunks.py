"""The subtasks of a task: one for each chunk of its search URLs, released in turn, and one for left-over targets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from tasks.domain.page_key import page_key
from tasks.store import transitions
from tasks.store.database import insert_new
from tasks.store.leases import HITS_UNREAD
from tasks.store.tables import attempts, products, subtasks, targets, task_parts, tasks

ChunkKey = tuple[int, int]
"""A chunk: its partition, and its number in its task."""

_OF_TASK = ("task_id", "product_id", "site", "kind", "priority")


def release_chunks(conn: Connection, now: datetime, chunks: Collection[ChunkKey]) -> dict[ChunkKey, int]:
    """Make the subtasks of chunks, with their result pages as targets.

    Returns:
        Their ids, by chunk; chunks that do not exist or were released before are left out.
    """
    if not chunks:
        return {}
    rows = conn.execute(
        select(task_parts, tasks.c.product_id, tasks.c.site, tasks.c.kind, products.c.priority)
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .join(products, products.c.id == tasks.c.product_id)
        .where(task_parts.c.id.in_({part_id for part_id, _ in chunks}))
    )
    of = {row.id: row for row in rows}
    of_tasks = {row.task_id for row in of.values()}
    before = select(subtasks.c.part_id, subtasks.c.chunk).where(subtasks.c.task_id.in_(of_tasks)).distinct()
    released = {(row.part_id, row.chunk) for row in conn.execute(before)}
    wanted = [
        (of[part_id], number)
        for part_id, number in sorted(set(chunks), key=lambda chunk: (of[chunk[0]].task_id, chunk[1]))
        if number < _end(of[part_id]) and (part_id, number) not in released
    ]
    ids = transitions.create(
        conn,
        now,
        [
            {
                **{name: row._mapping[name] for name in _OF_TASK},
                "chunk": number,
                "part_id": row.id,
                "left": len(_urls(row, number)) * HITS_UNREAD,
            }
            for row, number in wanted
        ],
        [transitions.EventData(detail=_described(row, number)) for row, number in wanted],
    )
    result_pages = [
        {
            "task_id": row.task_id,
            "subtask_id": subtask_id,
            "kind": "result",
            "url": url,
            "url_key": page_key(url),
        }
        for (row, number), subtask_id in zip(wanted, ids, strict=True)
        for url in _urls(row, number)
    ]
    if result_pages:
        conn.execute(insert_new(conn.dialect, targets), result_pages)
    return {(row.id, number): subtask_id for (row, number), subtask_id in zip(wanted, ids, strict=True)}


def _end(row: Row[*tuple[Any, ...]]) -> int:
    """The number behind a partition's last chunk."""
    return int(row.first_chunk + len(row.chunks))


def _urls(row: Row[*tuple[Any, ...]], number: int) -> Sequence[str]:
    urls: Sequence[str] = row.chunks[number - row.first_chunk]
    return urls


def _described(row: Row[*tuple[Any, ...]], number: int) -> dict[str, Any]:
    """What a chunk's subtask will fetch, and its query where that is not its product's keywords at any time."""
    described: dict[str, Any] = {
        "chunk": number,
        "of": _end(row) - 1,
        "result_pages": len(_urls(row, number)),
    }
    if row.dropped:
        described |= {"keywords": list(row.keywords), "dropped": list(row.dropped)}
    if row.start_at is not None:
        described["span"] = [row.start_at.isoformat(), row.end_at.isoformat()]
    return described


def more_after(conn: Connection, chunks: Collection[ChunkKey]) -> set[ChunkKey]:
    """Those of these chunks that showed that there is more, and that are not the last of their partition."""
    of = {
        row.id: row
        for row in conn.execute(select(task_parts).where(task_parts.c.id.in_({part for part, _ in chunks})))
    }
    go_on = {(part_id, number) for part_id, number in chunks if number + 1 < _end(of[part_id])}
    if not go_on:
        return set()
    showed = conn.execute(
        select(subtasks.c.part_id, subtasks.c.chunk)
        .join(attempts, attempts.c.subtask_id == subtasks.c.id)
        .where(subtasks.c.task_id.in_({of[part_id].task_id for part_id, _ in go_on}), attempts.c.more)
        .distinct()
    )
    return {(row.part_id, row.chunk) for row in showed} & go_on


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
    inherited = (*_OF_TASK, "chunk", "part_id")
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
