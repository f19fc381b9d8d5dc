"""Pages: stored with their records, known to nodes, and linked to products that find them again.

A page is identified by its canonical URL, and known once it is committed. It is stored in one transaction with its
records and its target. A batch of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tasks.domain.pages import Review
from tasks.domain.verdicts import Verdict
from tasks.store.content import links, reviews
from tasks.store.content.links import Link
from tasks.store.content.reviews import PageOrigin, Refused
from tasks.store.queue import result_pages
from tasks.store.queue.leases import Lease, lock_leased
from tasks.store.queue.result_pages import KnownPage, ResultPageToStore, StoredHits, find_pages
from tasks.store.queue.transitions import LOCKED
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

_AT_ONCE = 500
"""Keys that Redis adds to the shared set in a few milliseconds; it answers no other client meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page as fetched and read, ready to be stored.

    Attributes:
        content_hash: hex digest of the bodies of all its parts; equal for two fetches of the same content.
        size: bytes of these bodies.
        etag, last_modified: validators for the next fetch.
        refused: records that are no review, each with its reason; `reviews` holds none of them.
        confidence: as in `tasks.domain.pages.PageRead`.
        verdict: its relation to the product that it was found for; None: pages of its site are not judged.
        missing: keywords of the product that it lacks, if it is about another one.
    """

    target_id: int
    url: str
    key: bytes
    title: str
    content_hash: str
    encoding: str
    size: int
    reviews: tuple[Review, ...]
    etag: str | None = None
    last_modified: str | None = None
    refused: tuple[Refused, ...] = ()
    confidence: float = 1.0
    verdict: Verdict | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageToStore:
    """A page to be stored for a lease."""

    lease: Lease
    page: NewPage


class _Arrival(NamedTuple):
    """A page that came for a subtask.

    Attributes:
        late: its lease is over.
    """

    lease: Lease
    page: NewPage
    site: str
    product_id: int
    late: bool

    def link(self, page_id: int) -> Link:
        """Return its link to the subtask's product."""
        return Link(page_id, self.product_id, self.page.verdict or Verdict.REVIEW, self.page.missing)

    @property
    def is_about_product(self) -> bool:
        """True if its reviews are those of the product that it was found for."""
        return self.page.verdict in (None, Verdict.REVIEW)

    def rows(self, page_id: int, *, of_product: bool) -> list[reviews.Row]:
        """Return its records. `of_product`: its reviews are those of a product that it was found for."""
        origin = PageOrigin(page_id, self.page.url, self.site, self.lease.node, self.lease.attempt_id)
        reason = None if of_product else Verdict.WRONG_PRODUCT.value
        return [
            *reviews.rows_of(origin, self.page.reviews, reason),
            *reviews.rows_of_refused(origin, self.page.refused),
        ]


def save_pages(tx: Transaction, items: Sequence[PageToStore]) -> list[bool]:
    """Store pages with their records, and their targets as stored; False for a page that was stored already.

    A page whose lease is over is stored all the same and marked late. If a page was stored already, its new
    records are stored.
    """
    wanted = {item.lease.subtask_id for item in items}
    locked = {row.id: row for row in tx.records(_Found, _FIND_LOCKED, ids=wanted)}
    came = []
    for lease, page in ((item.lease, item.page) for item in items):
        subtask = locked[lease.subtask_id]
        late = subtask.lease_token != lease.token
        came.append(_Arrival(lease, page, subtask.site, subtask.product_id, late))
    ids = _insert_pages(tx, came)
    _end_stored_targets(tx, came)
    # The first of two equal pages of a batch is the new one.
    numbers = [ids.pop(one.page.key, None) for one in came]
    fresh = [(number, one) for number, one in zip(numbers, came, strict=True) if number is not None]
    links.add(tx, [one.link(number) for number, one in fresh])
    reviews.insert(
        tx, [row for number, one in fresh for row in one.rows(number, of_product=one.is_about_product)]
    )
    if again := [one for number, one in zip(numbers, came, strict=True) if number is None]:
        _save_again(tx, again)
    for _, one in fresh:
        if one.late:
            tx.later("UPDATE attempts SET late = late + 1 WHERE id = :attempt", attempt=one.lease.attempt_id)
    return [number is not None for number in numbers]


class _Found(NamedTuple):
    id: int
    product_id: int
    site: str
    lease_token: str | None


_FIND_LOCKED = f"SELECT id, product_id, site, lease_token FROM subtasks WHERE {LOCKED}"
STORE_PAGES: BatchOperation[PageToStore, bool] = BatchOperation(3, save_pages)

_PAGE = (
    "url",
    "url_key",
    "site",
    "title",
    "content_hash",
    "encoding",
    "bytes",
    "reviews",
    "node",
    "attempt_id",
)
_COLUMNS = (*_PAGE, "late", "etag", "last_modified", "confidence")


