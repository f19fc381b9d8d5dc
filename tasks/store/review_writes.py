"""Writing the reviews of pages. Equal texts are linked to the first one with that text, never dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, select

from tasks.crawl.model import Review
from tasks.store.bulk import insert_rows, rows_with, stored_time
from tasks.store.leases import Lease
from tasks.store.tables import reviews

OfPage = tuple[Lease, int, str, str, Sequence[Review]]
"""Who collected it, page id, its address, its site, its reviews."""

_COLUMNS = (
    "page_id",
    "key",
    "title",
    "body",
    "author",
    "date_text",
    "published_at",
    "rating",
    "url",
    "site",
    "text_hash",
    "collected_at",
    "node",
    "attempt_id",
    "same_as",
)
_HASH = _COLUMNS.index("text_hash")


def text_hash(body: str) -> bytes:
    """16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def save(conn: Connection, now: datetime, of_pages: Iterable[OfPage]) -> None:
    """Insert the reviews of new pages."""
    at = stored_time(conn, now)
    rows = [
        _row(conn, at, lease, page_id, url, site, review)
        for lease, page_id, url, site, read in of_pages
        for review in read
    ]
    if not rows:
        return
    earlier = _first_with(conn, {row[_HASH] for row in rows})
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
    insert_rows(conn, reviews, _COLUMNS, originals)
    if copies:
        earlier = _first_with(conn, {row[_HASH] for row in copies})
        insert_rows(conn, reviews, _COLUMNS, [(*row, earlier[row[_HASH]]) for row in copies])


def save_new(conn: Connection, now: datetime, of_page: OfPage) -> int:
    """Insert the reviews of a known page that it did not have when it was read before; returns how many.

    A review without an id of its own is its text: its place changes when others come before it.
    """
    lease, page_id, url, site, read = of_page
    stored = conn.execute(
        select(reviews.c.key, reviews.c.text_hash).where(reviews.c.page_id == page_id)
    ).all()
    keys = {row.key for row in stored}
    texts = {bytes(row.text_hash) for row in stored}
    at = stored_time(conn, now)
    added = []
    for review in read:
        digest = text_hash(review.body)
        placed = review.key.startswith("#")
        if (digest in texts) if placed else (review.key in keys):
            continue
        row = _row(conn, at, lease, page_id, url, site, review)
        key = f"#{digest.hex()[:16]}" if placed else review.key
        if key not in keys:
            keys.add(key)
            added.append((row[0], key, *row[2:]))
    earlier = _first_with(conn, {row[_HASH] for row in added})
    insert_rows(conn, reviews, _COLUMNS, [(*row, earlier.get(row[_HASH])) for row in added])
    return len(added)


def _row(
    conn: Connection, at: Any, lease: Lease, page_id: int, url: str, site: str, review: Review
) -> tuple[Any, ...]:
    """Values in the order of `_COLUMNS`, less the link to an equal text."""
    return (
        page_id,
        review.key,
        review.title,
        review.body,
        review.author,
        review.date_text,
        stored_time(conn, review.date),
        review.rating,
        url,
        site,
        text_hash(review.body),
        at,
        lease.node,
        lease.attempt_id,
    )


def _first_with(conn: Connection, hashes: Collection[bytes]) -> dict[bytes, int]:
    """The first review with each of these texts, where there is one."""
    rows = rows_with(
        conn,
        reviews,
        "text_hash, min(id)",
        "text_hash",
        hashes,
        "AND same_as IS NULL GROUP BY text_hash",
    )
    return {bytes(digest): review_id for digest, review_id in rows}
