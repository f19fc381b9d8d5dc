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
from tasks.store.content import links, reviews
from tasks.store.content.links import Link
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
    """

    product: str
    written: str
    site: str
    url: str
    review: Review
    page: bytes


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
    tx: Transaction, source: str, came: Sequence[ImportedReview], product_ids: Mapping[str, int]
) -> list[bool]:
    """Store reviews (at least one) that are not stored yet, and return for each whether it was known.

    Two imports at once wait for each other if both contain reviews of one page.

    Args:
        source: name of the reviews' origin.
        product_ids: ids of their products, by name.
    """
    by_page = {one.page: one for one in came}
    rows = [(key, one.url, one.site, one.written) for key, one in sorted(by_page.items())]
    shared = {"fetched_at": tx.now, "source": source, "content_hash": "", "encoding": "", "node": ""}
    made = tx.insert_returning("pages", _NEW, rows, returning="url_key, id", shared=shared, skip_known=True)
    links.add(tx, [Link(page_id, product_ids[by_page[bytes(key)].product]) for key, page_id in made])
    pages = {page.url_key: page for page in tx.records(_Page, _LOCK, keys=list(by_page))}
    at = max(tx.now, *(page.changed_at for page in pages.values()))
    repeated = are_known(tx, came)
    fresh = [(pages[one.page], one) for one, is_known in zip(came, repeated, strict=True) if not is_known]
    origins = [PageOrigin(one.url, one.site, "", None) for _, one in fresh]
    records = [[record_of(origin, one.review)] for origin, (_, one) in zip(origins, fresh, strict=True)]
    reviews.insert(tx, zip([page.id for page, _ in fresh], records, strict=True), at=at)
    more = Counter(page for page, _ in fresh)
    counts = [{"id": page.id, "reviews": page.reviews + n, "checked_at": at} for page, n in more.items()]
    tx.update("pages", ("id",), counts)
    return repeated


_NEW = ("url_key", "url", "site", "title")
_LOCK = """
    SELECT id, url_key, reviews, coalesce(checked_at, fetched_at) AS changed_at
    FROM pages WHERE url_key IN :keys ORDER BY id FOR UPDATE
"""
