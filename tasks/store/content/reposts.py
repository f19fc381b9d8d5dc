"""Links of reviews that are nearly the same text as an earlier one (`tasks.jobs.repost_linking` finds them).

Links never chain: each points at an original that is no repost itself. Copies are linked when they are stored
(`reviews.same_as`), and a step links them again: two nodes may store copies at once, and an older version linked every
equal text. Of two sweeps that took the same step one is saved: the other finds that the mark has moved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from tasks.store.content import correcting, counted_reviews
from tasks.store.queue.upkeep import get_mark, set_mark
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction

_SWEEP = "reposts"
_LOCK_S = 2.0
SETTLED = timedelta(seconds=60)
"""PostgreSQL numbers rows before it commits them: after this time no lower number appears any more."""


class RepostLink(NamedTuple):
    """A row of `review_links`: a review, its original, and how near they are."""

    review_id: int
    original_id: int
    similarity: float


class CopyChange(NamedTuple):
    """The copy key of a review, and its original, if they differ from the stored ones.

    Attributes:
        was_original: it is a copy now; others may point at it.
    """

    id: int
    copy_key: bytes | None
    same_as: int | None
    was_original: bool


class Step(NamedTuple):
    """The comparison of the next reviews, to be saved.

    Attributes:
        after: number of the last review compared before this step.
        reviews: the reviews compared, as they were read: number, and original.
        copies: those with another copy key or original than before.
        bands: rows of `review_bands` (band, review) of the texts that are originals, without crowded bands.
    """

    after: int
    reviews: Mapping[int, int | None]
    copies: Sequence[CopyChange]
    links: Sequence[RepostLink]
    bands: Sequence[tuple[int, int]]


class ReviewText(NamedTuple):
    """The text of a review, its author, and the number of the review that it is a copy of."""

    id: int
    site: str
    author: str
    body: str
    copy_key: bytes | None
    same_as: int | None
    collected_at: datetime


def save(tx: Transaction, step: Step) -> bool:
    """Store a step; False, and nothing is stored, if the sweep has gone on or its reviews have changed since."""
    originals = [link.original_id for link in step.links]
    originals += [change.same_as for change in step.copies if change.same_as is not None]
    if not try_lock(tx, _SWEEP, _LOCK_S) or mark(tx) != step.after:
        return False
    stored = dict(tx.rows(_KEEP, ids={*step.reviews, *originals}))
    if not stored.keys() >= set(originals) or not step.reviews.items() <= stored.items():
        return False
    last_id = max(step.reviews)
    set_mark(tx, _SWEEP, last_id)
    tx.later(
        "DELETE FROM review_links WHERE review_id > :after AND review_id <= :last",
        after=step.after,
        last=last_id,
    )
    _save_copies(tx, step)
    for link in step.links:
        tx.later(_REPLACE_LINKED, old=link.review_id, new=link.original_id)
    add(tx, step.links, step.bands)
    correcting.inherit(tx, {*step.reviews, *(change.id for change in step.copies)})
    return True


def _save_copies(tx: Transaction, step: Step) -> None:
    """Store the changed copies, and count the equal texts of the step once: two nodes may have stored them at once."""
    equal = {number for number, same_as in step.reviews.items() if same_as is not None}
    equal |= {change.id for change in step.copies}
    equal |= {change.same_as for change in step.copies if change.same_as is not None}
    with counted_reviews.recount(tx, reviews=equal):
        for change in step.copies:
            if change.was_original:
                _replace_original(tx, change.id, change.same_as)
        keys = [
            {"id": change.id, "copy_key": change.copy_key, "same_as": change.same_as}
            for change in step.copies
        ]
        tx.update("reviews", ("id",), keys)


def _replace_original(tx: Transaction, old: int, new: int | None) -> None:
    """Give the reviews that point at `old`, which are compared later, its original."""
    tx.later("UPDATE reviews SET same_as = :new WHERE same_as = :old", old=old, new=new)
    tx.later(_REPLACE_LINKED, old=old, new=new)


_KEEP = "SELECT id, same_as FROM reviews WHERE id IN :ids ORDER BY id FOR NO KEY UPDATE"
_REPLACE_LINKED = """
    UPDATE review_links
    SET original_id = coalesce((SELECT o.original_id FROM review_links o WHERE o.review_id = :new), :new)
    WHERE original_id = :old
"""


def add(tx: Transaction, links: Sequence[RepostLink], bands: Sequence[tuple[int, int]]) -> None:
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


def get_compared_share(tx: Transaction) -> float:
    """Return the share of the reviews, 0 to 1, that the sweep has compared with earlier ones."""
    newest = tx.value("SELECT max(id) FROM reviews WHERE refused IS NULL")
    if not newest:
        return 1.0
    return mark(tx) / int(newest)


def following(tx: Transaction, after: int, most: int) -> list[ReviewText]:
    """Return the next reviews after this number, at most `most`."""
    rows = tx.records(ReviewText, _FOLLOWING, after=after, most=most)
    if tx.is_sqlite:  # it has one writer at a time: numbers appear in their order
        return rows
    settling = tx.now - SETTLED  # a later time than now is of a clock that was ahead
    return list(takewhile(lambda row: not settling < row.collected_at <= tx.now, rows))


_FOLLOWING = """
    SELECT id, site, author, body, copy_key, same_as, collected_at FROM reviews
    WHERE id > :after AND refused IS NULL ORDER BY id LIMIT :most
"""


def members(tx: Transaction, bands: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the reviews in each of these bands that has any."""
    found: dict[int, list[int]] = {}
    for band, review_id in tx.rows(_MEMBERS, bands=bands):
        found.setdefault(band, []).append(review_id)
    return found


_MEMBERS = "SELECT band, review_id FROM review_bands WHERE band IN :bands"


def get_originals(tx: Transaction, keys: Collection[bytes], upto: int) -> dict[bytes, int]:
    """Return the original of each of these copy keys, among the reviews up to a number."""
    return {bytes(key): number for key, number in tx.rows(_ORIGINALS, keys=keys, upto=upto)}


_ORIGINALS = """
    SELECT copy_key, min(id) FROM reviews
    WHERE copy_key IN :keys AND refused IS NULL AND same_as IS NULL AND id <= :upto GROUP BY copy_key
"""


def get_texts(tx: Transaction, ids: Collection[int]) -> dict[int, ReviewText]:
    """Return reviews by their numbers."""
    return {row.id: row for row in tx.records(ReviewText, _TEXTS, ids=ids)}


_TEXTS = "SELECT id, site, author, body, copy_key, same_as, collected_at FROM reviews WHERE id IN :ids"