def _insert_pages(tx: Transaction, came: Sequence[_Arrival]) -> dict[bytes, int]:
    """Insert pages that are not there yet; return their ids by key."""
    rows = [
        (
            *(page.url, page.key, site, page.title, page.content_hash, page.encoding, page.size),
            *(len(page.reviews) if one.is_about_product else 0, lease.node, lease.attempt_id),
            *(late, page.etag, page.last_modified, page.confidence),
        )
        for one in came
        for lease, page, site, _, late in [one]
    ]
    added = tx.insert_returning(
        "pages", _COLUMNS, rows, returning="url_key, id", shared={"fetched_at": tx.now}, skip_known=True
    )
    return {bytes(key): number for key, number in added}


def _end_stored_targets(tx: Transaction, came: Sequence[_Arrival]) -> None:
    # Leases of one subtask may meet here: the later page has the last word on its target, and each is a try.
    for late, arrivals in groupby(came, key=attrgetter("late")):
        tries = Counter(one.page.target_id for one in arrivals)
        for times in sorted(set(tries.values())):
            targets = [target for target, n in tries.items() if n == times]
            tx.later(_END_STORED, targets=targets, reason="late" if late else None, times=times)


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


def _save_again(tx: Transaction, came: Sequence[_Arrival]) -> None:
    """Link pages that are stored already, and store what is new in them."""
    found = tx.records(_Stored, _LOCK_STORED, keys={one.page.key for one in came})
    stored = {bytes(one.url_key): one for one in found}
    times = {page.id: max(tx.now, page.asked_at) for page in found}
    pairs = [(stored[one.page.key], one) for one in came]
    links.add(tx, [Link(page.id, one.product_id, Verdict.UNJUDGED) for page, one in pairs], times)
    hashes = {page.id: page.content_hash for page in found}
    changed: list[tuple[_Stored, _Arrival]] = []
    for page, one in pairs:
        if hashes[page.id] != one.page.content_hash:
            hashes[page.id] = one.page.content_hash
            changed.append((page, one))
    of_products = {page.id for page, one in changed if page.reviews or one.is_about_product}
    for page, one in changed:
        links.judge_again(tx, one.link(page.id))
        rows = one.rows(page.id, of_product=page.id in of_products)
        n = reviews.save_again(tx, times[page.id], page.id, rows)
        tx.later(_CHANGE, id=page.id, title=one.page.title, hash=one.page.content_hash, added=n)
    for page, one in pairs:
        validators = {"etag": one.page.etag, "modified": one.page.last_modified}
        tx.later(_ASK, id=page.id, confidence=one.page.confidence, at=times[page.id], **validators)


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
    times = {page.id: page.time_of(tx.now) for page, _ in pairs}
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
    """A target that gave no page.

    Attributes:
        state: "todo" (may be tried again), "refused", "given_up", or "stored" (known, and unchanged).
        counts: whether this was a try.
    """

    target_id: int
    state: str
    reason: str
    counts: bool


@dataclass(frozen=True, slots=True)
class TargetEndToStore:
    """A target that gave no page, for a lease.

    Attributes:
        unchanged: key of a known page that was fetched again and has not changed.
    """

    lease: Lease
    end: TargetEnd
    unchanged: bytes | None = None


def end_targets(tx: Transaction, items: Sequence[TargetEndToStore]) -> list[None]:
    """Record targets that gave no page; nothing happens if the lease is over, because the try was cut off."""
    leases = lock_leased(tx, [item.lease for item in items])
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: set[tuple[bytes, int]] = set()
    for item in items:
        if (subtask := leases.get(item.lease)) is not None:
            end = item.end
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if item.unchanged is not None:
                unchanged.add((item.unchanged, subtask.product_id))
    for (state, reason, counts), targets in groups.items():
        tx.later(_END, targets=targets, state=state, reason=reason, times=int(counts))
    if unchanged:
        known = find_pages(tx, {key for key, _ in unchanged}, {product_id for _, product_id in unchanged})
        pairs = [(known[key], product_id) for key, product_id in sorted(unchanged)]
        _link_known(tx, [pair for pair in pairs if pair[1] not in pair[0].linked_to])
        tx.later(_CHECK, pages=[page.id for page in known.values()], now=tx.now)
    return [None] * len(items)


STORE_TARGET_ENDS: BatchOperation[TargetEndToStore, None] = BatchOperation(4, end_targets)

_END = """
    UPDATE targets SET state = :state, reason = :reason, tries = tries + :times
    WHERE id IN :targets AND state = 'todo'
"""
_CHECK = """
    UPDATE pages SET checked_at = CASE WHEN coalesce(checked_at, fetched_at) > :now
        THEN coalesce(checked_at, fetched_at) ELSE :now END
    WHERE id IN :pages
"""
