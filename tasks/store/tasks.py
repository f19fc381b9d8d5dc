"""Virtual tasks and their tasks: the plan of a virtual task, and the sites on which its tasks are made later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, insert, select, update

from tasks.store.chunks import release_chunks
from tasks.store.database import later_of
from tasks.store.partitions import NewPartition, insert_partitions
from tasks.store.tables import products, subtasks, task_parts, tasks, unplanned_sites, virtual_tasks


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
    """A product plus its AND keywords: what is wanted, not where.

    Attributes:
        own_keywords: a person chose the keywords.
        sites: only these; None = all of the catalog.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplannedSite:
    """A site that products wait for.

    Attributes:
        obstacle: kind of what was in the way; `why` for people.
        products: how many wait for it.
        since: since when the first of them waits.
    """

    site: str
    obstacle: str
    why: str
    products: int
    since: datetime


KeywordSets = Sequence[Sequence[str]]

LEAST_WORDS = 2
"""Words of a query that alone may tell what a page is about."""

_WORDS = virtual_tasks.join(tasks, tasks.c.virtual_task_id == virtual_tasks.c.id)
_OF_SUBTASK = tasks.c.id == subtasks.c.task_id
KEYWORDS = (
    select(virtual_tasks.c.keywords).select_from(_WORDS).where(_OF_SUBTASK).scalar_subquery().label("words"),
    select(virtual_tasks.c.aliases).select_from(_WORDS).where(_OF_SUBTASK).scalar_subquery().label("aliases"),
    select(task_parts.c.keywords)
    .where(task_parts.c.id == subtasks.c.part_id)
    .scalar_subquery()
    .label("own_words"),
)
"""Columns of a query of `subtasks` that `keyword_sets` reads: with the lock, not in a round trip of their own."""


def keyword_sets(subtask: Row[Any]) -> KeywordSets:
    """The keyword sets of which a page must name one: the product's and its aliases', and the subtask's own query's.

    A query that was relaxed to a single word is left out: a word alone names nothing.

    Args:
        subtask: a row with the columns `KEYWORDS`.
    """
    own = subtask.own_words
    return [subtask.words, *subtask.aliases, *([own] if own and len(own) >= LEAST_WORDS else [])]


def unplanned(conn: Connection, limit: int) -> list[VirtualTask]:
    """Virtual tasks whose tasks are still to be made: higher priority first, then first in, first out."""
    return virtual_tasks_where(conn, virtual_tasks.c.planned_at.is_(None), limit)


def virtual_tasks_where(conn: Connection, condition: ColumnElement[bool], limit: int) -> list[VirtualTask]:
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
        )
        for r in rows
    ]


def plan(conn: Connection, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
    """Make the tasks of a virtual task, once, and the first subtask of each partition; returns how many tasks."""
    claimed = conn.execute(
        update(virtual_tasks)
        .where(virtual_tasks.c.id == virtual_task.id, virtual_tasks.c.planned_at.is_(None))
        .values(planned_at=later_of(virtual_tasks.c.created_at, now))
    )
    return insert_tasks(conn, now, virtual_task, planned) if claimed.rowcount == 1 else 0


def insert_tasks(
    conn: Connection, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]
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
    release_chunks(conn, now, insert_partitions(conn, partitions))
    return len(planned)


def put_off(
    conn: Connection, now: datetime, virtual_task: VirtualTask, sites: Mapping[str, tuple[str, str]]
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


def late_sites(conn: Connection) -> list[str]:
    """The sites that products wait for."""
    return list(conn.scalars(select(unplanned_sites.c.site).distinct().order_by(unplanned_sites.c.site)))


def list_late(
    conn: Connection, askable: Collection[str], limit: int
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


def plan_late(conn: Connection, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
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


def list_late_sites(conn: Connection) -> list[UnplannedSite]:
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
