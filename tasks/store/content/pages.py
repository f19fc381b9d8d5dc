"""The ends of targets: pages stored with their reviews, or no page (refused, given up, unchanged, to be tried again).

A page is identified by its canonical URL, and known once it is committed. It is stored in one transaction with its
reviews and its target. A batch of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import bindparam, case, update

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.store.content import near_links, page_links, refused
from tasks.store.content.page_links import Link
from tasks.store.content.refused import Refused
from tasks.store.content.reviews import OfPage, save_new_reviews, save_reviews
from tasks.store.queue.leases import KEYWORDS, KeywordSets, Lease, in_force, keyword_sets
from tasks.store.queue.result_pages import ASKED, KnownPage, known_pages
from tasks.store.queue.transitions import LOCKED
from tasks.store.sql.database import later_of
from tasks.store.sql.prepared import Prepared, defer, new_rows
from tasks.store.sql.tables import attempts, pages, targets
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page as fetched and read, ready to be stored.

    Attributes:
        content_hash: hex digest of the bodies of all its parts; equal for two fetches of the same content.
        size: bytes of these bodies.
        etag, last_modified: validators for the next fetch.
        refused: records that are no review, by reason; `reviews` holds none of them.
        refused_records: these records, each with its reason, as far as they are kept.
        confidence: as in `tasks.domain.pages.PageRead`.
        verdict: what it is to the product that it was found for; None: pages of its site are not judged.
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
    refused: Mapping[str, int] = field(default_factory=dict)
    refused_records: tuple[Refused, ...] = ()
    confidence: float = 1.0
    verdict: Verdict | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageToStore:
    """A page to be stored for a lease."""

    lease: Lease
    page: NewPage


@dataclass(slots=True, eq=False)
class _Arrival:
    """A page that came for a subtask, and what it is to the subtask's product.

    Attributes:
        late: its lease is over.
        link: with the page's number once it is known.
    """

    lease: Lease
    page: NewPage
    site: str
    late: bool
    link: Link

    def reviews(self) -> OfPage:
        """Its reviews, to be saved."""
        return self.lease, self.link.page_id, self.page.url, self.site, self.page.reviews

    def refused(self, *, taken: bool) -> list[Refused]:
        """Its records that are not stored as reviews; `taken`: its reviews are."""
        others = [] if taken else refused.of_another_product(self.page.reviews)
        return [*others, *self.page.refused_records]


def save_pages(conn: Transaction, now: datetime, items: Sequence[PageToStore]) -> list[bool]:
    """Store pages with their reviews, and their targets as stored; False where a page was stored already.

    A page whose lease is over is stored all the same and marked late. Of a page that was stored already, what is new
    is stored.
    """
    wanted = {item.lease.subtask_id for item in items}
    locked = {row.id: row for row in conn.records(_Found, _FOR_PAGES, ids=list(wanted))}
    came = [_arrival(item, locked[item.lease.subtask_id]) for item in items]
    ids = _insert_pages(conn, now, came)
    # Leases of one subtask may meet here: the later page has the last word on its target, and each is a try.
    for late, of in groupby(came, key=attrgetter("late")):
        tries = Counter(one.page.target_id for one in of)
        for times in sorted(set(tries.values())):
            its = [target for target, n in tries.items() if n == times]
            given = {"targets": its, "of_reason": "late" if late else None, "more": times}
            _ARE_STORED.defer(conn, given)
    fresh: list[_Arrival] = []
    again: list[_Arrival] = []
    for one in came:
        page_id = ids.pop(one.page.key, None)  # the first of two equal pages of a batch is the one
        if page_id is None:
            again.append(one)
        else:
            one.link = replace(one.link, page_id=page_id)
            fresh.append(one)
    page_links.add(conn, now, [one.link for one in fresh])
    page_links.save_refusals(conn, {one.link.page_id: one.page.refused for one in fresh if one.page.refused})
    save_reviews(conn, now, [one.reviews() for one in fresh if one.link.verdict is Verdict.REVIEW])
    kept_back = {one.link.page_id: one.refused(taken=one.link.verdict is Verdict.REVIEW) for one in fresh}
    refused.save(conn, now, kept_back)
    if again:
        _save_again(conn, now, again)
    for one in fresh:
        if one.late:
            of_attempt = attempts.c.id == one.lease.attempt_id
            defer(conn, update(attempts).where(of_attempt).values(late=attempts.c.late + 1))
    new = set(map(id, fresh))
    return [id(one) in new for one in came]


_TARGETS = targets.c.id.in_(bindparam("targets", expanding=True))
_ARE_STORED = Prepared(
    update(targets)
    .where(_TARGETS)
    .values(state="stored", reason=bindparam("of_reason"), tries=targets.c.tries + bindparam("more"))
)


class _Found(NamedTuple):
    id: int
    product_id: int
    site: str
    lease_token: str | None


_FOR_PAGES = f"SELECT id, product_id, site, lease_token FROM subtasks WHERE {LOCKED}"


class _Judging(NamedTuple):
    id: int
    lease_token: str
    product_id: int
    words: list[str]
    aliases: list[list[str]]
    own_words: list[str] | None


_FOR_ENDS = f"SELECT id, lease_token, product_id, {KEYWORDS} FROM subtasks WHERE {LOCKED}"


def _arrival(item: PageToStore, subtask: _Found) -> _Arrival:
    page = item.page
    of_others = len(page.reviews) if page.verdict is Verdict.WRONG_PRODUCT else 0
    link = Link(0, subtask.product_id, page.verdict or Verdict.REVIEW, page.missing, of_others)
    return _Arrival(item.lease, page, subtask.site, subtask.lease_token != item.lease.token, link)


STORE_PAGES: BatchOperation[PageToStore, bool] = BatchOperation(3, save_pages)


def _insert_pages(conn: Transaction, now: datetime, came: Sequence[_Arrival]) -> dict[bytes, int]:
    """Insert pages that are not there yet; their ids by key."""
    rows = [
        {
            "url": one.page.url,
            "url_key": one.page.key,
            "site": one.site,
            "title": one.page.title,
            "content_hash": one.page.content_hash,
            "encoding": one.page.encoding,
            "bytes": one.page.size,
            "reviews": len(one.page.reviews) - one.link.refused,
            "fetched_at": now,
            "node": one.lease.node,
            "attempt_id": one.lease.attempt_id,
            "late": one.late,
            "etag": one.page.etag,
            "last_modified": one.page.last_modified,
            "withheld": one.link.refused,
            "confidence": one.page.confidence,
        }
        for one in came
    ]
    added = new_rows(conn, pages, tuple(rows[0]), pages.c.url_key, pages.c.id)
    return {bytes(key): page_id for key, page_id in added.rows_of_each(conn, rows)}


def _save_again(conn: Transaction, now: datetime, came: Sequence[_Arrival]) -> None:
    """Pages that are stored already: link them, and store their new reviews.

    The reviews of a page that is linked to no product so far are stored with the first product that it is about.
    """
    known = known_pages(conn, {one.page.key for one in came})
    for one in came:
        one.link = replace(one.link, page_id=known[one.page.key].id)
    page_links.add(conn, now, [one.link for one in came], known.values())
    page_links.judge_again(conn, [one.link for one in came if one.link.verdict is not Verdict.NO_REVIEW])
    no_reviews: dict[int, Mapping[str, int]] = {}
    kept_back: dict[int, list[Refused]] = {}
    for one in came:
        page, stored = one.page, known[one.page.key]
        changed = page.content_hash != stored.content_hash
        taken = one.link.verdict is Verdict.REVIEW or stored.reviews > 0
        is_read = taken and (changed or stored.withheld)
        added = save_new_reviews(conn, stored.time_of(now), one.reviews()) if is_read else 0
        if changed:
            no_reviews[stored.id] = page.refused
        if changed or stored.withheld:
            kept_back[stored.id] = one.refused(taken=taken)
        defer(
            conn,
            update(pages)
            .where(pages.c.id == stored.id)
            .values(
                title=page.title,
                content_hash=page.content_hash,
                confidence=page.confidence,
                checked_at=later_of(ASKED, now),
                etag=page.etag,
                last_modified=page.last_modified,
                reviews=pages.c.reviews + added,
                withheld=0 if taken else case((pages.c.reviews > 0, 0), else_=len(page.reviews)),
            ),
        )
    page_links.save_refusals(conn, no_reviews, again=True)
    refused.save(conn, now, kept_back, again=True)
    near_links.settle(conn, {one.link.page_id for one in came if one.page.verdict is not None})


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
        judge: as in `tasks.store.queue.result_pages.ResultPageToStore`.
    """

    lease: Lease
    end: TargetEnd
    unchanged: bytes | None = None
    judge: bool = False


