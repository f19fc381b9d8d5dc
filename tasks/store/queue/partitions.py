"""The partitions of tasks: their search URLs, their hit counts, and what replaces them (`tasks.domain.hit_count`).

A partition is one query of a task: a keyword set, of any time or within a span. Its search URLs are cut into chunks,
one subtask each (`tasks.store.queue.tasks`). Chunks are numbered through all partitions of a task.

All partitions of a task are locked in the order of their ids before one of them, or the task's hit count, is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from splitter.spans import Span
from sqlalchemy import BindParameter, bindparam, func, insert, select, update

from tasks.domain.hit_count import (
    EngineLimits,
    HitCount,
    Listing,
    Partition,
    PartitionState,
    Provenance,
    all_counted,
    hit_count,
    task_hit_count,
)
from tasks.domain.pages import ResultPage
from tasks.store.sql.database import count_by
from tasks.store.sql.prepared import Prepared
from tasks.store.sql.tables import pages, reviews, targets, task_parts
from tasks.store.sql.transaction import Transaction

_DATES = 5000
"""Most dates that a query is partitioned by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A partition of a task, without its search URLs.

    Attributes:
        first_chunk: number of its first chunk in its task.
        dropped: words that were left out, the first one first.
        own_words: a person chose its keywords.
        span: None: of any time.
        new_hits: different hits that its task had not listed before: they became targets.
    """

    id: int
    task_id: int
    parent_id: int | None
    first_chunk: int
    keywords: tuple[str, ...]
    dropped: tuple[str, ...]
    own_words: bool
    span: Span | None
    state: PartitionState
    listing: Listing
    new_hits: int
    hits: HitCount

    @property
    def summand(self) -> Partition:
        """As it enters the task's hit count."""
        return Partition(self.id, self.parent_id, self.state, self.hits)


COLUMNS = tuple(column for column in task_parts.c if column.name != "chunks")
"""Those of a `PartitionRow`: search URLs are long, and every result page reads the partitions of its task."""


def row_of(row: Any) -> PartitionRow:
    """A row of `COLUMNS`, read."""
    return PartitionRow(
        id=row.id,
        task_id=row.task_id,
        parent_id=row.parent_id,
        first_chunk=row.first_chunk,
        keywords=tuple(row.keywords),
        dropped=tuple(row.dropped),
        own_words=row.own_words,
        span=Span(row.start_at, row.end_at) if row.start_at is not None else None,
        state=PartitionState(row.state),
        listing=Listing(row.reported, row.listed, row.pages_read, row.ended),
        new_hits=row.new_hits,
        hits=HitCount(row.found, Provenance(row.provenance)),
    )


def by_id(conn: Transaction, ids: Collection[int]) -> dict[int, PartitionRow]:
    """Partitions as they are, without a lock."""
    if not ids:
        return {}
    return {row.id: row_of(row) for row in _BY_ID.rows(conn, {"ids": list(ids)})}


def partitions_of_tasks(conn: Transaction, task_ids: Collection[int]) -> list[PartitionRow]:
    """All partitions of these tasks, locked, in the order of their ids."""
    if not task_ids:
        return []
    return [row_of(row) for row in _OF_TASKS.rows(conn, {"ids": list(task_ids)})]


_ids: BindParameter[Any] = bindparam("ids", expanding=True)
_BY_ID = Prepared(select(*COLUMNS).where(task_parts.c.id.in_(_ids)))
_OF_TASKS = Prepared(
    select(*COLUMNS).where(task_parts.c.task_id.in_(_ids)).order_by(task_parts.c.id).with_for_update()
)


