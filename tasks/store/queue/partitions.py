"""The partitions of tasks: their queries, their hit counts, and what replaces them (`tasks.domain.hit_count`).

A partition is one query of a task: a keyword set, of any time or within a span. Its result pages are cut into chunks,
one subtask each (`tasks.store.queue.tasks`). Chunks are numbered through all partitions of a task.

All partitions of a task are locked in the order of their ids before one of them, or the task's hit count, is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from splitter.spans import Span

from tasks.domain.hit_count import (
    HitCount,
    Listing,
    Partition,
    PartitionState,
    Provenance,
    all_counted,
    chunk_count,
    chunk_range,
    task_hit_count,
)
from tasks.store.sql.transaction import Transaction

_DATES = 5000
"""Maximum number of dates that partition a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The query of a partition, and how its result pages are cut into chunks.

    Attributes:
        id, task_id: of the partition.
        first_chunk: number of its first chunk in its task.
        pages, chunk_pages: number of its result pages, and of those in a chunk.
        dropped: words that were left out, the first one first.
        start_at, end_at: its span; None: of any time.
    """

    id: int
    task_id: int
    first_chunk: int
    pages: int
    chunk_pages: int
    keywords: tuple[str, ...]
    dropped: tuple[str, ...]
    start_at: datetime | None
    end_at: datetime | None

    @property
    def span(self) -> Span | None:
        """The range of time; `None`: any time."""
        return Span(self.start_at, self.end_at) if self.start_at and self.end_at else None

    @property
    def end(self) -> int:
        """The number behind its last chunk."""
        return self.first_chunk + chunk_count(self.pages, self.chunk_pages, spanned=self.span is not None)

    def pages_of(self, chunk: int) -> range:
        """Return the numbers of the result pages of a chunk."""
        place = chunk - self.first_chunk
        return chunk_range(place, self.pages, self.chunk_pages, spanned=self.span is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(Query):
    """A partition of a task: a query with its findings.

    Attributes:
        own_words: a person chose its keywords.
        pages_read, listed, ended: result pages that were read, the hits on them, and if the last one had no next page.
        reported: hits the engine reports; None: it reports none.
        new_hits: different hits that its task had not listed before: they became targets.
        found, provenance: its hit count.
    """

    parent_id: int | None
    own_words: bool
    state: PartitionState
    pages_read: int
    listed: int
    ended: bool
    reported: int | None
    new_hits: int
    found: int | None
    provenance: Provenance

    @property
    def listing(self) -> Listing:
        """The findings of its result pages so far."""
        return Listing(self.reported, self.listed, self.pages_read, self.ended)

    @property
    def summand(self) -> Partition:
        """The partition's part of the task's hit count."""
        return Partition(self.id, self.parent_id, self.state, HitCount(self.found, self.provenance))


def partitions_by_id(tx: Transaction, ids: Collection[int]) -> dict[int, PartitionRow]:
    """Return partitions, without a lock."""
    found = tx.records(PartitionRow, f"{_PARTITIONS} WHERE id IN :ids", ids=ids) if ids else ()
    return {one.id: one for one in found}


def partitions_of_tasks(tx: Transaction, task_ids: Collection[int]) -> list[PartitionRow]:
    """Lock all partitions of these tasks, and return them in the order of their ids."""
    return tx.records(PartitionRow, _OF_TASKS, task_ids=task_ids) if task_ids else []


_PARTITIONS = """
    SELECT id, task_id, first_chunk, pages, chunk_pages, keywords, dropped, start_at, end_at, parent_id, own_words,
        state, pages_read, listed, ended, reported, new_hits, found, provenance
    FROM task_parts
