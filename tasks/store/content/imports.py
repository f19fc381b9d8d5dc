"""Reviews that people have already, stored beside those that were crawled; and the sources that they came from.

An imported page is all reviews with one site, address and name of a product. No attempt brought it, and its key is none
of `tasks.domain.page_key`: where a crawl finds the same address, it fetches it, as a file rarely holds all of a page.
An imported review is known by what it says: the same one is stored once, whatever file it comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import select, tuple_

from tasks.domain.pages import Review
from tasks.store.content import page_links
from tasks.store.content.page_links import Link
from tasks.store.content.reviews import NOT_JUDGED, insert_reviews, text_hash
from tasks.store.sql.prepared import new_rows
from tasks.store.sql.tables import pages, reviews
from tasks.store.sql.transaction import Transaction

_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class ImportedReview:
    """A review of a file, ready to be stored.

    Attributes:
        product: name of the product it is stored for.
        written: name of the product as the file has it.
        url: canonical; empty where the file gives none.
        review: with the key of `review_key`.
        page: `page_of` its site, address and product as written.
    """

    product: str
    written: str
    site: str
    url: str
    review: Review
    page: bytes


def page_of(site: str, url: str, written: str) -> bytes:
    """16 bytes that an imported page is known by."""
    return _digest("imported", site, url, written)


def review_key(author: str, date: str, title: str, body: str, rating: float | None) -> str:
    """The key of a review within its page: a hash of all it says."""
    return _digest(author, date, title, body, "" if rating is None else repr(rating)).hex()


def _digest(*parts: str) -> bytes:
    """16 bytes; parts are told apart by their lengths."""
    digest = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def known(tx: Transaction, came: Sequence[ImportedReview]) -> list[bool]:
    """Of each review, whether it is stored already, or came before in the sequence."""
    there = _stored(tx, _page_ids(tx, {one.page for one in came}, lock=False), came)
    return _repeated(came, there)


def save(
    tx: Transaction,
    now: datetime,
    source: str,
    came: Sequence[ImportedReview],
    product_ids: Mapping[str, int],
) -> list[bool]:
    """Store reviews that are not stored yet; of each, whether it was known.

    Two imports at once wait for each other where they meet in a page.

    Args:
        source: is among `import_sources`.
        product_ids: of their products, by name.
    """
    if not came:
        return []
    of_page = {one.page: one for one in came}
    numbers = _page_ids(tx, of_page, lock=True)
    fresh = _new_pages(tx, now, source, {key: one for key, one in of_page.items() if key not in numbers})
    page_links.add(
        tx, now, [Link(number, product_ids[of_page[key].product]) for key, number in fresh.items()]
    )
    # Of a page that another import made meanwhile.
    numbers |= _page_ids(tx, of_page.keys() - numbers.keys() - fresh.keys(), lock=True)
    repeated = _repeated(came, _stored(tx, numbers, came))
    numbers |= fresh
    new = [(numbers[one.page], one) for one, is_known in zip(came, repeated, strict=True) if not is_known]
    times = dict(tx.records(_PageTime, _TIMES, pages={number for number, _ in new}, now=now))
    insert_reviews(tx, [_row(number, one, times[number]) for number, one in new])
    _count(tx, now, Counter(number for number, _ in new), set(fresh.values()))
    return repeated


def _new_pages(
    tx: Transaction, now: datetime, source: str, of_page: Mapping[bytes, ImportedReview]
) -> dict[bytes, int]:
    """Insert pages; the numbers of those that were not there."""
    if not of_page:
        return {}
    rows = [
        {
            "url": one.url,
            "url_key": key,
            "site": one.site,
            "title": one.written,
            "content_hash": "",
            "encoding": "",
            "fetched_at": now,
            "node": "",
            "source": source,
        }
        for key, one in sorted(of_page.items())
    ]
    added = new_rows(tx, pages, tuple(rows[0]), pages.c.url_key, pages.c.id)
    return {bytes(key): number for key, number in added.rows_of_each(tx, rows)}


def _row(page_id: int, one: ImportedReview, at: datetime) -> tuple[Any, ...]:
    key, title, body, author, date_text, date, rating, variant, voice = one.review
    texts = (key, title, body, author, date_text)
    return (
        page_id,
        *texts,
        date,
        rating,
        variant,
        one.url,
        one.site,
        text_hash(body),
        at,
        "",
        None,
        *(voice or NOT_JUDGED),
    )


def _count(tx: Transaction, now: datetime, added: Counter[int], fresh: set[int]) -> None:
    """Count new reviews with their pages; one that was there before notes when it got them."""
    for page_id in sorted(added):
        statement = _COUNT if page_id in fresh else _COUNT_LATER
        tx.later(statement, page=page_id, more=added[page_id], now=now)


_LAST_ASKED = """
    CASE WHEN coalesce(checked_at, fetched_at) > :now THEN coalesce(checked_at, fetched_at) ELSE :now END
