"""Links of reviews that are nearly the same text as an earlier one (`tasks.jobs.repost_linking` finds them).

Links never chain: each points at an original that is no repost itself. Equal texts are linked when they are stored
(`reviews.same_as`). The sweep's mark is compared and set, so that of two sweeps that took the same step one is saved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import func, select, update

from tasks.store.sql.bulk import insert_rows, rows_with
from tasks.store.sql.database import insert_new
from tasks.store.sql.tables import review_bands, review_links, reviews, sweep_marks
from tasks.store.sql.transaction import Transaction

SETTLED = timedelta(seconds=60)
"""PostgreSQL numbers rows before it commits them: after this time no lower number appears any more."""

_SWEEP = "reposts"


class Link(NamedTuple):
    """A row of `review_links`: a review, its original, and how near they are."""

    review_id: int
    original_id: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Step:
    """The comparison of the next reviews, to be saved.

    Attributes:
        after, last_id: numbers of the last review looked at before this step, and in it.
        looked: reviews looked at.
        bands: rows of `review_bands` (band, review) of the texts that are originals, without crowded bands.
    """

    after: int
    last_id: int
    looked: int
    links: Sequence[Link]
    bands: Sequence[tuple[int, int]]


def save(conn: Transaction, step: Step) -> bool:
    """Write what was found; False, and nothing is written, where the sweep has gone on since."""
    if not step.after:
        conn.execute(insert_new(conn.dialect, sweep_marks), {"sweep": _SWEEP, "last_id": 0})
    moved = conn.execute(
        update(sweep_marks)
        .where(sweep_marks.c.sweep == _SWEEP, sweep_marks.c.last_id == step.after)
        .values(last_id=step.last_id)
    )
    if moved.rowcount != 1:
        return False
    add(conn, step.links, step.bands)
    return True


def add(conn: Transaction, links: Sequence[Link], bands: Sequence[tuple[int, int]]) -> None:
    """Insert links, and bands (band, review) of originals."""
    insert_rows(conn, review_links, ("review_id", "original_id", "similarity"), links, new_only=True)
    insert_rows(conn, review_bands, ("band", "review_id"), bands, new_only=True)


def pull_back(conn: Transaction) -> None:
    """After the last reviews were deleted: their numbers may be given again, so the sweep looks at these."""
    newest = select(func.coalesce(func.max(reviews.c.id), 0)).scalar_subquery()
    behind = update(sweep_marks).where(sweep_marks.c.sweep == _SWEEP, sweep_marks.c.last_id > newest)
    conn.execute(behind.values(last_id=newest))


def mark(conn: Transaction) -> int:
    """The number of the last review that the sweep has looked at; 0 before it began."""
    last = select(sweep_marks.c.last_id).where(sweep_marks.c.sweep == _SWEEP)
    return conn.execute(last).scalar_one_or_none() or 0


def following(conn: Transaction, now: datetime, after: int, most: int) -> Sequence[Sequence[Any]]:
    """The next reviews after this number: number, number of the equal text, and text of each."""
    query = select(reviews.c.id, reviews.c.same_as, reviews.c.body).where(reviews.c.id > after)
    query = query.order_by(reviews.c.id).limit(most)
    if conn.dialect.name == "sqlite":  # one writer at a time: numbers appear in their order
        return conn.execute(query).all()
    rows = conn.execute(query.add_columns(reviews.c.collected_at)).all()
    young = next((at for at, row in enumerate(rows) if row.collected_at > now - SETTLED), len(rows))
    return [row[:3] for row in rows[:young]]


def members(conn: Transaction, keys: Collection[int]) -> dict[int, list[int]]:
    """Numbers of the reviews in those of these bands that have any."""
    found: dict[int, list[int]] = {}
    for band, review_id in rows_with(conn, review_bands, "band, review_id", "band", keys):
        found.setdefault(band, []).append(review_id)
    return found


def bodies(conn: Transaction, ids: Collection[int]) -> dict[int, str]:
    """The texts of reviews, by their numbers."""
    return dict(rows_with(conn, reviews, "id, body", "id", ids))
