"""The ends of targets: pages stored with their reviews, or no page (refused, given up, unchanged, to be tried again).

A page is identified by its canonical URL, and known once it is committed. It is stored in one transaction with its
reviews and its target. A batch of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, case, select, update

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.store import page_links
from tasks.store.database import insert_new
from tasks.store.known_pages import KnownPage, known_pages
from tasks.store.leases import Lease, in_force
from tasks.store.page_links import Link
from tasks.store.reviews import save_new_reviews, save_reviews
from tasks.store.statement_batch import defer
from tasks.store.tables import attempts, pages, subtasks, targets
from tasks.store.writer import BatchOperation

_Row = Row[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page as fetched and read, ready to be stored.

    Attributes:
        content_hash: hex digest of the bodies of all its parts; equal for two fetches of the same content.
        size: bytes of these bodies.
        etag, last_modified: validators for the next fetch.
        refused: records that are no review, by reason; `reviews` holds none of them.
        text: what it is judged by (`tasks.domain.product_match.matchable_text`); None: not judged.
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
    text: str | None = None


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A page to be stored for a lease."""

    lease: Lease
    page: NewPage


def save_pages(conn: Connection, now: datetime, items: Sequence[SavedPage]) -> list[bool]:
    """Store pages with their reviews, and their targets as stored; False where a page was stored already.

    A page whose lease is over is stored all the same and marked late. Of a page that was stored already, what is new
    is stored.
    """
    locked = _subtasks(conn, [item.lease for item in items])
    late = [locked[item.lease.subtask_id].lease_token != item.lease.token for item in items]
    links = [_link(locked[item.lease.subtask_id], item.page) for item in items]
    ids = _insert_pages(conn, now, items, late, locked, links)
    # Leases of one subtask may meet here: the later page has the last word on its target, and each is a try.
    for is_late, of in groupby(zip(items, late, strict=True), key=itemgetter(1)):
        tries = Counter(item.page.target_id for item, _ in of)
        for times in sorted(set(tries.values())):
            defer(
                conn,
                update(targets)
                .where(targets.c.id.in_([target for target, n in tries.items() if n == times]))
                .values(state="stored", reason="late" if is_late else None, tries=targets.c.tries + times),
            )
    fresh: list[tuple[SavedPage, Link]] = []
    again: list[tuple[SavedPage, Link]] = []
    new: list[bool] = []
    for item, link in zip(items, links, strict=True):
        page_id = ids.pop(item.page.key, None)  # the first of two equal pages of a batch is the one
        new.append(page_id is not None)
        if page_id is None:
            again.append((item, link))
        else:
            fresh.append((item, replace(link, page_id=page_id)))
    page_links.add(conn, now, [link for _, link in fresh])
    page_links.save_refusals(
        conn, {link.page_id: item.page.refused for item, link in fresh if item.page.refused}
    )
    save_reviews(
        conn,
        now,
        [
            (item.lease, link.page_id, item.page.url, locked[item.lease.subtask_id].site, item.page.reviews)
            for item, link in fresh
            if link.verdict is Verdict.REVIEW
        ],
    )
    if again:
        _save_again(conn, now, again, locked)
    came_late = [
        item.lease.attempt_id
        for item, is_late, is_new in zip(items, late, new, strict=True)
        if is_late and is_new
    ]
    for attempt_id in came_late:
        defer(conn, update(attempts).where(attempts.c.id == attempt_id).values(late=attempts.c.late + 1))
    return new


def _link(subtask: _Row, page: NewPage) -> Link:
    """What a page is to the product of a subtask; its number is not known yet."""
    sets = page_links.keyword_sets(subtask) if page.text is not None else ()
    return page_links.judged(0, subtask.product_id, sets, page.text, len(page.reviews))


PAGES: BatchOperation[SavedPage, bool] = BatchOperation(3, save_pages)


def _insert_pages(
    conn: Connection,
    now: datetime,
    items: Sequence[SavedPage],
    late: Sequence[bool],
    locked: Mapping[int, _Row],
    links: Sequence[Link],
) -> dict[bytes, int]:
    """Insert pages that are not there yet; their ids by key."""
    rows = [
        {
            "url": item.page.url,
            "url_key": item.page.key,
            "site": locked[item.lease.subtask_id].site,
            "title": item.page.title,
            "content_hash": item.page.content_hash,
            "encoding": item.page.encoding,
            "bytes": item.page.size,
            "reviews": len(item.page.reviews) - link.refused,
            "fetched_at": now,
            "node": item.lease.node,
            "attempt_id": item.lease.attempt_id,
            "late": is_late,
            "etag": item.page.etag,
            "last_modified": item.page.last_modified,
            "withheld": link.refused,
        }
        for item, is_late, link in zip(items, late, links, strict=True)
    ]
    added = conn.execute(insert_new(conn.dialect, pages).returning(pages.c.url_key, pages.c.id), rows)
    return {bytes(key): page_id for key, page_id in added}