def end_targets(conn: Transaction, now: datetime, items: Sequence[TargetEndToStore]) -> list[None]:
    """Record targets that gave no page; nothing happens where the lease is over (the try was cut off)."""
    leases = in_force(conn, _Judging, _FOR_ENDS, (item.lease for item in items))
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: dict[tuple[bytes, int], TargetEndToStore] = {}
    for item in items:
        if (subtask := leases.get(item.lease.token)) is not None:
            end = item.end
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if item.unchanged is not None:
                unchanged.setdefault((item.unchanged, subtask.product_id), item)
    for (state, reason, counts), ids in groups.items():
        given = {"targets": ids, "of_state": state, "of_reason": reason, "more": int(counts)}
        _ENDED.defer(conn, given)
    if unchanged:
        _are_unchanged(conn, now, unchanged, leases)
    return [None] * len(items)


_ENDED = Prepared(
    update(targets)
    .where(_TARGETS, targets.c.state == "todo")
    .values(
        state=bindparam("of_state"), reason=bindparam("of_reason"), tries=targets.c.tries + bindparam("more")
    )
)
STORE_TARGET_ENDS: BatchOperation[TargetEndToStore, None] = BatchOperation(4, end_targets)


def _are_unchanged(
    conn: Transaction,
    now: datetime,
    asked: Mapping[tuple[bytes, int], TargetEndToStore],
    leases: Mapping[str, _Judging],
) -> None:
    """Known pages, each asked again for a product: it may be the first time for that one."""
    known = known_pages(conn, {key for key, _ in asked}, {product_id for _, product_id in asked})
    new: dict[tuple[KnownPage, int], KeywordSets | None] = {}
    for (key, product_id), item in asked.items():
        if product_id not in known[key].linked_to:
            sets = keyword_sets(leases[item.lease.token]) if item.judge else None
            new[known[key], product_id] = sets
    near_links.link_known(conn, now, new)
    unchanged = update(pages).where(pages.c.id.in_([page.id for page in known.values()]))
    defer(conn, unchanged.values(checked_at=later_of(ASKED, now)))
