"""Reviews that people have already, stored next to those that were crawled.

An imported page is all reviews with one site, address and name of a product. No attempt brought it, and its key is none
of `tasks.domain.page_key`: a crawl that finds the same address fetches it, as a file rarely holds all of a page.
An imported review is identified by its content: the same one is stored once, whatever file it comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from tasks.domain.pages import Review
from tasks.store.content import counted_reviews, links, numbered_imports, reviews
from tasks.store.content.links import Link
from tasks.store.content.review_removal import delete_reviews
from tasks.store.content.reviews import PageOrigin, record_of
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class ImportedReview:
    """A review of a file, ready to be stored.

    Attributes:
        product: name of the product it is stored for.
        written: name of the product as the file has it.
        url: canonical; empty if the file gives none.
        review: with the key of `review_key`.
        page: `page_of` its site, address and product as written.
        copy_key: equal for copies; `None`: a copy of no other review.
    """

    product: str
    written: str
    site: str
    url: str
    review: Review
    page: bytes
    copy_key: bytes | None = None


def page_of(site: str, url: str, written: str) -> bytes:
    """Return the 16 bytes that identify an imported page."""
    return digest_of("imported", site, url, written)


def review_key(author: str, date: str, title: str, body: str, rating: float | None) -> str:
    """Return the key of a review within its page: a hash of its content."""
    return digest_of(author, date, title, body, "" if rating is None else repr(rating)).hex()


def digest_of(*parts: str) -> bytes:
    """Return a hash of 16 bytes. The length of each part is hashed with it, so that parts can't run together."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def are_known(tx: Transaction, came: Sequence[ImportedReview]) -> list[bool]:
    """Return for each review whether it is stored already, or came before in the sequence."""
    given = {"pages": {one.page for one in came}, "keys": {one.review.key for one in came}}
    seen = {(bytes(page), key) for page, key in tx.rows(_STORED, **given)}
    repeated = []
    for pair in [(one.page, one.review.key) for one in came]:
        repeated.append(pair in seen)
        seen.add(pair)
    return repeated


_STORED = """
    SELECT p.url_key, r.key FROM pages p JOIN reviews r ON r.page_id = p.id
    WHERE p.url_key IN :pages AND r.key IN :keys
"""


class _Page(NamedTuple):
    """A page, locked, and the last time at which it changed."""

    id: int
    url_key: bytes
    reviews: int
    changed_at: datetime


def save(
    tx: Transaction,
    source: str,
    came: Sequence[ImportedReview],
    product_ids: Mapping[str, int],
    number: int | None = None,
) -> list[bool]:
    """Store reviews (at least one) that are not stored yet, and return for each whether it was known.

    Two imports at once wait for each other if both contain reviews of one page.

    Args:
        source: name of the reviews' origin.
        product_ids: ids of their products, by name.
        number: of the import, which notes them.
    """
    pages = _lock_pages(tx, source, {one.page: one for one in came}, product_ids)
    at = max(tx.now, *(page.changed_at for page in pages.values()))
    repeated = are_known(tx, came)
    fresh = [(pages[one.page], one) for one, is_known in zip(came, repeated, strict=True) if not is_known]
    origins = [PageOrigin(one.url, one.site, "", None) for _, one in fresh]
    records = [
        [record_of(origin, one.review, copy_key=one.copy_key)]
        for origin, (_, one) in zip(origins, fresh, strict=True)
    ]
    newest = tx.value("SELECT coalesce(max(id), 0) FROM reviews")
    reviews.insert(tx, zip([page.id for page, _ in fresh], records, strict=True), at=at)
    counted_reviews.add_pages(tx, {page.id for page, _ in fresh}, after=newest)
    more = Counter(page for page, _ in fresh)
    counts = [{"id": page.id, "reviews": page.reviews + n, "checked_at": at} for page, n in more.items()]
    tx.update("pages", ("id",), counts)
    if number is not None:
        _note(tx, number, came, repeated)
        numbered_imports.name_products(tx, number, product_ids.values())
    return repeated


def _lock_pages(
    tx: Transaction, source: str, by_page: Mapping[bytes, ImportedReview], product_ids: Mapping[str, int]
) -> dict[bytes, _Page]:
    """Insert pages that are new, and lock all of them. One that an undo deletes at this moment is inserted again."""
    rows = [(key, one.url, one.site, one.written) for key, one in sorted(by_page.items())]
    shared = {"fetched_at": tx.now, "source": source, "content_hash": "", "encoding": "", "node": ""}
    pages: dict[bytes, _Page] = {}
    while len(pages) < len(by_page):
        made = tx.insert_returning(
            "pages", _NEW, rows, returning="url_key, id", shared=shared, skip_known=True
        )
        links.add(tx, [Link(page_id, product_ids[by_page[bytes(key)].product]) for key, page_id in made])
        pages = {bytes(page.url_key): page for page in tx.records(_Page, _LOCK, keys=list(by_page))}
    return pages


