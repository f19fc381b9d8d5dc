"""What a crawl brings home: result pages, pages and their reviews, each with its target in one transaction.

A page is its canonical URL; "known" means committed. A page that is known adds a link to the product and no fetch.
A review is (page, its key); a review whose text equals an earlier one is stored and linked to it, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from tasks.crawl.model import Provenance, ResultPage, Review
from tasks.store.database import insert_new
from tasks.store.leases import Lease, WorkTarget
from tasks.store.tables import attempts, page_products, pages, reviews, subtasks, targets, tasks


@dataclass(frozen=True, slots=True)
class FoundHit:
    """A hit of a result page: canonical address and its key."""

    url: str
    key: bytes


@dataclass(frozen=True, slots=True)
class Hits:
    """What became of a result page's hits.

    Attributes:
        todo: new targets of this subtask, to be fetched; a hit listed before is none.
        known: hits that were stored already: linked to the product, nothing to fetch.
    """

    todo: tuple[WorkTarget, ...]
    known: int


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page as fetched and read, ready to be stored.

    Attributes:
        content_hash: hex digest of the decoded text.
        size: bytes of the body as received.
    """

    target_id: int
    url: str
    key: bytes
    title: str
    content_hash: str
    encoding: str
    size: int
    reviews: tuple[Review, ...]


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """A target that gave no page.

    Attributes:
        state: "todo" (may be tried again), "refused" or "given_up".
        counts: whether this was a try.
    """

    target_id: int
    state: str
    reason: str
    counts: bool


