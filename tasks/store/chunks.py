"""The subtasks of a task: one for each chunk of its search URLs, released in turn, and one for left-over targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select, update

from tasks.domain.page_key import page_key
from tasks.store import transitions
from tasks.store.leases import HITS_UNREAD
from tasks.store.prepared import Prepared, new_rows, update_each
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
    of = {
        row.id: row
        for row in _PARTS_OF_PRODUCTS.rows(conn, {"ids": list({part_id for part_id, _ in chunks})})
    }
    of_tasks = {row.task_id for row in of.values()}
    released = {(row.part_id, row.chunk) for row in _RELEASED.rows(conn, {"ids": list(of_tasks)})}
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
                **{name: getattr(row, name) for name in _OF_TASK},
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
        made = Counter(
            row.subtask_id
            for row in new_rows(conn, targets, tuple(result_pages[0]), targets.c.subtask_id).rows_of_each(
                conn, result_pages
            )
        )
        expected = zip(ids, (len(_urls(row, number)) for row, number in wanted), strict=True)
        # Another partition of the task may have asked for the same URL.
        fewer = [{"id": one, "left": made[one] * HITS_UNREAD} for one, n in expected if made[one] != n]
        update_each(conn, subtasks, ("id",), fewer)
    return {(row.id, number): subtask_id for (row, number), subtask_id in zip(wanted, ids, strict=True)}


_ids: BindParameter[Any] = bindparam("ids", expanding=True)
_PARTS_OF_PRODUCTS = Prepared(
    select(task_parts, tasks.c.product_id, tasks.c.site, tasks.c.kind, products.c.priority)
    .join(tasks, tasks.c.id == task_parts.c.task_id)
    .join(products, products.c.id == tasks.c.product_id)
    .where(task_parts.c.id.in_(_ids))
)
_RELEASED = Prepared(
    select(subtasks.c.part_id, subtasks.c.chunk).where(subtasks.c.task_id.in_(_ids)).distinct()
)


def _end(row: Any) -> int:
    """The number behind a partition's last chunk."""
    return int(row.first_chunk + len(row.chunks))


def _urls(row: Any, number: int) -> Sequence[str]:
    urls: Sequence[str] = row.chunks[number - row.first_chunk]
    return urls


def _described(row: Any, number: int) -> dict[str, Any]:
    """Details of a chunk's subtask: its targets, and its query where that is not its product's keywords at any time."""
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
    of = {row.id: row for row in _PARTS.rows(conn, {"ids": list({part_id for part_id, _ in chunks})})}
    go_on = {(part_id, number) for part_id, number in chunks if number + 1 < _end(of[part_id])}
    if not go_on:
        return set()
    showed = _SHOWED_MORE.rows(conn, {"ids": list({of[part_id].task_id for part_id, _ in go_on})})
    return {(row.part_id, row.chunk) for row in showed} & go_on


_PARTS = Prepared(
    select(task_parts.c.id, task_parts.c.task_id, task_parts.c.first_chunk, task_parts.c.chunks).where(
        task_parts.c.id.in_(_ids)
    )
)
_SHOWED_MORE = Prepared(
    select(subtasks.c.part_id, subtasks.c.chunk)
    .join(attempts, attempts.c.subtask_id == subtasks.c.id)
    .where(subtasks.c.task_id.in_(_ids), attempts.c.more)
    .distinct()
)


def _follows(one: LeftOver) -> dict[str, Any]:
    at = one.not_before.isoformat() if one.not_before is not None else None
    return {"follows": one.parent_id, "left": one.left, "not_before": at}


@dataclass(frozen=True, slots=True)
class LeftOver:
    """The targets that a subtask leaves to its follow-up.

    Attributes:
        left: hits to do, as `tasks.store.left_over.left_to_do` counts them.
        not_before: earliest time to go on; None: at once.
    """

    parent_id: int
    left: int
    not_before: datetime | None = None


def follow_ups(conn: Connection, now: datetime, left_over: Sequence[LeftOver]) -> dict[int, int]:
    """Make the subtasks that carry on targets still to do; returns their ids, by parent."""
    if not left_over:
        return {}
    parents = {row.id: row for row in _PARENTS.rows(conn, {"ids": [one.parent_id for one in left_over]})}
    ids = transitions.create(
        conn,
        now,
        [
            {
                **{name: getattr(parents[one.parent_id], name) for name in _INHERITED},
                "parent_id": one.parent_id,
                "left": one.left,
                "not_before": one.not_before,
            }
            for one in left_over
        ],
        [transitions.EventData(detail=_follows(one)) for one in left_over],
    )
    made = {one.parent_id: new_id for one, new_id in zip(left_over, ids, strict=True)}
    _PASS_ON.defer(conn, [{"parent": parent_id, "new_id": new_id} for parent_id, new_id in made.items()])
    return made


_INHERITED = (*_OF_TASK, "chunk", "part_id", "assigned_quota")
_PARENTS = Prepared(
    select(subtasks.c.id, *(subtasks.c[name] for name in _INHERITED)).where(subtasks.c.id.in_(_ids))
)
_PASS_ON = Prepared(
    update(targets)
    .where(targets.c.subtask_id == bindparam("parent"), targets.c.state == "todo")
    .values(subtask_id=bindparam("new_id"))
)
