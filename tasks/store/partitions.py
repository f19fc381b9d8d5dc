"""The parts of tasks: what each asked, how many hits it has, and what took its place (`tasks.domain.hit_count`).

All parts of a task are locked together, by their ids, before one of them or its task's found is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from splitter.spans import Span
from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

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
from tasks.store.statement_batch import defer
from tasks.store.tables import pages, reviews, targets, task_parts, tasks

_DATES = 5000
"""Most dates a query is divided by."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A part of a task.

    Attributes:
        first_chunk: number of its first chunk in its task; its last one is before the next part's first.
        dropped: words that were left out, the first one first.
        own_words: a person chose its keywords.
        span: None: of any time.
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
    hits: HitCount

    @property
    def summand(self) -> Partition:
        """As it enters the sum."""
        return Partition(self.id, self.parent_id, self.state, self.hits)


def row_of(row: Row[Any]) -> PartitionRow:
    """A row of `task_parts`, read."""
    return PartitionRow(
        row.id,
        row.task_id,
        row.parent_id,
        row.first_chunk,
        tuple(row.keywords),
        tuple(row.dropped),
        row.own_words,
        Span(row.start_at, row.end_at) if row.start_at is not None else None,
        PartitionState(row.state),
        Listing(row.reported, row.listed, row.pages_read, row.ended),
        HitCount(row.found, Provenance(row.provenance)),
    )


def by_id(conn: Connection, ids: Collection[int]) -> dict[int, PartitionRow]:
    """Parts as they are, without a lock."""
    if not ids:
        return {}
    return {row.id: row_of(row) for row in conn.execute(select(task_parts).where(task_parts.c.id.in_(ids)))}


def of_tasks(conn: Connection, task_ids: Collection[int]) -> list[PartitionRow]:
    """All parts of these tasks, locked, by their ids."""
    if not task_ids:
        return []
    rows = conn.execute(
        select(task_parts)
        .where(task_parts.c.task_id.in_(task_ids))
        .order_by(task_parts.c.id)
        .with_for_update()
    )
    return [row_of(row) for row in rows]


# --- what result pages show ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A result page of a part, as an attempt read it."""

    part_id: int
    task_id: int
    attempt_id: int
    page: ResultPage
    limits: EngineLimits


def note(conn: Connection, shown: Sequence[Shown]) -> dict[int, HitCount]:
    """Record what result pages show of how many hits there are; what is known of its part by then, by attempt."""
    of = {part.id: part for part in of_tasks(conn, {one.task_id for one in shown})}
    changed: dict[int, PartitionRow] = {}
    told: dict[int, HitCount] = {}
    for one in shown:
        part = of[one.part_id]
        listing = Listing(
            part.listing.reported if one.page.found is None else one.page.found,
            part.listing.listed + len(one.page.hits),
            part.listing.pages + 1,
            not one.page.more,
        )
        part = replace(part, listing=listing, hits=hit_count(listing, one.limits, part.state))
        of[part.id] = changed[part.id] = part
        told[one.attempt_id] = part.hits
    if changed:
        defer(conn, _SHOWN, [_shown(changed[part_id]) for part_id in sorted(changed)])
        recount(conn, of.values())
    return told


_SHOWN = (
    update(task_parts)
    .where(task_parts.c.id == bindparam("part"))
    .values(
        {name: bindparam(f"new_{name}") for name in ("pages_read", "listed", "ended", "reported", "found")}
    )
    .values(provenance=bindparam("new_provenance"))
)


def _shown(part: PartitionRow) -> dict[str, Any]:
    return {
        "part": part.id,
        "new_pages_read": part.listing.pages,
        "new_listed": part.listing.listed,
        "new_ended": part.listing.ended,
        "new_reported": part.listing.reported,
        "new_found": part.hits.found,
        "new_provenance": part.hits.provenance,
    }


