"""Links of reviews that are nearly the same text as an earlier one (`tasks.jobs.repost_linking` finds them).

Links never chain: each points at an original that is no repost itself. Equal texts are linked when they are stored
(`reviews.same_as`). Of two sweeps that took the same step one is saved: the other finds that the mark has moved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from tasks.store.queue.upkeep import get_mark, set_mark
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction

_SWEEP = "reposts"
_LOCK_S = 2.0
SETTLED = timedelta(seconds=60)
"""PostgreSQL numbers rows before it commits them: after this time no lower number appears any more."""


class Link(NamedTuple):
    """A row of `review_links`: a review, its original, and how near they are."""

    review_id: int
    original_id: int
    similarity: float


class Step(NamedTuple):
    """The comparison of the next reviews, to be saved.

    Attributes:
        after, last_id: numbers of the last review compared before this step, and in it.
        looked: number of reviews compared.
        bands: rows of `review_bands` (band, review) of the texts that are originals, without crowded bands.
    """

    after: int
    last_id: int
    looked: int
    links: Sequence[Link]
    bands: Sequence[tuple[int, int]]


class ReviewText(NamedTuple):
    """The text of a review, and the number of an earlier review with an equal text."""

    id: int
    same_as: int | None
    body: str
    collected_at: datetime


def save(tx: Transaction, step: Step) -> bool:
    """Store the links of a step; False, and nothing is stored, if the sweep has gone on or a review is gone since."""
    named = {number for link in step.links for number in link[:2]} | {number for _, number in step.bands}
    if (
        not try_lock(tx, _SWEEP, _LOCK_S)
        or mark(tx) != step.after
        or len(tx.rows(_KEEP, ids=named)) < len(named)
    ):
        return False
    set_mark(tx, _SWEEP, step.last_id)
    add(tx, step.links, step.bands)
    return True


_KEEP = "SELECT id FROM reviews WHERE id IN :ids ORDER BY id FOR NO KEY UPDATE"


def add(tx: Transaction, links: Sequence[Link], bands: Sequence[tuple[int, int]]) -> None:
    """Insert links, and bands (band, review) of originals."""
    tx.insert("review_links", ("review_id", "original_id", "similarity"), links, skip_known=True)
    tx.insert("review_bands", ("band", "review_id"), bands, skip_known=True)


def pull_back(tx: Transaction) -> None:
    """Set the mark back after the last reviews were deleted: their numbers may be given again."""
    newest = tx.value("SELECT coalesce(max(id), 0) FROM reviews WHERE refused IS NULL")
    if mark(tx) > newest:
        set_mark(tx, _SWEEP, newest)


def mark(tx: Transaction) -> int:
    """Return the number of the last review that the sweep has looked at; 0 before it began."""
    return get_mark(tx, _SWEEP)


def following(tx: Transaction, after: int, most: int) -> list[ReviewText]:
    """Return the next reviews after this number, at most `most`."""
    rows = tx.records(ReviewText, _FOLLOWING, after=after, most=most)
    if tx.is_sqlite:  # it has one writer at a time: numbers appear in their order
        return rows
    settling = tx.now - SETTLED  # a later time than now is of a clock that was ahead
    return list(takewhile(lambda row: not settling < row.collected_at <= tx.now, rows))


_FOLLOWING = """
    SELECT id, same_as, body, collected_at FROM reviews
    WHERE id > :after AND refused IS NULL ORDER BY id LIMIT :most
"""


def members(tx: Transaction, bands: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the reviews in each of these bands that has any."""
    found: dict[int, list[int]] = {}
    for band, review_id in tx.rows(_MEMBERS, bands=bands):
        found.setdefault(band, []).append(review_id)
    return found


_MEMBERS = "SELECT band, review_id FROM review_bands WHERE band IN :bands"


def bodies(tx: Transaction, ids: Collection[int]) -> dict[int, str]:
    """Return the texts of reviews, by their numbers."""
    return dict(tx.rows("SELECT id, body FROM reviews WHERE id IN :ids", ids=ids))