"""
_OF_TASKS = f"{_PARTITIONS} WHERE task_id IN :task_ids ORDER BY id FOR UPDATE"


def recount(tx: Transaction, rows: Iterable[PartitionRow]) -> None:
    """Write the hit counts of tasks, from all of their partitions."""
    by_task: dict[int, list[PartitionRow]] = {}
    for row in rows:
        by_task.setdefault(row.task_id, []).append(row)
    summands = {task_id: [row.summand for row in by_task[task_id]] for task_id in sorted(by_task)}
    counted = [task_id for task_id, parts in summands.items() if all_counted(parts)]
    different = dict(tx.rows(_DIFFERENT_HITS, task_ids=counted)) if counted else {}
    changes = []
    for task_id, parts in summands.items():
        hits = task_hit_count(parts, different.get(task_id, 0))
        reported = [row.reported for row in by_task[task_id] if row.parent_id is None]
        known = [n for n in reported if n is not None]
        change = {"found": hits.found, "found_provenance": hits.provenance}
        changes.append({"id": task_id, **change, "found_reported": sum(known) if known else None})
    tx.update("tasks", ("id",), changes)


_DIFFERENT_HITS = """
    SELECT task_id, count(*) FROM targets WHERE task_id IN :task_ids AND kind = 'hit' GROUP BY task_id
"""


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition to be made.

    Attributes:
        pages, chunk_pages: number of its result pages, and of those in a chunk.
    """

    keywords: tuple[str, ...]
    pages: int
    chunk_pages: int
    dropped: tuple[str, ...] = ()
    own_words: bool = False
    span: Span | None = None


ChunkKey = tuple[int, int]
"""A chunk: its partition, and its number in its task."""

_NEW = (
    "task_id",
    "first_chunk",
    "pages",
    "chunk_pages",
    "keywords",
    "dropped",
    "own_words",
    "start_at",
    "end_at",
)


def insert_partitions(
    tx: Transaction,
    new: Iterable[tuple[int, Sequence[NewPartition]]],
    *,
    parent_id: int | None = None,
    first_chunk: int = 1,
) -> list[ChunkKey]:
    """Add partitions to tasks and return the first chunk of each, which is still to be released.

    Args:
        new: each task with its new partitions.
        parent_id: the partition they replace.
        first_chunk: number of the first chunk of each task's first one.
    """
    rows = []
    for task_id, its in new:
        number = first_chunk
        for one in its:
            span = (one.span.start, one.span.end) if one.span else (None, None)
            cut = (number, one.pages, one.chunk_pages)
            rows.append((task_id, *cut, one.keywords, one.dropped, one.own_words, *span))
            number += chunk_count(one.pages, one.chunk_pages, spanned=one.span is not None)
    shared = {"parent_id": parent_id}
    return sorted(tx.insert_returning("task_parts", _NEW, rows, returning="id, first_chunk", shared=shared))


def replace_partition(
    tx: Transaction, row: PartitionRow, state: PartitionState, by: Sequence[NewPartition]
) -> list[ChunkKey]:
    """Replace an open partition by others; all of its task must be locked.

    Returns:
        The first chunk of each new one, still to be released; none if the partition was not open any more.
    """
    provenance = Provenance.CAPPED if state is PartitionState.FULL else row.provenance
    taken = tx.run(_REPLACE, id=row.id, state=state, provenance=provenance)
    there = partitions_of_tasks(tx, [row.task_id])
    made: list[ChunkKey] = []
    if taken and by:
        end = max(one.end for one in there)
        made = insert_partitions(tx, [(row.task_id, by)], parent_id=row.id, first_chunk=end)
        there = partitions_of_tasks(tx, [row.task_id])
    recount(tx, there)
    return made


_REPLACE = """
    UPDATE task_parts SET state = :state, provenance = :provenance
    WHERE id = :id AND state = 'open'
"""


class _HitDate(NamedTuple):
    published_at: datetime


def hit_dates(tx: Transaction, task_id: int) -> list[datetime]:
    """Return when stored hits of a task were published, by the earliest date of their reviews."""
    return [row.published_at for row in tx.records(_HitDate, _HIT_DATES, task_id=task_id, most=_DATES)]


_HIT_DATES = """
    SELECT min(r.published_at) AS published_at
    FROM targets t JOIN pages p ON p.url_key = t.url_key JOIN reviews r ON r.page_id = p.id
    WHERE t.task_id = :task_id AND t.kind = 'hit' AND r.refused IS NULL AND r.published_at IS NOT NULL
    GROUP BY p.id LIMIT :most
"""