def _note(tx: Transaction, number: int, came: Sequence[ImportedReview], repeated: list[bool]) -> None:
    """Note the reviews of an import, of equal ones the first."""
    given = {"pages": {one.page for one in came}, "keys": {one.review.key for one in came}}
    ids = {(bytes(page), key): number for number, page, key in tx.rows(_NUMBERS, **given)}
    first: dict[int, bool] = {}
    for one, is_known in zip(came, repeated, strict=True):
        first.setdefault(ids[one.page, one.review.key], not is_known)
    numbered_imports.note_reviews(tx, number, first.items())
    added = repeated.count(False)
    numbered_imports.count(tx, number, added, len(repeated) - added)


_NUMBERS = """
    SELECT r.id, p.url_key, r.key FROM pages p JOIN reviews r ON r.page_id = p.id
    WHERE p.url_key IN :pages AND r.key IN :keys
"""
_NEW = ("url_key", "url", "site", "title")
_LOCK = """
    SELECT id, url_key, reviews, coalesce(checked_at, fetched_at) AS changed_at
    FROM pages WHERE url_key IN :keys ORDER BY id FOR UPDATE
"""


class Removal(NamedTuple):
    """The outcome of removing some reviews of an import.

    Attributes:
        reviews: number of deleted reviews.
        kept: number of reviews that stay, as another import has them as well.
        alone: as of `tasks.store.content.review_removal.Removed`.
    """

    reviews: int
    kept: int
    alone: Sequence[int]


class _Noted(NamedTuple):
    """A review of an import; `heir` is the first other import that has it."""

    review_id: int
    page_id: int
    added: bool
    is_review: bool
    heir: int | None


def remove_some(tx: Transaction, number: int, most: int) -> Removal | None:
    """Remove the next reviews of an import, with pages that have none then; `None` if there are none left.

    The newest go first: so a text is deleted before the earlier one that it equals.

    Args:
        most: reviews of this transaction.
    """
    ids = [one for (one,) in tx.rows(_NEXT, number=number, most=most)]
    if not ids:
        return None
    tx.rows(_LOCK_BY_REVIEW, ids=ids)
    noted = tx.records(_Noted, _NOTED, ids=ids, number=number)
    inherited = [one for one in noted if one.added and one.heir is not None]
    for heir in sorted({one.heir for one in inherited if one.heir is not None}):
        tx.later(_PASS_ON, heir=heir, ids=[one.review_id for one in inherited if one.heir == heir])
    doomed = [one for one in noted if one.added and one.heir is None]
    alone: list[int] = []
    if doomed:
        alone = delete_reviews(tx, [one.review_id for one in doomed])
        for page_id, n in Counter(one.page_id for one in doomed if one.is_review).items():
            tx.later("UPDATE pages SET reviews = reviews - :n WHERE id = :id", id=page_id, n=n)
        for statement in _DELETE_EMPTY:
            tx.later(statement, ids=sorted({one.page_id for one in doomed}))
    tx.later(
        "DELETE FROM import_reviews WHERE import_id = :number AND review_id IN :ids", number=number, ids=ids
    )
    return Removal(len(doomed), len(inherited), alone)


def count_removable(tx: Transaction, number: int) -> tuple[int, int]:
    """Return how many reviews `remove_some` would delete in all, and how many would stay."""
    ((deleted, kept),) = tx.rows(_COUNT_REMOVABLE, number=number)
    return int(deleted), int(kept)


_NEXT = "SELECT review_id FROM import_reviews WHERE import_id = :number ORDER BY review_id DESC LIMIT :most"
_LOCK_BY_REVIEW = """
    SELECT id FROM pages WHERE id IN (SELECT page_id FROM reviews WHERE id IN :ids) ORDER BY id FOR UPDATE
"""
_HEIR = "min(import_id) FROM import_reviews h WHERE h.review_id = i.review_id AND h.import_id <> :number"
_NOTED = f"""
    SELECT i.review_id, r.page_id, i.added, r.refused IS NULL AS is_review, (SELECT {_HEIR}) AS heir
    FROM import_reviews i JOIN reviews r ON r.id = i.review_id WHERE i.import_id = :number AND i.review_id IN :ids
"""
_PASS_ON = "UPDATE import_reviews SET added = true WHERE import_id = :heir AND review_id IN :ids"
_EMPTY = "IN :ids AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.page_id = {})"
_DELETE_EMPTY = (
    f"DELETE FROM page_products WHERE page_id {_EMPTY.format('page_products.page_id')}",
    f"DELETE FROM pages WHERE id {_EMPTY.format('pages.id')}",
)
_COUNT_REMOVABLE = f"""
    SELECT coalesce(sum(CASE WHEN heir IS NULL THEN 1 ELSE 0 END), 0), count(heir)
    FROM (SELECT (SELECT {_HEIR}) AS heir FROM import_reviews i WHERE i.import_id = :number AND i.added) found
"""
