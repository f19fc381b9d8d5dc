"""The cursor of an export: a later one gives exactly the rows that it did not, none twice, none lost.

A row of an export is a review under a product that its page is linked to, so two things make a new one: a new review,
and an old page that is now about another product. Both may come late: on PostgreSQL a transaction with lower numbers
commits after one with higher, and a page is linked or judged again at any time. A cursor holds what was there, exactly:
the highest number of a review, the numbers below it that were missing, and the pages of every product (about two bytes
each, compressed). It is taken in the transaction whose rows are exported: one consistent view.
"""

from __future__ import annotations

import json
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import accumulate, groupby, pairwise
from typing import TypeVar

from splitter.errors import InputError
from sqlalchemy import func, select

from tasks.domain.product_match import Verdict
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, review_rows, review_rows_where
from tasks.store.sql.tables import page_products, reviews
from tasks.store.sql.transaction import Transaction

_VERSION = 1
_AT_ONCE = 500
_LONGEST_TRANSACTION = timedelta(days=1)
"""A number missing below a review that was collected longer ago will not come any more."""

T = TypeVar("T")
Range = tuple[int, int]
"""From the first to the last number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The place where an export ended.

    Attributes:
        wanted: what was exported, as JSON: a cursor goes on with the same.
        upto: the highest number of a review; 0: there was none.
        hash: of that review's text, by which its store is known again.
        missing: numbers below it that were not there yet.
        pages: of every product, by its number: the pages it was linked to, packed (`_packed`).
    """

    wanted: str
    upto: int
    hash: str
    missing: tuple[Range, ...]
    pages: Mapping[int, bytes]

    def text(self) -> str:
        """As it stands in a file."""
        told = {
            "reviewloop_cursor": _VERSION,
            "wanted": self.wanted,
            "upto": self.upto,
            "hash": self.hash,
            "missing": self.missing,
            "pages": {product: b64encode(packed).decode() for product, packed in self.pages.items()},
        }
        return json.dumps(told, ensure_ascii=False) + "\n"


def cursor_of(text: str, origin: str) -> Cursor:
    """Read the text of a cursor. Raises InputError, which names `origin`."""
    try:
        told = json.loads(text)
        if told["reviewloop_cursor"] != _VERSION:
            raise InputError(f"{origin}: is a cursor of another version of reviewloop; begin a new one")
        pages = {int(product): b64decode(packed) for product, packed in told["pages"].items()}
        for packed in pages.values():
            _unpacked(packed)
        return Cursor(
            wanted=str(told["wanted"]),
            upto=int(told["upto"]),
            hash=str(told["hash"]),
            missing=tuple((int(first), int(last)) for first, last in told["missing"]),
            pages=pages,
        )
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error) as error:
        raise InputError(
            f"{origin}: is no cursor of an export: name the file that --cursor has written, or a new one"
        ) from error


def new_cursor(conn: Transaction, wanted: ReviewFilter, now: datetime) -> Cursor:
    """The cursor of an export of all there is in this transaction."""
    last = conn.execute(
        select(reviews.c.id, reviews.c.text_hash).order_by(reviews.c.id.desc()).limit(1)
    ).one_or_none()
    return Cursor(
        wanted=_as_json(wanted),
        upto=last.id if last else 0,
        hash=bytes(last.text_hash).hex() if last else "",
        missing=_missing(conn, now),
        pages={product: _packed(of) for product, of in _links(conn)},
    )


def check(conn: Transaction, wanted: ReviewFilter, cursor: Cursor, origin: str) -> None:
    """Look whether a cursor is of this store and of the same filter. Raises InputError."""
    if cursor.wanted != _as_json(wanted):
        raise InputError(
            f"{origin}: was begun with another filter, {cursor.wanted}; give the same, or begin a new one"
        )
    if not cursor.upto:
        return
    of = select(reviews.c.text_hash).where(reviews.c.id == cursor.upto)
    digest = conn.execute(of).scalar_one_or_none()
    if digest is None or bytes(digest).hex() != cursor.hash:
        raise InputError(
            f"{origin}: is of another store, or of this one before a backup was restored or its newest reviews were "
            "deleted; begin a new one"
        )


def rows_after(conn: Transaction, wanted: ReviewFilter, cursor: Cursor) -> Iterator[ReviewRow]:
    """The rows that were not there when the cursor was taken: late ones first, then in the order they were stored."""
    for some in _batches(cursor.missing):
        yield from review_rows_where(conn, wanted, _within(some))
    was_there = [f"r.id <= {cursor.upto}", *(f"NOT {_within(some)}" for some in _batches(cursor.missing))]
    for product, pages in _links(conn):
        known = set(_unpacked(cursor.pages[product])) if product in cursor.pages else set()
        for new in _batches([page for page in pages if page not in known]):
            linked = f"p.id = {product} AND r.page_id IN ({', '.join(map(str, new))})"
            yield from review_rows_where(conn, wanted, linked, *was_there)
    yield from review_rows(conn, wanted, after=cursor.upto)


def _as_json(wanted: ReviewFilter) -> str:
    given = {name: value for name, value in asdict(wanted).items() if value}
    return json.dumps(given, ensure_ascii=False, default=datetime.isoformat)


def _within(ranges: Sequence[Range]) -> str:
    return f"({' OR '.join(f'r.id BETWEEN {first} AND {last}' for first, last in ranges)})"


def _batches(of: Sequence[T]) -> Iterator[Sequence[T]]:
    return (of[at : at + _AT_ONCE] for at in range(0, len(of), _AT_ONCE))


def _missing(conn: Transaction, now: datetime) -> tuple[Range, ...]:
    """Numbers below a review of the last day that no review has."""
    before = func.coalesce(func.lag(reviews.c.id).over(order_by=reviews.c.id), 0).label("before")
    seen = select(reviews.c.id, reviews.c.collected_at, before).subquery()
    gaps = select(seen.c.before, seen.c.id).where(
        seen.c.id > seen.c.before + 1, seen.c.collected_at >= now - _LONGEST_TRANSACTION
    )
    return tuple((before + 1, number - 1) for before, number in conn.execute(gaps))


def _links(conn: Transaction) -> Iterator[tuple[int, list[int]]]:
    """The pages of every product, in order."""
    links = page_products.c
    rows = conn.execute(
        select(links.product_id, links.page_id)
        .where(links.verdict == Verdict.REVIEW)
        .order_by(links.product_id, links.page_id),
        execution_options={"yield_per": 10 * _AT_ONCE},
    )
    for product, of in groupby(rows, key=lambda row: int(row[0])):
        yield product, [page for _, page in of]


def _packed(numbers: Sequence[int]) -> bytes:
    """Ascending numbers, as their distances, compressed."""
    return zlib.compress(array("q", (now - before for before, now in pairwise([0, *numbers]))).tobytes())


def _unpacked(packed: bytes) -> Iterator[int]:
    distances = array("q")
    distances.frombytes(zlib.decompress(packed))
    return accumulate(distances)