# --- hit counts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """A result page of a partition, as an attempt read it.

    Attributes:
        new_hits: how many of its hits the task had not listed before.
        first: it was not read before.
    """

    part_id: int
    task_id: int
    attempt_id: int
    page: ResultPage
    limits: EngineLimits
    new_hits: int
    first: bool = True


def count_hits(conn: Transaction, read: Sequence[ReadPage]) -> dict[int, HitCount]:
    """Record the hit counts that result pages show; the hit count of its partition, by attempt."""
    rows = {row.id: row for row in partitions_of_tasks(conn, {one.task_id for one in read})}
    changed: dict[int, PartitionRow] = {}
    of_attempts: dict[int, HitCount] = {}
    for one in read:
        row = rows[one.part_id]
        listing = row.listing
        if one.first:
            listing = Listing(
                row.listing.reported if one.page.found is None else one.page.found,
                row.listing.listed + len(one.page.hits),
                row.listing.pages + 1,
                not one.page.more,
            )
        row = replace(
            row,
            listing=listing,
            new_hits=row.new_hits + one.new_hits,
            hits=hit_count(listing, one.limits, row.state),
        )
        rows[row.id] = changed[row.id] = row
        of_attempts[one.attempt_id] = row.hits
    if changed:
        conn.update("task_parts", ("id",), [_counted(changed[part_id]) for part_id in sorted(changed)])
        recount(conn, rows.values())
    return of_attempts


def _counted(row: PartitionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "pages_read": row.listing.pages,
        "listed": row.listing.listed,
        "new_hits": row.new_hits,
        "ended": row.listing.ended,
        "reported": row.listing.reported,
        "found": row.hits.found,
        "provenance": row.hits.provenance,
    }


def recount(conn: Transaction, rows: Iterable[PartitionRow]) -> None:
    """Write the hit counts of tasks, from all of their partitions."""
    partitions_of_tasks: dict[int, list[PartitionRow]] = {}
    for row in rows:
        partitions_of_tasks.setdefault(row.task_id, []).append(row)
    summands = {task_id: [row.summand for row in its] for task_id, its in partitions_of_tasks.items()}
    different = different_hits(conn, [task_id for task_id, parts in summands.items() if all_counted(parts)])
    changes = []
    for task_id, its in sorted(partitions_of_tasks.items()):
        found = task_hit_count(summands[task_id], different.get(task_id, 0))
        said = [row.listing.reported for row in its if row.parent_id is None]
        reported = [n for n in said if n is not None]
        changes.append(
            {
                "id": task_id,
                "found": found.found,
                "found_provenance": found.provenance,
                "found_reported": sum(reported) if reported else None,
            }
        )
    conn.update("tasks", ("id",), changes)


def different_hits(conn: Transaction, task_ids: Collection[int]) -> dict[int, int]:
    """How many different hits tasks have, in whatever state."""
    if not task_ids:
        return {}
    return count_by(conn, targets.c.task_id, targets.c.task_id.in_(task_ids), targets.c.kind == "hit")


# --- new partitions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition to be made.

    Attributes:
        chunks: its search URLs, cut into chunks.
    """

    keywords: tuple[str, ...]
    chunks: Sequence[Sequence[str]]
    dropped: tuple[str, ...] = ()
    own_words: bool = False
    span: Span | None = None


def insert_partitions(
    conn: Transaction,
    new: Sequence[tuple[int, Sequence[NewPartition]]],
    *,
    parent_id: int | None = None,
    first_chunk: int = 1,
) -> list[tuple[int, int]]:
    """Add partitions to tasks.

    Args:
        new: each task with its new partitions.
        parent_id: the partition they replace.
        first_chunk: number of the first chunk of each task's first one.

    Returns:
        Id and first chunk of each, in their order.
    """
    rows = []
    for task_id, its in new:
        number = first_chunk
        for one in its:
            row = {
                "task_id": task_id,
                "parent_id": parent_id,
                "first_chunk": number,
                "chunks": [list(urls) for urls in one.chunks],
                "keywords": list(one.keywords),
                "dropped": list(one.dropped),
                "own_words": one.own_words,
                "start_at": one.span.start if one.span else None,
                "end_at": one.span.end if one.span else None,
            }
            rows.append(row)
            number += len(one.chunks)
    if not rows:
        return []
    made = insert(task_parts).returning(
        task_parts.c.id, task_parts.c.first_chunk, sort_by_parameter_order=True
    )
    return [(row.id, row.first_chunk) for row in conn.execute(made, rows)]


def replace_partition(
    conn: Transaction, row: PartitionRow, state: PartitionState, by: Sequence[NewPartition]
) -> list[tuple[int, int]]:
    """Replace an open partition by others; all of its task must be locked.

    Returns:
        Id and first chunk of each new one, still to be released; none where it was not open any more.
    """
    taken = conn.execute(
        update(task_parts)
        .where(task_parts.c.id == row.id, task_parts.c.state == PartitionState.OPEN)
        .values(state=state, **({"provenance": Provenance.CAPPED} if state is PartitionState.FULL else {}))
    )
    made: list[tuple[int, int]] = []
    if taken.rowcount == 1 and by:
        last = conn.execute(
            select(task_parts.c.first_chunk, task_parts.c.chunks)
            .where(task_parts.c.task_id == row.task_id)
            .order_by(task_parts.c.first_chunk.desc())
            .limit(1)
        ).one()
        first_chunk = last.first_chunk + len(last.chunks)
        made = insert_partitions(conn, [(row.task_id, by)], parent_id=row.id, first_chunk=first_chunk)
    recount(conn, partitions_of_tasks(conn, [row.task_id]))
    return made


def result_page_count(conn: Transaction, row: PartitionRow) -> int:
    """How many search URLs a partition has."""
    chunks = conn.execute(select(task_parts.c.chunks).where(task_parts.c.id == row.id)).scalar_one()
    return sum(len(urls) for urls in chunks)


def hit_dates(conn: Transaction, task_id: int) -> list[datetime]:
    """When stored hits of a task were published, by the earliest date of their reviews."""
    first = func.min(reviews.c.published_at, type_=reviews.c.published_at.type)
    rows = conn.execute(
        select(first)
        .select_from(
            targets.join(pages, pages.c.url_key == targets.c.url_key).join(
                reviews, reviews.c.page_id == pages.c.id
            )
        )
        .where(targets.c.task_id == task_id, targets.c.kind == "hit", reviews.c.published_at.is_not(None))
        .group_by(pages.c.id)
        .limit(_DATES)
    )
    return [row[0] for row in rows]