def _save_again(
    conn: Connection, now: datetime, items: Sequence[tuple[SavedPage, Link]], locked: Mapping[int, _Row]
) -> None:
    """Pages that are stored already: link them, and store their new reviews.

    The reviews of a page that is linked to no product so far are stored with the first product that it is about.
    """
    known = known_pages(conn, {item.page.key for item, _ in items})
    links = [replace(link, page_id=known[item.page.key].id) for item, link in items]
    page_links.add(conn, now, links)
    page_links.judge_again(conn, [link for link in links if link.verdict is not Verdict.NO_REVIEW])
    refused: dict[int, Mapping[str, int]] = {}
    for (item, link), (page, stored) in zip(
        items, ((item.page, known[item.page.key]) for item, _ in items), strict=True
    ):
        changed = page.content_hash != stored.content_hash
        taken = link.verdict is Verdict.REVIEW or stored.reviews > 0
        added = 0
        if taken and (changed or stored.withheld):
            added = save_new_reviews(
                conn,
                now,
                (item.lease, stored.id, page.url, locked[item.lease.subtask_id].site, page.reviews),
            )
        if changed:
            refused[stored.id] = page.refused
        defer(
            conn,
            update(pages)
            .where(pages.c.id == stored.id)
            .values(
                title=page.title,
                content_hash=page.content_hash,
                checked_at=now,
                etag=page.etag,
                last_modified=page.last_modified,
                reviews=pages.c.reviews + added,
                withheld=0 if taken else case((pages.c.reviews > 0, 0), else_=len(page.reviews)),
            ),
        )
    page_links.save_refusals(conn, refused, again=True)


def _subtasks(conn: Connection, leases: Iterable[Lease]) -> dict[int, _Row]:
    """Lock the subtasks of these leases, in force or not."""
    rows = conn.execute(
        select(
            subtasks.c.id,
            subtasks.c.product_id,
            subtasks.c.site,
            subtasks.c.lease_token,
            *page_links.KEYWORDS,
        )
        .where(subtasks.c.id.in_({lease.subtask_id for lease in leases}))
        .order_by(subtasks.c.id)
        .with_for_update()
    )
    return {row.id: row for row in rows}


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
class EndedTarget:
    """A target that gave no page, for a lease.

    Attributes:
        unchanged: key of a known page that was fetched again and has not changed.
        judge: as in `tasks.store.result_pages.ReadResults`.
    """

    lease: Lease
    end: TargetEnd
    unchanged: bytes | None = None
    judge: bool = False


def end_targets(conn: Connection, now: datetime, items: Sequence[EndedTarget]) -> list[None]:
    """Record targets that gave no page; nothing happens where the lease is over (the try was cut off)."""
    leases = in_force(conn, [item.lease for item in items], subtasks.c.product_id, *page_links.KEYWORDS)
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: dict[tuple[bytes, int], EndedTarget] = {}
    for item in items:
        if (subtask := leases.get(item.lease.token)) is not None:
            end = item.end
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if item.unchanged is not None:
                unchanged.setdefault((item.unchanged, subtask.product_id), item)
    for (state, reason, counts), ids in groups.items():
        defer(
            conn,
            update(targets)
            .where(targets.c.id.in_(ids), targets.c.state == "todo")
            .values(state=state, reason=reason, tries=targets.c.tries + (1 if counts else 0)),
        )
    if unchanged:
        _are_unchanged(conn, now, unchanged, leases)
    return [None] * len(items)


ENDS: BatchOperation[EndedTarget, None] = BatchOperation(4, end_targets)


def _are_unchanged(
    conn: Connection,
    now: datetime,
    asked: Mapping[tuple[bytes, int], EndedTarget],
    leases: Mapping[str, _Row],
) -> None:
    """Known pages, each asked again for a product: it may be the first time for that one."""
    known = known_pages(conn, {key for key, _ in asked}, {product_id for _, product_id in asked})
    new: dict[tuple[KnownPage, int], page_links.KeywordSets | None] = {}
    for (key, product_id), item in asked.items():
        if product_id not in known[key].linked_to:
            sets = page_links.keyword_sets(leases[item.lease.token]) if item.judge else None
            new[known[key], product_id] = sets
    page_links.link_known(conn, now, new)
    defer(
        conn, update(pages).where(pages.c.id.in_([page.id for page in known.values()])).values(checked_at=now)
    )