def recount(conn: Connection, parts: Iterable[PartitionRow]) -> None:
    """Write what whole tasks have found, by all of their parts."""
    of: dict[int, list[PartitionRow]] = {}
    for part in parts:
        of.setdefault(part.task_id, []).append(part)
    counted = different_hits(
        conn, [task for task, its in of.items() if all_counted([part.summand for part in its])]
    )
    rows = []
    for task_id, its in sorted(of.items()):
        found = task_hit_count([part.summand for part in its], counted.get(task_id, 0))
        said = [p.listing.reported for p in its if p.parent_id is None and p.listing.reported is not None]
        rows.append(
            {
                "task": task_id,
                "new_found": found.found,
                "new_provenance": found.provenance,
                "new_reported": sum(said) if said else None,
            }
        )
    if rows:
        defer(conn, _TASKS, rows)


_TASKS = (
    update(tasks)
    .where(tasks.c.id == bindparam("task"))
    .values(
        found=bindparam("new_found"),
        found_provenance=bindparam("new_provenance"),
        found_reported=bindparam("new_reported"),
    )
)


def different_hits(conn: Connection, task_ids: Collection[int]) -> dict[int, int]:
    """How many different hits tasks have, whatever became of them."""
    if not task_ids:
        return {}
    rows = conn.execute(
        select(targets.c.task_id, func.count())
        .where(targets.c.task_id.in_(task_ids), targets.c.kind == "hit")
        .group_by(targets.c.task_id)
    )
    return {row[0]: row[1] for row in rows}


# --- what takes a part's place ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A part to be asked.

    Attributes:
        chunks: its search URLs, cut into the seeds of its subtasks.
    """

    keywords: tuple[str, ...]
    chunks: Sequence[Sequence[str]]
    dropped: tuple[str, ...] = ()
    own_words: bool = False
    span: Span | None = None


def replace_part(
    conn: Connection, part: PartitionRow, state: PartitionState, by: Sequence[NewPartition]
) -> list[int]:
    """Let parts take the place of one that is open, which must be locked with all of its task.

    Returns:
        The numbers of their first chunks, which are still to be released; none where it was not open any more.
    """
    taken = conn.execute(
        update(task_parts)
        .where(task_parts.c.id == part.id, task_parts.c.state == PartitionState.OPEN)
        .values(state=state, **({"provenance": Provenance.CAPPED} if state is PartitionState.FULL else {}))
    )
    firsts: list[int] = []
    if taken.rowcount == 1 and by:
        chunks = list(
            conn.execute(
                select(tasks.c.chunks).where(tasks.c.id == part.task_id).with_for_update()
            ).scalar_one()
        )
        for one in by:
            firsts.append(len(chunks) + 1)
            chunks += [{"urls": list(urls), "first": place == 0} for place, urls in enumerate(one.chunks)]
        conn.execute(update(tasks).where(tasks.c.id == part.task_id).values(chunks=chunks))
        insert_parts(
            conn, [(part.task_id, first, part.id, one) for first, one in zip(firsts, by, strict=True)]
        )
    recount(conn, of_tasks(conn, [part.task_id]))
    return firsts


def insert_parts(conn: Connection, rows: Sequence[tuple[int, int, int | None, NewPartition]]) -> None:
    """Insert parts: (task, first chunk, the part whose place it takes, what it asks)."""
    if rows:
        conn.execute(
            insert(task_parts),
            [
                {
                    "task_id": task_id,
                    "first_chunk": first,
                    "parent_id": parent_id,
                    "keywords": list(one.keywords),
                    "dropped": list(one.dropped),
                    "own_words": one.own_words,
                    "start_at": one.span.start if one.span else None,
                    "end_at": one.span.end if one.span else None,
                }
                for task_id, first, parent_id, one in rows
            ],
        )


def urls_of(conn: Connection, part: PartitionRow) -> list[Sequence[str]]:
    """The search URLs of a part, chunk by chunk."""
    chunks = conn.execute(select(tasks.c.chunks).where(tasks.c.id == part.task_id)).scalar_one()
    found = [chunks[part.first_chunk - 1]["urls"]]
    for chunk in chunks[part.first_chunk :]:
        if chunk["first"]:
            break
        found.append(chunk["urls"])
    return found


def dates(conn: Connection, task_id: int) -> list[datetime]:
    """When hits of a task that are stored were published, as far as their first reviews tell."""
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
