"""Reviews: stored with their pages, and read for export, one row per (review, product).

A review whose text equals an earlier one is linked to it (`same_as`), never dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from splitter.errors import InputError
from sqlalchemy import Connection, Row, func, select

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.store.bulk import insert_rows, rows_with, time_writer
from tasks.store.database import columns_of
from tasks.store.leases import Lease
from tasks.store.tables import (
    attempts,
    page_products,
    pages,
    products,
    review_links,
    reviews,
    subtasks,
    task_parts,
)

_FETCHED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """A review, as it serves one product.

    Attributes:
        date_text: the date as written; `published_at` where it could be read.
        attempt: number of the attempt that collected it, on `node`.
        review: its number.
        same_as: number of the first review with an equal text; None where it is that one.
        near_of: number of an earlier review with nearly the same text, if this one (or the one it equals) is a repost.
        found_by: words of the search that its page was first found by for this product, fewer than all of its keywords
            where that search was relaxed; None: another product's search found it.
        similarity: how near, 0 to 1 (`tasks.reading.near_duplicates`).
    """

    product: str
    site: str
    url: str
    page_title: str
    title: str
    body: str
    author: str
    published_at: datetime | None
    date_text: str
    rating: float | None
    collected_at: datetime
    node: str
    attempt: int
    same_as: int | None
    near_of: int | None
    similarity: float | None
    review: int
    found_by: str | None = None


def review_rows(
    conn: Connection, *, product: str | None = None, site: str | None = None, since: datetime | None = None
) -> Iterator[ReviewRow]:
    """Reviews in the order they were stored.

    Args:
        product: only this one's, by its exact name.
        site: only those of this site.
        since: only those collected at this time or later.

    Raises:
        InputError: there is no product of that name.
    """
    if product is not None:
        _check_product(conn, product)
    statement = (
        select(
            products.c.name.label("product"),
            pages.c.title.label("page_title"),
            *columns_of(ReviewRow, reviews),
            reviews.c.attempt_id.label("attempt"),
            review_links.c.original_id.label("near_of"),
            review_links.c.similarity,
            reviews.c.id.label("review"),
            task_parts.c.keywords,
        )
        .join(pages, pages.c.id == reviews.c.page_id)
        .join(page_products, page_products.c.page_id == pages.c.id)
        .join(products, products.c.id == page_products.c.product_id)
        .join(attempts, attempts.c.id == reviews.c.attempt_id)
        .join(subtasks, subtasks.c.id == attempts.c.subtask_id)
        .outerjoin(
            task_parts,
            (task_parts.c.id == subtasks.c.part_id) & (subtasks.c.product_id == products.c.id),
        )
        .outerjoin(review_links, review_links.c.review_id == func.coalesce(reviews.c.same_as, reviews.c.id))
        .where(page_products.c.verdict == Verdict.REVIEW)
        .order_by(reviews.c.id, products.c.id)
    )
    if product is not None:
        statement = statement.where(products.c.name == product)
    if site is not None:
        statement = statement.where(reviews.c.site == site)
    if since is not None:
        statement = statement.where(reviews.c.collected_at >= since)
    rows = conn.execute(statement, execution_options={"yield_per": _FETCHED_AT_ONCE})
    return (_read(row) for row in rows)


def _read(row: Row[*tuple[Any, ...]]) -> ReviewRow:
    columns = dict(row._mapping)
    words = columns.pop("keywords")
    return ReviewRow(**columns, found_by=" ".join(words) if words else None)


def _check_product(conn: Connection, name: str) -> None:
    if conn.execute(select(products.c.id).where(products.c.name == name)).one_or_none() is None:
        raise InputError(f"there is no product {name!r}: see `reviewloop product list`")


# --- stored with their pages --------------------------------------------------------------------------------

OfPage = tuple[Lease, int, str, str, Sequence[Review]]
"""Who collected it, page id, its address, its site, its reviews."""

_COLUMNS = (*(column.name for column in reviews.c if column.name not in ("id", "same_as")), "same_as")
_HASH = _COLUMNS.index("text_hash")
_BODY = Review._fields.index("body")


def text_hash(body: str) -> bytes:
    """16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def save_reviews(conn: Connection, now: datetime, of_pages: Iterable[OfPage]) -> None:
    """Insert the reviews of new pages."""
    _insert(conn, [row for of_page in of_pages for row in _rows(conn, now, of_page)])


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


def save_new_reviews(conn: Connection, now: datetime, of_page: OfPage) -> int:
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
    in_database = time_writer(conn)
    of_all = (in_database(now), lease.node, lease.attempt_id)
    return [
        (page_id, *texts, in_database(date), rating, url, site, text_hash(texts[_BODY]), *of_all)
        for *texts, date, rating in read
    ]


def _first_with(conn: Connection, hashes: Collection[bytes]) -> dict[bytes, int]:
    """The first review with each of these texts, where there is one."""
    rest = "AND same_as IS NULL GROUP BY text_hash"
    rows = rows_with(conn, reviews, "text_hash, min(id)", "text_hash", hashes, rest)
    return {bytes(digest): review_id for digest, review_id in rows}
