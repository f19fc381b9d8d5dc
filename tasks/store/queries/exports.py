"""The cursor of an export: the next export continues there, without losing or repeating a row.

A row of an export is a review under a product that its page is linked to, so two things make a new one: a new review,
and a stored page that turns out to be about another product. The first has a new number, the second a link with a new
`serial` (`tasks.store.content.links`). A cursor holds the highest of each that were exported.

On PostgreSQL a transaction with lower numbers may commit after one with higher numbers. All transactions are shorter
than `_SETTLING`, so rows younger than that are left to the next export.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import chain
from operator import methodcaller

from splitter.errors import InputError

from tasks.store.content.links import serial_at
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, list_numbers, list_reviews
from tasks.store.sql.transaction import Transaction

_VERSION = 2
_SETTLING = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The place where an export ended.

    Attributes:
        wanted: the export's options, as JSON: a cursor continues only with the same options.
        review: the highest number of an exported review; 0 if there was none.
        hash: hash of that review's text; it identifies the store.
        serial: the highest serial of a link.
        products: numbers of the products that the filter asked for, with those counted as them; empty for all products,
            `None` in a cursor of an earlier version.
    """

    wanted: str
    review: int = 0
    hash: str = ""
    serial: int = 0
    products: tuple[int, ...] | None = None

    def text(self) -> str:
        """Return the content of its file."""
        return json.dumps({"reviewloop_cursor": _VERSION, **asdict(self)}, ensure_ascii=False) + "\n"


def read_cursor(text: str, origin: str) -> Cursor:
    """Read the content of a cursor's file. Raises InputError, which names `origin`."""
    try:
        values = json.loads(text)
        if values["reviewloop_cursor"] == _VERSION:
            wanted, review, digest = str(values["wanted"]), int(values["review"]), str(values["hash"])
            products = values.get("products")
            return Cursor(
                wanted=wanted,
                review=review,
                hash=digest,
                serial=int(values["serial"]),
                products=None if products is None else tuple(map(int, products)),
            )
    except (ValueError, LookupError, TypeError):
        pass
    raise InputError(
        "{origin}: is no cursor that --cursor has written, or one of another version of reviewloop; "
        "begin a new one: name another file, and its first export holds every review",
        origin=origin,
    )


def get_next_cursor(tx: Transaction, wanted: ReviewFilter, before: Cursor | None, origin: str) -> Cursor:
    """Return the cursor of an export in this transaction that continues behind `before`.

    Raises:
        InputError: `before` belongs to another store or filter; the message names `origin`.
    """
    cursor = before or Cursor(wanted=_as_json(wanted))
    if cursor.wanted != _as_json(wanted):
        raise InputError(
            "{origin}: was begun with another filter, {wanted}; give the same, or begin a new one",
            origin=origin,
            wanted=cursor.wanted,
        )
    digest = tx.value("SELECT text_hash FROM reviews WHERE id = :id", id=cursor.review)
    if cursor.review and (digest is None or bytes(digest).hex() != cursor.hash):
        raise InputError(
            "{origin}: is of another store, or of this one before a backup was restored or its newest "
            "reviews were deleted; begin a new one",
            origin=origin,
        )
    # SQLite has one writer: rows that are not committed yet get higher numbers than those that are.
    settled = tx.now if tx.is_sqlite else tx.now - _SETTLING
    limit = sys.maxsize if tx.is_sqlite else serial_at(settled)
    for review, digest in tx.rows(_NEWEST, after=cursor.review, settled=settled, now=tx.now):
        cursor = replace(cursor, review=review, hash=bytes(digest).hex())
    serial = max(cursor.serial, tx.value(_NEWEST_SERIAL, limit=limit))
    return replace(cursor, serial=serial, products=list_numbers(tx, wanted.products))


_NEWEST = """
    SELECT id, text_hash FROM reviews WHERE id > :after AND id < coalesce(
        (SELECT min(id) FROM reviews WHERE id > :after AND collected_at > :settled AND collected_at <= :now),
        (SELECT max(id) + 1 FROM reviews)
    )
    AND refused IS NULL ORDER BY id DESC LIMIT 1
"""
_NEWEST_SERIAL = "SELECT coalesce(max(serial), 0) FROM page_products WHERE serial > 0 AND serial < :limit"


def list_new_rows(
    tx: Transaction, wanted: ReviewFilter, before: Cursor | None, cursor: Cursor
) -> Iterator[ReviewRow]:
    """Return the rows up to a cursor that the one before it had not: late ones first, each part as it was stored.

    Late are the rows of links that were judged later, and all of a product that is counted as a wanted one since then.
    """
    every = replace(wanted, upto=cursor.review, linked_upto=cursor.serial)
    if before is None:
        return list_reviews(tx, every)
    late = replace(every, upto=before.review, linked_after=before.serial)
    parts = [late, replace(every, after=before.review)]
    if before.products is not None:
        joined = sorted({*(cursor.products or ())} - {*before.products})
        earlier = replace(every, upto=before.review, linked_upto=before.serial)
        parts = [*(replace(earlier, product=number) for number in joined), *parts]
    return chain.from_iterable(list_reviews(tx, part) for part in parts)


def _as_json(wanted: ReviewFilter) -> str:
    given = {name: value for name, value in asdict(wanted).items() if value}
    return json.dumps(given, ensure_ascii=False, default=methodcaller("isoformat"))
