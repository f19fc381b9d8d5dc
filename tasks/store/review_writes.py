"""Writing the reviews of pages. Equal texts are linked to the first one with that text, never dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, select

from tasks.domain.pages import Review
from tasks.store.bulk import insert_rows, rows_with, time_writer
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
    rows: list[tuple[Any, ...]] = []
    for of_page in of_pages:
        rows += _rows(conn, now, of_page)
    _insert(conn, rows)


def _insert(conn: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of `_rows`, each linked to the first review with its text where that is another one."""
    digests = {row[_HASH] for row in rows}
    earlier = _first_with(conn, digests)
    if not earlier and len(digests) == len(rows):
        insert_rows(conn, reviews, _COLUMNS[:-1], rows)
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
    insert_rows(conn, reviews, _COLUMNS, originals)
    if copies:
        earlier = _first_with(conn, {row[_HASH] for row in copies})
        insert_rows(conn, reviews, _COLUMNS, [(*row, earlier[row[_HASH]]) for row in copies])


def save_new(conn: Connection, now: datetime, of_page: OfPage) -> int:
    """Insert the reviews of a known page that it did not have when it was read before; returns how many.

    A review without an id of its own is its text: its place changes when others come before it.
    """
    _, page_id, _, _, read = of_page
    stored = conn.execute(
        select(reviews.c.key, reviews.c.text_hash).where(reviews.c.page_id == page_id)
    ).all()
    keys = {row.key for row in stored}
    texts = {bytes(row.text_hash) for row in stored}
    added = []
    for row, review in zip(_rows(conn, now, of_page), read, strict=True):
        digest = row[_HASH]
        placed = review.key.startswith("#")
        if (digest in texts) if placed else (review.key in keys):
            continue
        key = f"#{digest.hex()[:16]}" if placed else review.key
        if key not in keys:
            keys.add(key)
            added.append((row[0], key, *row[2:]))
    _insert(conn, added)
    return len(added)


def _rows(conn: Connection, now: datetime, of_page: OfPage) -> list[tuple[Any, ...]]:
    """Values in the order of `_COLUMNS`, less the link to an equal text."""
    lease, page_id, url, site, read = of_page
    node, attempt_id = lease.node, lease.attempt_id
    in_database = time_writer(conn)
    at = in_database(now)
    return [
        (
            page_id,
            key,
            title,
            body,
            author,
            date_text,
            in_database(date),
            rating,
            url,
            site,
            text_hash(body),
            at,
            node,
            attempt_id,
        )
        for key, title, body, author, date_text, date, rating in read
    ]


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
