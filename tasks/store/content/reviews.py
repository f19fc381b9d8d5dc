"""Reviews: stored with their pages, and read for export, one row per (review, product).

A review whose text equals an earlier one is linked to it (`same_as`), never dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b
from itertools import chain
from typing import Any

from splitter.errors import InputError
from splitter.spans import CHINA
from sqlalchemy import ColumnElement, Row, bindparam, case, func, select

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.store.queue.leases import Lease
from tasks.store.sql.bulk import insert_rows, rows_with, time_writer
from tasks.store.sql.tables import (
    attempts,
    page_products,
    pages,
    products,
    review_links,
    reviews,
    subtasks,
    task_parts,
)
from tasks.store.sql.transaction import Transaction

_AT_ONCE = 2_000
_NAMES_COMPARED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """A review, as it serves one product.

    Attributes:
        product: name of the product it serves; a review of several has a row for each.
        site: where it was found, or the site an imported file named.
        url: of its page.
        page_title: of that page.
        title: its own; empty where it has none.
        body: its text.
        author: as written, or the pseudonym; empty where nobody is named.
        published_at: when it was written, where its date could be read.
        date_text: the date as written.
        rating: as the site gives it; scales differ by site.
        collected_at: when it was stored.
        node: that collected it; empty where it was imported.
        attempt: number of the attempt that collected it; None where it was imported.
        provenance: "crawled" or "imported".
        source: what it was imported from; None where it was crawled.
        review: its number, which `same_as` and `near_of` name.
        same_as: number of the first review with an equal text; None where it is that one.
        near_of: number of an earlier review with nearly the same text, if this one (or the one it equals) is a repost.
        found_by: words of the search that its page was first found by for this product, fewer than all of its keywords
            where that search was relaxed; None: another product's search found it.
        day: of `published_at` in China: 2026-05-01; empty where its date could not be read.
        confidence: how surely its page was read, 0 to 1; None if it was imported, or stored by version 0.9.0.
        similarity: how near that text is, 0 to 1 (`tasks.reading.near_duplicates`).
        variant: which one of the product it is of, as written (an app's version); empty where it does not say.
        voice: who speaks: complaint or praise (a buyer's), question, news, company, other; None: not judged.
        voice_probability: that it is this one, 0 to 1.
        sentiment: -1 (bad) to 1 (good), whoever speaks.
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
    attempt: int | None
    same_as: int | None
    near_of: int | None
    similarity: float | None
    review: int
    provenance: str = "crawled"
    source: str | None = None
    variant: str = ""
    voice: str | None = None
    voice_probability: float | None = None
    sentiment: float | None = None
    found_by: str | None = None
    day: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """A filter of reviews: all of it must hold; what is empty or None asks nothing.

    Attributes:
        products: of one of these, by exact name.
        sites: of one of these.
        since: collected at this time or later.
        written_from, written_before: a half-open range of `published_at`; reviews without a readable date are outside.
        voices: of one of these.
    """

    products: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    since: datetime | None = None
    written_from: datetime | None = None
    written_before: datetime | None = None
    voices: tuple[Voice, ...] = ()

    def conditions(self) -> list[ColumnElement[bool]]:
        """The same in SQL, over `products` and `reviews`."""
        r = reviews.c
        return [
            *([products.c.name.in_(self.products)] if self.products else []),
            *([r.site.in_(self.sites)] if self.sites else []),
            *([r.collected_at >= self.since] if self.since is not None else []),
            *([r.published_at >= self.written_from] if self.written_from is not None else []),
            *([r.published_at < self.written_before] if self.written_before is not None else []),
            *([r.voice.in_(self.voices)] if self.voices else []),
        ]


ALL = ReviewFilter()


def review_rows(conn: Transaction, wanted: ReviewFilter = ALL, *, after: int = 0) -> Iterator[ReviewRow]:
    """Reviews in the order they were stored, some at once: memory does not grow with them.

    Args:
        after: only those with a higher number than this.

    Raises:
        InputError: there is no product of a name.
    """
    check_products(conn, wanted.products)
    return chain.from_iterable(
        review_rows_where(conn, wanted, reviews.c.id > first, reviews.c.id <= last)
        for first, last in _blocks(conn, after)
    )


def review_rows_where(
    conn: Transaction, wanted: ReviewFilter, *conditions: ColumnElement[bool]
) -> Iterator[ReviewRow]:
    """Reviews that are few enough to be sorted in memory, in the order they were stored.

    Args:
        conditions: over `reviews`, `pages`, `page_products` and `products`.
    """
    statement = _ROWS.where(*wanted.conditions(), *conditions).order_by(reviews.c.id, products.c.id)
    rows = conn.execute(statement, execution_options={"yield_per": _AT_ONCE})
    return (_row(row) for row in rows)


def _blocks(conn: Transaction, after: int) -> Iterator[tuple[int, int]]:
    """Ranges of numbers, from behind the first to the last, that hold the reviews after a number, some each.

    Sorting all rows would take memory, and no index has them in the order of reviews and products.
    """
    while (last := conn.execute(_BLOCK, {"after": after}).scalar_one()) is not None:
        yield after, last
        after = last


_SOME = select(reviews.c.id).where(reviews.c.id > bindparam("after")).order_by(reviews.c.id).limit(_AT_ONCE)
_BLOCK = select(func.max(_SOME.subquery().c.id))


def _row(row: Row[*tuple[Any, ...]]) -> ReviewRow:
    known = dict(zip(_COLUMN_NAMES, row, strict=True))
    words, at = known["found_by"], known["published_at"]
    known["found_by"] = " ".join(words) if words else None
    return ReviewRow(**known, day=at.astimezone(CHINA).date().isoformat() if at is not None else "")


_COLUMN_NAMES = tuple(field.name for field in fields(ReviewRow) if field.name != "day")
_OTHER_COLUMNS = {
    "product": products.c.name,
    "page_title": pages.c.title,
    "attempt": reviews.c.attempt_id,
    "near_of": review_links.c.original_id,
    "similarity": review_links.c.similarity,
    "review": reviews.c.id,
    "found_by": task_parts.c.keywords,
    "provenance": case((pages.c.source.is_(None), "crawled"), else_="imported"),
    "source": pages.c.source,
    "confidence": pages.c.confidence,
}
"""The columns of a row that are not those of `reviews` with its name."""


def column(name: str) -> ColumnElement[Any]:
    """What a field of a review rests on, over `reviews` and what is joined to it."""
    return _OTHER_COLUMNS[name] if name in _OTHER_COLUMNS else reviews.c[name]


_ROWS = (
    select(*map(column, _COLUMN_NAMES))
    .select_from(reviews)
    .join(pages, pages.c.id == reviews.c.page_id)
    .join(page_products, page_products.c.page_id == pages.c.id)
    .join(products, products.c.id == page_products.c.product_id)
    .outerjoin(attempts, attempts.c.id == reviews.c.attempt_id)
    .outerjoin(subtasks, subtasks.c.id == attempts.c.subtask_id)
    .outerjoin(
        task_parts,
        (task_parts.c.id == subtasks.c.part_id) & (subtasks.c.product_id == products.c.id),
    )
    .outerjoin(review_links, review_links.c.review_id == func.coalesce(reviews.c.same_as, reviews.c.id))
    .where(page_products.c.verdict == Verdict.REVIEW)
)


def check_products(conn: Transaction, names: Collection[str]) -> None:
    """Look whether there are products of these names. Raises InputError."""
    for name in names:
        if conn.execute(select(products.c.id).where(products.c.name == name)).one_or_none() is None:
            known = conn.scalars(select(products.c.name).limit(_NAMES_COMPARED)).all()
            raise InputError.unknown("product", name, known, "`reviewloop product list`")


# --- stored with their pages --------------------------------------------------------------------------------

OfPage = tuple[Lease, int, str, str, Sequence[Review]]
"""The lease of its attempt, page id, its address, its site, its reviews."""

_COLUMNS = (*(column.name for column in reviews.c if column.name not in ("id", "same_as")), "same_as")
_HASH = _COLUMNS.index("text_hash")
_BODY = Review._fields.index("body")
NOT_JUDGED = (None,) * len(VoiceJudgement._fields)
"""The voice's columns of a review that no model has judged."""


def text_hash(body: str) -> bytes:
    """16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def save_reviews(conn: Transaction, now: datetime, of_pages: Iterable[OfPage]) -> None:
    """Insert the reviews of new pages."""
    insert_reviews(conn, [row for of_page in of_pages for row in _rows(conn, now, of_page)])


def insert_reviews(conn: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert reviews, each linked to the first one with its text where that is another one.

    Args:
        rows: values of the table's columns in their order, less `id` and `same_as`; times of `time_writer`.
    """
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
    for row, review in zip(_rows(conn, now, of_page), read, strict=True):
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


def _rows(conn: Transaction, now: datetime, of_page: OfPage) -> list[tuple[Any, ...]]:
    lease, page_id, url, site, read = of_page
    return review_values(conn, now, page_id, url, site, (lease.node, lease.attempt_id), read)


def review_values(
    conn: Transaction,
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
    in_database = time_writer(conn)
    of_all = (in_database(now), *came_by)
    return [
        (
            page_id,
            *(*texts, in_database(date), rating, variant, url, site, text_hash(texts[_BODY])),
            *(*of_all, *(voice or NOT_JUDGED)),
        )
        for *texts, date, rating, variant, voice in read
    ]


def _first_with(conn: Transaction, hashes: Collection[bytes]) -> dict[bytes, int]:
    """The first review with each of these texts, where there is one."""
    rest = "AND same_as IS NULL GROUP BY text_hash"
    rows = rows_with(conn, reviews, "text_hash, min(id)", "text_hash", hashes, rest)
    return {bytes(digest): review_id for digest, review_id in rows}