def content_hash(text: str) -> str:
    """The digest that tells whether two fetches of a page brought the same text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def save_result_page(
    conn: Connection,
    now: datetime,
    lease: Lease,
    target: WorkTarget,
    page: ResultPage,
    hits: Sequence[FoundHit],
    *,
    past_end: Sequence[int],
    more: bool,
) -> Hits:
    """Store what a result page revealed: found, its hits as targets, and that it needs no second reading.

    Nothing is stored where the lease is over: its targets could belong to a subtask that is done. Whoever owns the
    subtask now reads the page again.

    Args:
        hits: those of `page`, by their canonical addresses, each once.
        past_end: targets of result pages behind this one that do not exist, as this is the last.
        more: this is the last result page of its chunk and shows that there is more.
    """
    row = conn.execute(
        select(subtasks.c.task_id, subtasks.c.product_id)
        .where(subtasks.c.id == lease.subtask_id, subtasks.c.lease_token == lease.token)
        .with_for_update()
    ).one_or_none()
    if row is None:
        return Hits((), 0)
    known = _link_known(conn, now, row.product_id, [h.key for h in hits])
    todo: list[WorkTarget] = []
    if hits:
        added = conn.execute(
            insert_new(conn.dialect, targets).returning(
                targets.c.id, targets.c.kind, targets.c.url, targets.c.tries, targets.c.state
            ),
            [
                {
                    "task_id": row.task_id,
                    "subtask_id": lease.subtask_id,
                    "kind": "hit",
                    "url": hit.url,
                    "url_key": hit.key,
                    "state": "stored" if hit.key in known else "todo",
                    "reason": "known" if hit.key in known else None,
                }
                for hit in hits
            ],
        )
        # A hit that another result page listed before is somebody's target already.
        todo = sorted((WorkTarget(*t[:4]) for t in added if t.state == "todo"), key=lambda t: t.id)
    conn.execute(update(targets).where(targets.c.id == target.id).values(state="stored", reason="read"))
    if past_end:
        conn.execute(
            update(targets)
            .where(targets.c.id.in_(past_end), targets.c.state == "todo")
            .values(state="refused", reason="past_end")
        )
    _note_found(conn, row.task_id, lease, page)
    if more:
        conn.execute(update(attempts).where(attempts.c.id == lease.attempt_id).values(more=True))
    return Hits(tuple(todo), len(known))


def _note_found(conn: Connection, task_id: int, lease: Lease, page: ResultPage) -> None:
    """Record how many hits the search reports, or that they were counted up to its last page."""
    found, provenance = page.found, Provenance.REPORTED
    if found is None and page.more:
        return
    if found is None:
        provenance = Provenance.COUNTED
        found = conn.execute(
            select(func.count())
            .select_from(targets)
            .where(targets.c.task_id == task_id, targets.c.kind == "hit")
        ).scalar_one()
    values = {"found": found, "found_provenance": provenance}
    conn.execute(update(attempts).where(attempts.c.id == lease.attempt_id).values(values))
    conn.execute(update(tasks).where(tasks.c.id == task_id).values(values))


def save_page(conn: Connection, now: datetime, lease: Lease, page: NewPage) -> bool:
    """Store a page with its reviews, and its target as stored; False if the page was stored by somebody else.

    A page whose lease is over is stored all the same and marked late.
    """
    subtask = conn.execute(
        select(subtasks.c.product_id, subtasks.c.site, subtasks.c.lease_token)
        .where(subtasks.c.id == lease.subtask_id)
        .with_for_update()
    ).one()
    late = subtask.lease_token != lease.token
    page_id = conn.execute(
        insert_new(conn.dialect, pages)
        .values(
            url=page.url,
            url_key=page.key,
            site=subtask.site,
            title=page.title,
            content_hash=page.content_hash,
            encoding=page.encoding,
            bytes=page.size,
            reviews=len(page.reviews),
            fetched_at=now,
            node=lease.node,
            attempt_id=lease.attempt_id,
            late=late,
        )
        .returning(pages.c.id)
    ).scalar_one_or_none()
    conn.execute(
        update(targets)
        .where(targets.c.id == page.target_id)
        .values(state="stored", reason="late" if late else None, tries=targets.c.tries + 1)
    )
    if page_id is None:
        _link_known(conn, now, subtask.product_id, [page.key])
        return False
    conn.execute(insert(page_products).values(page_id=page_id, product_id=subtask.product_id, linked_at=now))
    if page.reviews:
        _save_reviews(conn, now, lease, page_id, subtask.site, page)
    if late:
        conn.execute(
            update(attempts).where(attempts.c.id == lease.attempt_id).values(late=attempts.c.late + 1)
        )
    return True


def _save_reviews(
    conn: Connection, now: datetime, lease: Lease, page_id: int, site: str, page: NewPage
) -> None:
    hashes = [blake2b(r.body.encode("utf-8", "surrogatepass"), digest_size=16).digest() for r in page.reviews]
    earlier = _first_with(conn, hashes)
    originals: list[dict[str, Any]] = []
    copies: list[dict[str, Any]] = []
    on_this_page: set[bytes] = set()
    for review, digest in zip(page.reviews, hashes, strict=True):
        row = {
            "page_id": page_id,
            "key": review.key,
            "title": review.title,
            "body": review.body,
            "author": review.author,
            "date_text": review.date_text,
            "published_at": review.date,
            "rating": review.rating,
            "url": page.url,
            "site": site,
            "text_hash": digest,
            "same_as": earlier.get(digest),
            "collected_at": now,
            "node": lease.node,
            "attempt_id": lease.attempt_id,
        }
        (copies if digest in on_this_page else originals).append(row)
        on_this_page.add(digest)
    conn.execute(insert(reviews), originals)
    if copies:
        earlier = _first_with(conn, hashes)
        conn.execute(insert(reviews), [{**row, "same_as": earlier[row["text_hash"]]} for row in copies])


def _first_with(conn: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    """The first review with each of these texts, where there is one."""
    rows = conn.execute(
        select(reviews.c.text_hash, func.min(reviews.c.id))
        .where(reviews.c.text_hash.in_(hashes), reviews.c.same_as.is_(None))
        .group_by(reviews.c.text_hash)
    )
    return {bytes(digest): review_id for digest, review_id in rows}


def end_target(conn: Connection, lease: Lease, end: TargetEnd) -> None:
    """Record that a target gave no page; nothing happens where the lease is over (the try was cut off)."""
    owner = conn.execute(
        select(subtasks.c.lease_token).where(subtasks.c.id == lease.subtask_id).with_for_update()
    ).scalar_one()
    if owner != lease.token:
        return
    conn.execute(
        update(targets)
        .where(targets.c.id == end.target_id, targets.c.state == "todo")
        .values(state=end.state, reason=end.reason, tries=targets.c.tries + (1 if end.counts else 0))
    )


def known_pages(conn: Connection, keys: Sequence[bytes]) -> Mapping[bytes, int]:
    """Which of these pages are stored already: key to page id."""
    if not keys:
        return {}
    rows = conn.execute(select(pages.c.url_key, pages.c.id).where(pages.c.url_key.in_(keys)))
    return {bytes(key): page_id for key, page_id in rows}


def _link_known(
    conn: Connection, now: datetime, product_id: int, keys: Sequence[bytes]
) -> Mapping[bytes, int]:
    known = known_pages(conn, keys)
    if known:
        conn.execute(
            insert_new(conn.dialect, page_products),
            [{"page_id": p, "product_id": product_id, "linked_at": now} for p in known.values()],
        )
    return known
