"""Pages: stored with their records, known to nodes, and linked to products that find them again.

A page is identified by its canonical URL, and known once it is committed. It is stored in one transaction with its
records and its target. A batch of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tasks.domain.verdicts import Verdict
from tasks.store.content import counted_reviews, links, reviews
from tasks.store.content.links import Link
from tasks.store.content.reviews import ReviewValues
from tasks.store.queue import result_pages, transitions
from tasks.store.queue.leases import Lease, lock_leased
from tasks.store.queue.result_pages import KnownPage, ResultPageToStore, StoredHits, find_pages
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

_AT_ONCE = 500
"""Keys that Redis adds to the shared set in a few milliseconds; it answers no other client meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page as fetched, read and judged for a lease, ready to be stored.

    Attributes:
        content_hash: hex digest of the bodies of all its parts; equal for two fetches of the same content.
        size: bytes of these bodies.
        records: reviews, and records that are refused; all of them, if the page is about another product.
        etag, last_modified: validators for the next fetch.
        confidence: as in `tasks.domain.pages.PageRead`.
        verdict: its relation to the product that it was found for; `REVIEW` if pages of its site are not judged.
        missing: keywords of the product that it lacks, separated by blanks, if it is about another one.
    """

    lease: Lease
    target_id: int
    url: str
    key: bytes
    title: str
    content_hash: str
    encoding: str
    size: int
    records: Sequence[ReviewValues]
    etag: str | None = None
    last_modified: str | None = None
    confidence: float = 1.0
    verdict: Verdict = Verdict.REVIEW
    missing: str = ""


def save_pages(tx: Transaction, items: Sequence[NewPage]) -> list[bool]:
    """Store pages with their records, and their targets as stored; False for a page that was stored already.

    A page whose lease is over is stored all the same and marked late. If a page was stored already, its new
    records are stored.
    """
    subtasks = transitions.lock(tx, {page.lease.subtask_id for page in items})
    tokens = {one.lease_token for one in subtasks}
    late = {page.lease.token for page in items} - tokens
    product_of = {one.id: one.product_id for one in subtasks}
    ids = _insert_pages(tx, items, late)
    _end_stored_targets(tx, items, late)
    # The first of two equal pages of a batch is the new one.
    numbers = [ids.pop(page.key, None) for page in items]
    fresh = [(number, page) for number, page in zip(numbers, items, strict=True) if number is not None]
    links.add(tx, [_link(number, page, product_of) for number, page in fresh])
    reviews.insert(tx, [(number, page.records) for number, page in fresh])
    counted_reviews.add_pages(tx, [number for number, _ in fresh])
    if again := [page for number, page in zip(numbers, items, strict=True) if number is None]:
        _save_again(tx, again, product_of)
    for _, page in fresh:
        if page.lease.token in late:
            tx.later("UPDATE attempts SET late = late + 1 WHERE id = :attempt", attempt=page.lease.attempt_id)
    return [number is not None for number in numbers]


STORE_PAGES: BatchOperation[NewPage, bool] = BatchOperation(3, save_pages)


def _link(page_id: int, page: NewPage, product_of: Mapping[int, int]) -> Link:
    """Return a page's link to the product that it was found for."""
    return Link(page_id, product_of[page.lease.subtask_id], page.verdict, page.missing)


_PAGE = {
    "url": "url", "url_key": "key", "site": "lease.site", "title": "title", "content_hash": "content_hash",
    "encoding": "encoding", "bytes": "size", "node": "lease.node", "attempt_id": "lease.attempt_id", "etag": "etag",
    "last_modified": "last_modified", "confidence": "confidence",
}  # fmt: skip
"""Columns of a page, each with the attribute of a `NewPage` that holds its value."""
_VALUES = attrgetter(*_PAGE.values())


def _insert_pages(tx: Transaction, items: Sequence[NewPage], late: Collection[str]) -> dict[bytes, int]:
    """Insert pages that are not there yet; return their ids by key."""
    rows = [
        (*_VALUES(page), [one.refused for one in page.records].count(None), page.lease.token in late)
        for page in items
    ]
    columns, shared = (*_PAGE, "reviews", "late"), {"fetched_at": tx.now}
    added = tx.insert_returning(
        "pages", columns, rows, returning="url_key, id", shared=shared, skip_known=True
    )
    return {bytes(key): number for key, number in added}


def _end_stored_targets(tx: Transaction, items: Sequence[NewPage], late: Collection[str]) -> None:
    # Leases of one subtask may meet here: the later page has the last word on its target, and each is a try.
    for is_late, arrivals in groupby(items, key=lambda page: page.lease.token in late):
        tries = Counter(page.target_id for page in arrivals)
        for times in sorted(set(tries.values())):
            targets = [target for target, n in tries.items() if n == times]
            tx.later(_END_STORED, targets=targets, reason="late" if is_late else None, times=times)


_END_STORED = (
    "UPDATE targets SET state = 'stored', reason = :reason, tries = tries + :times WHERE id IN :targets"
)


class _Stored(NamedTuple):
    """A page that was stored before.

    Attributes:
        asked_at: when it was requested for the last time.
    """

    url_key: bytes
    id: int
    content_hash: str
    reviews: int
    asked_at: datetime


