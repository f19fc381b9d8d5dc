"""Reviews, stored with their pages. `tasks.store.queries.reviews` reads them.

A review whose text equals an earlier one is linked to it (`same_as`), never dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import select

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.store.queue.leases import Lease
from tasks.store.sql.tables import reviews
from tasks.store.sql.transaction import Transaction

OfPage = tuple[Lease, int, str, str, Sequence[Review]]
"""The lease of its attempt, page id, its address, its site, its reviews."""

_COLUMNS = (*(column.name for column in reviews.c if column.name not in ("id", "same_as")), "same_as")
_HASH = _COLUMNS.index("text_hash")
_BODY = Review._fields.index("body")
_TEXTS_AT_ONCE = 10_000
"""SQLite takes a limited number of values in one statement."""
NOT_JUDGED = (None,) * len(VoiceJudgement._fields)
"""The voice's columns of a review that no model has judged."""


def text_hash(body: str) -> bytes:
    """16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def save_reviews(conn: Transaction, now: datetime, of_pages: Iterable[OfPage]) -> None:
    """Insert the reviews of new pages."""
    insert_reviews(conn, [row for of_page in of_pages for row in _rows(now, of_page)])


def insert_reviews(conn: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert reviews, each linked to the first one with its text where that is another one.

    Args:
        rows: values of the table's columns in their order, less `id` and `same_as`.
    """
    digests = {row[_HASH] for row in rows}
    earlier = _first_with(conn, digests)
    if not earlier and len(digests) == len(rows):
        conn.insert("reviews", _COLUMNS[:-1], rows)
        return
    originals: list[tuple[Any, ...]] = []
    copies: list[tuple[Any, ...]] = []
    here: set[bytes] = set()
    for row in rows:
        digest = row[_HASH]
        if digest in here and digest not in earlier:
            copies.append(row)
        else:
            here.add(digest)
            originals.append((*row, earlier.get(digest)))
    conn.insert("reviews", _COLUMNS, originals)
    if copies:
        earlier = _first_with(conn, {row[_HASH] for row in copies})
        conn.insert("reviews", _COLUMNS, [(*row, earlier[row[_HASH]]) for row in copies])


def save_new_reviews(conn: Transaction, now: datetime, of_page: OfPage) -> int:
    """Insert the reviews of a known page that it did not have when it was read before; returns how many.

    A review without an id on its page is identified by its text: its place changes when others come before it.
    """
    _, page_id, _, _, read = of_page
    stored = conn.execute(
        select(reviews.c.key, reviews.c.text_hash).where(reviews.c.page_id == page_id)
    ).all()
    keys = {row.key for row in stored}
    texts = {bytes(row.text_hash) for row in stored}
    added = []
    for row, review in zip(_rows(now, of_page), read, strict=True):
        digest = row[_HASH]
        placed = review.key.startswith("#")
        if (digest in texts) if placed else (review.key in keys):
            continue
        key = f"#{digest.hex()[:16]}" if placed else review.key
        if key not in keys:
            keys.add(key)
            added.append((row[0], key, *row[2:]))
    insert_reviews(conn, added)
    return len(added)


def _rows(now: datetime, of_page: OfPage) -> list[tuple[Any, ...]]:
    lease, page_id, url, site, read = of_page
    return review_values(now, page_id, url, site, (lease.node, lease.attempt_id), read)


def review_values(
    now: datetime,
    page_id: int,
    url: str,
    site: str,
    came_by: tuple[str, int | None],
    read: Sequence[Review],
) -> list[tuple[Any, ...]]:
    """Rows of reviews of a page for `insert_reviews`.

    Args:
        came_by: node and number of the attempt.
    """
    of_all = (now, *came_by)
    return [
        (
            page_id,
            *(*texts, date, rating, variant, url, site, text_hash(texts[_BODY])),
            *(*of_all, *(voice or NOT_JUDGED)),
        )
        for *texts, date, rating, variant, voice in read
    ]


def _first_with(conn: Transaction, hashes: Collection[bytes]) -> dict[bytes, int]:
    """The first review with each of these texts, where there is one."""
    wanted = list(hashes)
    return {
        bytes(digest): review_id
        for start in range(0, len(wanted), _TEXTS_AT_ONCE)
        for digest, review_id in conn.rows(_FIRST_WITH, hashes=wanted[start : start + _TEXTS_AT_ONCE])
    }


_FIRST_WITH = """
    SELECT text_hash, min(id) FROM reviews WHERE text_hash IN :hashes AND same_as IS NULL GROUP BY text_hash
"""