"""
_COUNT = "UPDATE pages SET reviews = reviews + :more WHERE id = :page"
_COUNT_LATER = f"UPDATE pages SET reviews = reviews + :more, checked_at = {_LAST_ASKED} WHERE id = :page"


class _PageTime(NamedTuple):
    id: int
    at: datetime


_TIMES = f"SELECT id, {_LAST_ASKED} AS at FROM pages WHERE id IN :pages"


def _page_ids(tx: Transaction, keys: Iterable[bytes], *, lock: bool) -> dict[bytes, int]:
    """Return the numbers of the pages with these keys that are stored; locked in the order of their numbers."""
    found = tx.rows(_LOCK_PAGES if lock else _PAGES, keys=list(keys))
    return {bytes(key): page_id for key, page_id in found}


_PAGES = "SELECT url_key, id FROM pages WHERE url_key IN :keys ORDER BY id"
_LOCK_PAGES = f"{_PAGES} FOR UPDATE"


def _stored(
    tx: Transaction, page_ids: Mapping[bytes, int], came: Sequence[ImportedReview]
) -> set[tuple[bytes, str]]:
    """Those (page, review) of these pages that are stored, by their keys."""
    pairs = {(page_ids[one.page], one.review.key) for one in came if one.page in page_ids}
    if not pairs:
        return set()
    of = tuple_(reviews.c.page_id, reviews.c.key)
    rows = tx.execute(select(reviews.c.page_id, reviews.c.key).where(of.in_(sorted(pairs))))
    key_of = {page_id: key for key, page_id in page_ids.items()}
    return {(key_of[page_id], key) for page_id, key in rows}


def _repeated(came: Sequence[ImportedReview], stored: set[tuple[bytes, str]]) -> list[bool]:
    seen = set(stored)
    repeated = []
    for one in came:
        pair = one.page, one.review.key
        repeated.append(pair in seen)
        seen.add(pair)
    return repeated


# --- sources ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """A source of imported reviews.

    Attributes:
        shape: 16 bytes; the columns of its files (`shape_of`).
        columns: field to column, as a person said; an empty column leaves the field out.
    """

    name: str
    shape: bytes
    columns: Mapping[str, str]


def shape_of(columns: Iterable[str]) -> bytes:
    """16 bytes that files with the same columns share, whatever their order."""
    return _digest(*sorted(set(columns)))


def find_source(tx: Transaction, name: str | None, shape: bytes) -> Source | None:
    """Return the source of that name; without a name the one used last with files of this shape."""
    return tx.record(Source, _SOURCE, name=name, shape=shape)


_SOURCE = """
    SELECT name, shape, columns FROM import_sources
    WHERE name = :name OR (:name IS NULL AND shape = :shape) ORDER BY used_at DESC LIMIT 1
"""


def use_source(tx: Transaction, now: datetime, source: Source) -> None:
    """Remember a source and its columns."""
    tx.run(_USE_SOURCE, name=source.name, shape=source.shape, columns=source.columns, now=now)


_USE_SOURCE = """
    INSERT INTO import_sources (name, shape, columns, used_at) VALUES (:name, :shape, :columns, :now)
    ON CONFLICT (name) DO UPDATE SET shape = excluded.shape, columns = excluded.columns,
        used_at = CASE WHEN import_sources.used_at > excluded.used_at THEN import_sources.used_at
            ELSE excluded.used_at END
"""