def _save_again(tx: Transaction, items: Sequence[NewPage], product_of: Mapping[int, int]) -> None:
    """Link pages that are stored already, and store what is new in them."""
    found = tx.records(_Stored, _LOCK_STORED, keys={page.key for page in items})
    stored = {bytes(one.url_key): one for one in found}
    times = {one.id: max(tx.now, one.asked_at) for one in found}
    known = reviews.list_texts(tx, times)
    again = [_link(stored[page.key].id, page, product_of) for page in items]
    links.add(tx, [link._replace(verdict=Verdict.UNJUDGED, missing="") for link in again], times)
    changed: set[int] = set()
    for page, link in zip(items, again, strict=True):
        one = stored[page.key]
        if one.content_hash != page.content_hash:
            changed.add(one.id)
            wrong = {one.id} if link.verdict is Verdict.WRONG_PRODUCT else ()
            with counted_reviews.recount(tx, pages=wrong):
                links.judge_again(tx, link)
            of_product = one.reviews > 0 or page.verdict is Verdict.REVIEW
            records = reviews.judge_again(page.records, of_product=of_product)
            n = reviews.save_again(tx, times[one.id], one.id, records, known[one.id])
            tx.later(_CHANGE, id=one.id, title=page.title, hash=page.content_hash, added=n)
            stored[page.key] = one._replace(content_hash=page.content_hash, reviews=one.reviews + n)
        validators = {"etag": page.etag, "modified": page.last_modified}
        tx.later(_ASK, id=one.id, confidence=page.confidence, at=times[one.id], **validators)
    counted_reviews.add_pages(tx, changed)


_LOCK_STORED = """
    SELECT url_key, id, content_hash, reviews, coalesce(checked_at, fetched_at) AS asked_at
    FROM pages WHERE url_key IN :keys ORDER BY id FOR NO KEY UPDATE
"""
_CHANGE = "UPDATE pages SET title = :title, content_hash = :hash, reviews = reviews + :added WHERE id = :id"
_ASK = """
    UPDATE pages SET confidence = :confidence, checked_at = :at, etag = :etag, last_modified = :modified WHERE id = :id
"""


# --- pages that are known -----------------------------------------------------------------------------------


def save_result_pages(tx: Transaction, items: Sequence[ResultPageToStore]) -> list[StoredHits | None]:
    """Store result pages (`queue.result_pages.save_result_pages`) and link the known pages that they list."""
    stored, to_link = result_pages.save_result_pages(tx, items)
    _link_known(tx, to_link)
    return stored


STORE_RESULT_PAGES: BatchOperation[ResultPageToStore, StoredHits | None] = BatchOperation(
    2, save_result_pages
)


def _link_known(tx: Transaction, pairs: Collection[tuple[KnownPage, int]]) -> None:
    """Link pages to products; a sweep judges them by their stored texts."""
    times = {page.id: max(tx.now, page.checked_at) for page, _ in pairs}
    links.add(tx, [Link(page.id, product_id, Verdict.UNJUDGED) for page, product_id in pairs], times)


def page_count(store: Store) -> int:
    """Return about how many pages are stored: the highest number, which costs no counting."""
    with store.read() as tx:
        return tx.value("SELECT max(id) FROM pages") or 0


def page_keys(store: Store, batch: int = _AT_ONCE) -> Iterator[list[bytes]]:
    """Yield the keys of all pages that are stored when it begins, and perhaps of some that come meanwhile.

    Each batch is read in a short transaction of its own, so that millions of keys keep no transaction open for long.
    """
    after = 0
    while True:
        with store.read() as tx:
            rows = tx.rows(_KEYS, after=after, most=batch)
        if not rows:
            return
        yield [bytes(key) for _, key in rows]
        after = rows[-1][0]


_KEYS = "SELECT id, url_key FROM pages WHERE id > :after ORDER BY id LIMIT :most"


# --- targets that gave no page ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """A target that gave no page, for a lease.

    Attributes:
        state: "todo" (may be tried again), "refused", "given_up", or "stored" (known, and unchanged).
        counts: whether this was a try.
        unchanged: key of a known page that was fetched again and has not changed.
    """

    lease: Lease
    target_id: int
    state: str
    reason: str
    counts: bool
    unchanged: bytes | None = None


def end_targets(tx: Transaction, items: Sequence[TargetEnd]) -> list[None]:
    """Record targets that gave no page; nothing happens if the lease is over, because the try was cut off."""
    leases = lock_leased(tx, [end.lease for end in items])
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: set[tuple[bytes, int]] = set()
    for end in items:
        if (subtask := leases.get(end.lease)) is not None:
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if end.unchanged is not None:
                unchanged.add((end.unchanged, subtask.product_id))
    for (state, reason, counts), targets in groups.items():
        tx.later(_END, targets=targets, state=state, reason=reason, times=int(counts))
    if unchanged:
        known = find_pages(tx, {key for key, _ in unchanged})
        _link_known(tx, [(known[key], product_id) for key, product_id in unchanged])
        tx.later(_CHECK, pages=[page.id for page in known.values()], now=tx.now)
    return [None] * len(items)


STORE_TARGET_ENDS: BatchOperation[TargetEnd, None] = BatchOperation(4, end_targets)

_END = """
    UPDATE targets SET state = :state, reason = :reason, tries = tries + :times
    WHERE id IN :targets AND state = 'todo'
"""
_CHECK = """
    UPDATE pages SET checked_at = CASE WHEN coalesce(checked_at, fetched_at) > :now
        THEN coalesce(checked_at, fetched_at) ELSE :now END
    WHERE id IN :pages
"""
