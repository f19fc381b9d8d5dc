"""Virtual tasks, their tasks, and the subtasks of a task.

A virtual task is planned once, and later for the sites that could not be asked at first. A task has a subtask for each
chunk of its search URLs, released in turn, and one for left-over targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from tasks.domain.page_key import page_key
from tasks.store.queue import transitions
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.queue.partitions import NewPartition, insert_partitions
from tasks.store.sql.database import later_of
from tasks.store.sql.prepared import Prepared, new_rows
from tasks.store.sql.tables import (
    attempts,
    products,
    subtasks,
    targets,
    task_parts,
    tasks,
    unplanned_sites,
    virtual_tasks,
)
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be made: one virtual task on one site.

    Attributes:
        partitions: one for each of its keyword sets.
    """

    site: str
    engine: str
    kind: str
    partitions: tuple[NewPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTask:
    """A product plus its AND keywords: the goal, independent of any site.

    Attributes:
        own_keywords: a person chose the keywords.
        sites: only these; None = those of its category.
        category: of the product; None = unknown, so all sites.
    """

    id: int
    product_id: int
    product: str
    keywords: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    pages: int | None
    priority: int
    own_keywords: bool = False
    sites: tuple[str, ...] | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplannedSite:
    """A site that products wait for.

    Attributes:
        obstacle: kind of the obstacle; `why` explains it to people.
        products: how many wait for it.
        since: since when the first of them waits.
    """

    site: str
    obstacle: str
    why: str
    products: int
    since: datetime


def unplanned(conn: Transaction, limit: int) -> list[VirtualTask]:
    """Virtual tasks whose tasks are still to be made: higher priority first, then first in, first out."""
    return virtual_tasks_where(conn, virtual_tasks.c.planned_at.is_(None), limit)


def virtual_tasks_where(conn: Transaction, condition: ColumnElement[bool], limit: int) -> list[VirtualTask]:
    """Virtual tasks by a condition: higher priority first, then first in, first out."""
    rows = conn.execute(
        select(
            virtual_tasks.c.id,
            virtual_tasks.c.product_id,
            products.c.name,
            virtual_tasks.c.keywords,
            virtual_tasks.c.aliases,
            products.c.pages,
            products.c.priority,
            products.c.keywords.label("own"),
            products.c.sites,
            products.c.category,
        )
        .join(products, products.c.id == virtual_tasks.c.product_id)
        .where(condition)
        .order_by(products.c.priority.desc(), virtual_tasks.c.id)
        .limit(limit)
    )
    return [
        VirtualTask(
            id=r.id,
            product_id=r.product_id,
            product=r.name,
            keywords=tuple(r.keywords),
            aliases=tuple(tuple(words) for words in r.aliases),
            pages=r.pages,
            priority=r.priority,
            own_keywords=bool(r.own),
            sites=None if r.sites is None else tuple(r.sites),
            category=r.category,
        )
        for r in rows
    ]


def plan(conn: Transaction, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
    """Make the tasks of a virtual task, once, and the first subtask of each partition; returns how many tasks."""
    claimed = conn.execute(
        update(virtual_tasks)
        .where(virtual_tasks.c.id == virtual_task.id, virtual_tasks.c.planned_at.is_(None))
        .values(planned_at=later_of(virtual_tasks.c.created_at, now))
    )
    return insert_tasks(conn, now, virtual_task, planned) if claimed.rowcount == 1 else 0


def insert_tasks(
    conn: Transaction, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]
) -> int:
    """Insert tasks of a virtual task and the first subtask of each partition; returns how many tasks."""
    if not planned:
        return 0
    rows = [
        {
            "virtual_task_id": virtual_task.id,
            "product_id": virtual_task.product_id,
            "site": task.site,
            "engine": task.engine,
            "kind": task.kind,
            "created_at": now,
        }
        for task in planned
    ]
    task_ids = conn.scalars(insert(tasks).returning(tasks.c.id, sort_by_parameter_order=True), rows)
    partitions = [(task_id, task.partitions) for task_id, task in zip(task_ids, planned, strict=True)]
    release_chunks(conn, insert_partitions(conn, partitions))
    return len(planned)


def put_off(
    conn: Transaction, now: datetime, virtual_task: VirtualTask, sites: Mapping[str, tuple[str, str]]
) -> None:
    """Note the sites a virtual task gets no task on now: site -> (kind of obstacle, why).

    Sites that an earlier round of its product waited for are dropped: the newer one asks the same.
    """
    of_product = select(virtual_tasks.c.id).where(virtual_tasks.c.product_id == virtual_task.product_id)
    conn.execute(delete(unplanned_sites).where(unplanned_sites.c.virtual_task_id.in_(of_product)))
    if sites:
        rows = [
            {"virtual_task_id": virtual_task.id, "site": site, "obstacle": kind, "why": why, "since": now}
            for site, (kind, why) in sites.items()
        ]
        conn.execute(insert(unplanned_sites), rows)


def late_sites(conn: Transaction) -> list[str]:
    """The sites that products wait for."""
    return list(conn.scalars(select(unplanned_sites.c.site).distinct().order_by(unplanned_sites.c.site)))


def list_late(
    conn: Transaction, askable: Collection[str], limit: int
) -> list[tuple[VirtualTask, tuple[str, ...]]]:
    """Virtual tasks that wait for one of these sites, with those of them they wait for."""
    here = unplanned_sites.c.site.in_(askable)
    waits = exists().where(unplanned_sites.c.virtual_task_id == virtual_tasks.c.id, here)
    found = virtual_tasks_where(conn, waits, limit)
    rows = conn.execute(
        select(unplanned_sites.c.virtual_task_id, unplanned_sites.c.site).where(
            here, unplanned_sites.c.virtual_task_id.in_([one.id for one in found])
        )
    ).all()
    return [(one, tuple(row.site for row in rows if row.virtual_task_id == one.id)) for one in found]


def plan_late(conn: Transaction, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
    """Make tasks on sites that could not be asked before, each once; returns how many."""
    taken = set(
        conn.scalars(
            delete(unplanned_sites)
            .where(
                unplanned_sites.c.virtual_task_id == virtual_task.id,
                unplanned_sites.c.site.in_([task.site for task in planned]),
            )
            .returning(unplanned_sites.c.site)
        )
    )
    return insert_tasks(conn, now, virtual_task, [task for task in planned if task.site in taken])


def list_late_sites(conn: Transaction) -> list[UnplannedSite]:
    """The sites that products wait for: those that most wait for first."""
    rows = conn.execute(
        select(
            unplanned_sites.c.site,
            func.min(unplanned_sites.c.obstacle),
            func.min(unplanned_sites.c.why),
            func.count(),
            func.min(unplanned_sites.c.since),
        )
        .group_by(unplanned_sites.c.site)
        .order_by(func.count().desc(), unplanned_sites.c.site)
    )
    return [
        UnplannedSite(site=site, obstacle=obstacle, why=why, products=n, since=since)
        for site, obstacle, why, n, since in rows
    ]


ChunkKey = tuple[int, int]
"""A chunk: its partition, and its number in its task."""

_OF_TASK = ("task_id", "product_id", "site", "kind", "priority")


def release_chunks(conn: Transaction, chunks: Collection[ChunkKey]) -> dict[ChunkKey, int]:
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
        [
            {
                **{name: getattr(row, name) for name in _OF_TASK},
                "chunk": number,
                "part_id": row.id,
                "left": len(_urls(row, number)) * HITS_UNREAD,
            }
            for row, number in wanted
        ],
        [_described(row, number) for row, number in wanted],
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
        conn.update("subtasks", ("id",), fewer)
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
    """Return details of a chunk's subtask: its targets, and its query if that differs from its product's keywords."""
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


def more_after(conn: Transaction, chunks: Collection[ChunkKey]) -> set[ChunkKey]:
    """Return the chunks that found more pages and are not the last of their partition."""
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
        left: hits to do, as `tasks.store.queue.tasks.left_to_do` counts them.
        not_before: earliest time to go on; None: at once.
    """

    parent_id: int
    left: int
    not_before: datetime | None = None


def follow_ups(conn: Transaction, left_over: Sequence[LeftOver]) -> dict[int, int]:
    """Make the subtasks that carry on targets still to do; returns their ids, by parent."""
    if not left_over:
        return {}
    parents = {row.id: row for row in _PARENTS.rows(conn, {"ids": [one.parent_id for one in left_over]})}
    ids = transitions.create(
        conn,
        [
            {
                **{name: getattr(parents[one.parent_id], name) for name in _INHERITED},
                "parent_id": one.parent_id,
                "left": one.left,
                "not_before": one.not_before,
            }
            for one in left_over
        ],
        [_follows(one) for one in left_over],
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


_subtask_ids = bindparam("ids", expanding=True, type_=BigInteger())


def most_tries(conn: Transaction, of: Collection[int]) -> dict[int, int]:
    """Return the maximum number of tries among the open targets of each subtask, 0 if none was tried."""
    if not of:
        return {}
    return {row[0]: row[1] for row in _TRIES.rows(conn, {"ids": list(of)})}


_TRIES = Prepared(
    select(targets.c.subtask_id, func.max(targets.c.tries))
    .where(targets.c.subtask_id.in_(_subtask_ids), targets.c.state == "todo")
    .group_by(targets.c.subtask_id)
)


def left_to_do(conn: Transaction, of: Collection[int]) -> dict[int, int]:
    """Hits still to do of each subtask, an unread result page counted as `HITS_UNREAD`."""
    left = dict.fromkeys(of, 0)
    for subtask_id, kind, n in _LEFT.rows(conn, {"ids": list(of)}):
        left[subtask_id] += n * (HITS_UNREAD if kind == "result" else 1)
    return left


_LEFT = Prepared(
    select(targets.c.subtask_id, targets.c.kind, func.count())
    .where(targets.c.subtask_id.in_(_subtask_ids), targets.c.state == "todo")
    .group_by(targets.c.subtask_id, targets.c.kind)
)
