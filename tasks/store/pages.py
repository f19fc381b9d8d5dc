"""What a crawl brings home: result pages, pages and their reviews, each with its target in one transaction.

A page is its canonical URL; "known" means committed. A page that is known adds a link to the product and no fetch,
unless its site wants it asked again after a while, or its reviews were withheld as nobody's (`page_links`). A review is
(page, its key); a review whose text equals an earlier one is stored and linked to it, never dropped.

Everything here writes a grain of items with a fixed number of statements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, select, update

from tasks.crawl.model import ResultPage, Review
from tasks.crawl.relevance import Verdict
from tasks.store import page_links, parts, review_writes, transitions
from tasks.store.database import insert_new
from tasks.store.leases import Lease, WorkTarget
from tasks.store.page_links import Link
from tasks.store.tables import attempts, pages, subtasks, targets
from tasks.store.together import later
from tasks.store.writer import Grain
from tasks.strategies.denominator import Lists

_Row = Row[*tuple[Any, ...]]
Owners = Mapping[tuple[int, str], _Row]
"""Leases in force, by (subtask, token), with the columns of their subtask."""


@dataclass(frozen=True, slots=True)
class FoundHit:
    """A hit of a result page: canonical address and its key.

    Attributes:
        new: nobody can have stored it: the database need not be asked (`tasks.crawl.seen`).
    """

    url: str
    key: bytes
    new: bool = False


@dataclass(frozen=True, slots=True)
class ReadResults:
    """A result page as read, ready to be stored.

    Attributes:
        hits: those of `page`, by their canonical addresses, each once.
        past_end: targets of result pages behind this one that do not exist, as this is the last.
        more: this is the last result page of its chunk and shows that there is more.
        refresh: a known page that was asked longer ago is asked again; None: known is known.
        lists: what the engine lists.
        judge: known pages are linked as what they are to the product; False: as its reviews.
    """

    lease: Lease
    target: WorkTarget
    page: ResultPage
    hits: Sequence[FoundHit]
    past_end: Sequence[int] = ()
    more: bool = False
    refresh: timedelta | None = None
    lists: Lists = field(default_factory=Lists)
    judge: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """What became of a result page's hits.

    Attributes:
        todo: new targets of this subtask, to be fetched; a hit listed before is none.
        known: keys of hits that were stored already: linked to the product, nothing to fetch.
    """

    todo: tuple[WorkTarget, ...]
    known: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page as fetched and read, ready to be stored.

    Attributes:
        content_hash: hex digest of the bodies of all parts: tells whether two fetches brought the same.
        size: bytes of these bodies.
        etag, last_modified: as answered, to ask the next time whether it has changed.
        refused: records that are no review, by reason; `reviews` holds none of them.
        said: what it says, to be judged by (`tasks.crawl.relevance.spoken`); None: not judged.
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
    said: str | None = None


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


# --- result pages -------------------------------------------------------------------------------------------


def save_result_pages(conn: Connection, now: datetime, items: Sequence[ReadResults]) -> list[Hits | None]:
    """Store what result pages revealed: found, their hits as targets, and that they need no second reading.

    Nothing is stored, and None told, where the lease is over: its targets could belong to a subtask that is done.
    Whoever owns the subtask now reads the page again.
    """
    owners = _owners(conn, [item.lease for item in items])
    mine = [item for item in items if _owned(item.lease) in owners]
    asked = {hit.key for item in mine for hit in item.hits if not hit.new}
    known = {bytes(row.url_key): row for row in _known(conn, asked)}
    unread = _link_known_hits(conn, now, mine, owners, known)
    todo = _new_targets(conn, now, mine, owners, known, unread)
    _results_are_read(conn, mine)
    _note_found(conn, mine, owners)
    return [
        _hits(item, todo.get((item.lease.subtask_id, item.target.id), []), known)
        if _owned(item.lease) in owners
        else None
        for item in items
    ]


def _hits(item: ReadResults, todo: Sequence[WorkTarget], known: Collection[bytes]) -> Hits:
    again = {target.key for target in todo}
    return Hits(tuple(todo), frozenset(h.key for h in item.hits if h.key in known and h.key not in again))


def _link_known_hits(
    conn: Connection,
    now: datetime,
    items: Sequence[ReadResults],
    owners: Owners,
    known: Mapping[bytes, _Row],
) -> set[tuple[int, int]]:
    """Link hits that are stored to the products that found them; those (page, product) whose reviews were withheld."""
    asked: dict[tuple[int, int], ReadResults] = {}
    withheld: set[int] = set()
    for item in items:
        product_id = owners[_owned(item.lease)].product_id
        for hit in item.hits:
            if (page := known.get(hit.key)) is not None:
                asked.setdefault((page.id, product_id), item)
                if page.withheld:
                    withheld.add(page.id)
    new = page_links.unlinked(conn, asked)
    unread = {pair for pair in new if pair[0] in withheld}
    to_link = {pair: asked[pair] for pair in new - unread}
    sets = page_links.keyword_sets(conn, {item.lease.subtask_id for item in to_link.values() if item.judge})
    page_links.link_known(
        conn,
        now,
        {pair: sets[item.lease.subtask_id] if item.judge else None for pair, item in to_link.items()},
    )
    return unread


def _new_targets(
    conn: Connection,
    now: datetime,
    items: Sequence[ReadResults],
    owners: Owners,
    known: Mapping[bytes, _Row],
    unread: Collection[tuple[int, int]],
) -> dict[tuple[int, int], list[WorkTarget]]:
    """Insert hits as targets; those to fetch, by (subtask, result target) and in their order."""
    rows: list[dict[str, Any]] = []
    of: dict[tuple[int, bytes], tuple[int, int]] = {}
    for item in items:
        task_id, product_id = owners[_owned(item.lease)].task_id, owners[_owned(item.lease)].product_id
        for hit in item.hits:
            page = known.get(hit.key)
            again = page is not None and (
                (page.id, product_id) in unread
                or (item.refresh is not None and page.checked_at <= now - item.refresh)
            )
            stored = page is not None and not again
            of.setdefault((task_id, hit.key), (item.lease.subtask_id, item.target.id))
            rows.append(
                {
                    "task_id": task_id,
                    "subtask_id": item.lease.subtask_id,
                    "kind": "hit",
                    "url": hit.url,
                    "url_key": hit.key,
                    "state": "stored" if stored else "todo",
                    "reason": "known" if stored else None,
                }
            )
    if not rows:
        return {}
    added = conn.execute(
        insert_new(conn.dialect, targets).returning(
            targets.c.id, targets.c.task_id, targets.c.url, targets.c.url_key, targets.c.state
        ),
        rows,
    )
    # A hit that another result page listed before is somebody's target already.
    todo: dict[tuple[int, int], list[WorkTarget]] = {}
    for row in sorted(added, key=lambda row: row.id):
        if row.state == "todo":
            key = bytes(row.url_key)
            page = known.get(key)
            whole = page is not None and not page.withheld
            validators = (page.etag, page.last_modified) if page is not None and whole else ()
            target = WorkTarget(row.id, "hit", row.url, key, 0, *validators)
            todo.setdefault(of[row.task_id, key], []).append(target)
    return todo


def _results_are_read(conn: Connection, items: Sequence[ReadResults]) -> None:
    if items:
        read = [item.target.id for item in items]
        later(conn, update(targets).where(targets.c.id.in_(read)).values(state="stored", reason="read"))
    past_end = [target_id for item in items for target_id in item.past_end]
    if past_end:
        later(
            conn,
            update(targets)
            .where(targets.c.id.in_(past_end), targets.c.state == "todo")
            .values(state="refused", reason="past_end"),
        )
    more = [item.lease.attempt_id for item in items if item.more]
    if more:
        later(conn, update(attempts).where(attempts.c.id.in_(more)).values(more=True))


def _note_found(conn: Connection, items: Sequence[ReadResults], owners: Owners) -> None:
    """Record how many hits the searches have, as far as these result pages tell (`tasks.strategies.denominator`)."""
    shown = [
        parts.Shown(owner.part_id, owner.task_id, item.lease.attempt_id, item.page, item.lists)
        for item in items
        if (owner := owners[_owned(item.lease)]).part_id is not None
    ]
    told = parts.note(conn, shown) if shown else {}
    notes = [
        {"attempt": attempt_id, "of_found": known.found, "of_provenance": known.provenance}
        for attempt_id, known in told.items()
        if known.found is not None
    ]
    if notes:
        values: dict[str, Any] = {
            "found": bindparam("of_found"),
            "found_provenance": bindparam("of_provenance"),
        }
        later(conn, update(attempts).where(attempts.c.id == bindparam("attempt")).values(values), notes)


# --- pages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A page to be stored for a lease."""

    lease: Lease
    page: NewPage


def save_pages(conn: Connection, now: datetime, items: Sequence[SavedPage]) -> list[bool]:
    """Store pages with their reviews, and their targets as stored; False where a page was stored already.

    A page whose lease is over is stored all the same and marked late. A page that was stored already and is asked
    again gets what is new in it.
    """
    locked = _subtasks(conn, [item.lease for item in items])
    late = [locked[item.lease.subtask_id].lease_token != item.lease.token for item in items]
    sets = page_links.keyword_sets(conn, {i.lease.subtask_id for i in items if i.page.said is not None})
    links = [
        page_links.judged(
            0,
            locked[i.lease.subtask_id].product_id,
            sets.get(i.lease.subtask_id, ()),
            i.page.said,
            len(i.page.reviews),
        )
        for i in items
    ]
    ids = _insert_pages(conn, now, items, late, locked, links)
    # Two leases of one subtask may meet here: the later page has the last word on its target.
    for is_late, of in groupby(zip(items, late, strict=True), key=itemgetter(1)):
        later(
            conn,
            update(targets)
            .where(targets.c.id.in_([item.page.target_id for item, _ in of]))
            .values(state="stored", reason="late" if is_late else None, tries=targets.c.tries + 1),
        )
    fresh: list[tuple[SavedPage, Link]] = []
    again: list[tuple[SavedPage, Link]] = []
    new: list[bool] = []
    for item, link in zip(items, links, strict=True):
        page_id = ids.pop(item.page.key, None)  # the first of two equal pages of a grain is the one
        new.append(page_id is not None)
        if page_id is None:
            again.append((item, link))
        else:
            fresh.append((item, replace(link, page_id=page_id)))
    page_links.add(conn, now, [link for _, link in fresh])
    page_links.refusals(conn, {link.page_id: item.page.refused for item, link in fresh if item.page.refused})
    review_writes.save(
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
        later(conn, update(attempts).where(attempts.c.id == attempt_id).values(late=attempts.c.late + 1))
    return new


_PAGE_COLUMNS = (
    "url",
    "url_key",
    "site",
    "title",
    "content_hash",
    "encoding",
    "bytes",
    "reviews",
    "fetched_at",
    "node",
    "attempt_id",
    "late",
    "etag",
    "last_modified",
    "withheld",
)


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
        dict(
            zip(
                _PAGE_COLUMNS,
                (
                    i.page.url,
                    i.page.key,
                    locked[i.lease.subtask_id].site,
                    i.page.title,
                    i.page.content_hash,
                    i.page.encoding,
                    i.page.size,
                    len(i.page.reviews) - link.refused,
                    now,
                    i.lease.node,
                    i.lease.attempt_id,
                    is_late,
                    i.page.etag,
                    i.page.last_modified,
                    link.refused,
                ),
                strict=True,
            )
        )
        for i, is_late, link in zip(items, late, links, strict=True)
    ]
    added = conn.execute(insert_new(conn.dialect, pages).returning(pages.c.url_key, pages.c.id), rows)
    return {bytes(key): page_id for key, page_id in added}


def _save_again(
    conn: Connection, now: datetime, items: Sequence[tuple[SavedPage, Link]], locked: Mapping[int, _Row]
) -> None:
    """Pages that are stored already: link them, and store what is new in them.

    The reviews of a page that no product had so far come with the first one that it names.
    """
    known = {bytes(row.url_key): row for row in _known(conn, {item.page.key for item, _ in items})}
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
            added = review_writes.save_new(
                conn,
                now,
                (item.lease, stored.id, page.url, locked[item.lease.subtask_id].site, page.reviews),
            )
        if changed:
            refused[stored.id] = page.refused
        later(
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
    page_links.refusals(conn, refused, again=True)


# --- targets without a page ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EndedTarget:
    """A target that gave no page, for a lease.

    Attributes:
        unchanged: key of a known page that was asked again and has not changed.
        judge: as in `ReadResults`.
    """

    lease: Lease
    end: TargetEnd
    unchanged: bytes | None = None
    judge: bool = False


def end_targets(conn: Connection, now: datetime, items: Sequence[EndedTarget]) -> list[None]:
    """Record targets that gave no page; nothing happens where the lease is over (the try was cut off)."""
    owners = _owners(conn, [item.lease for item in items])
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: dict[tuple[bytes, int], EndedTarget] = {}
    for item in items:
        if (owner := owners.get(_owned(item.lease))) is not None:
            end = item.end
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if item.unchanged is not None:
                unchanged.setdefault((item.unchanged, owner.product_id), item)
    for (state, reason, counts), ids in groups.items():
        later(
            conn,
            update(targets)
            .where(targets.c.id.in_(ids), targets.c.state == "todo")
            .values(state=state, reason=reason, tries=targets.c.tries + (1 if counts else 0)),
        )
    if unchanged:
        _are_unchanged(conn, now, unchanged)
    return [None] * len(items)


def _are_unchanged(conn: Connection, now: datetime, asked: Mapping[tuple[bytes, int], EndedTarget]) -> None:
    """Known pages, each asked again for a product: it may be the first time for that one."""
    known = {bytes(row.url_key): row.id for row in _known(conn, {key for key, _ in asked})}
    of = {(known[key], product_id): item for (key, product_id), item in asked.items()}
    new = {pair: of[pair] for pair in page_links.unlinked(conn, of)}
    sets = page_links.keyword_sets(conn, {item.lease.subtask_id for item in new.values() if item.judge})
    page_links.link_known(
        conn, now, {pair: sets[item.lease.subtask_id] if item.judge else None for pair, item in new.items()}
    )
    later(conn, update(pages).where(pages.c.id.in_(list(known.values()))).values(checked_at=now))


RESULTS: Grain[ReadResults, Hits | None] = Grain(2, save_result_pages)
PAGES: Grain[SavedPage, bool] = Grain(3, save_pages)
ENDS: Grain[EndedTarget, None] = Grain(4, end_targets)


# --- shared -------------------------------------------------------------------------------------------------


def _owned(lease: Lease) -> tuple[int, str]:
    return lease.subtask_id, lease.token


def _owners(conn: Connection, leases: Iterable[Lease]) -> Owners:
    """Lock the subtasks of these leases; those that are in force."""
    tokens: dict[int, set[str]] = {}
    for lease in leases:
        tokens.setdefault(lease.subtask_id, set()).add(lease.token)
    return transitions.in_force(conn, tokens, subtasks.c.task_id, subtasks.c.product_id, subtasks.c.part_id)


def _subtasks(conn: Connection, leases: Iterable[Lease]) -> dict[int, _Row]:
    """Lock the subtasks of these leases, in force or not."""
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.product_id, subtasks.c.site, subtasks.c.lease_token)
        .where(subtasks.c.id.in_({lease.subtask_id for lease in leases}))
        .order_by(subtasks.c.id)
        .with_for_update()
    )
    return {row.id: row for row in rows}


def _known(conn: Connection, keys: Collection[bytes]) -> Sequence[_Row]:
    if not keys:
        return ()
    return conn.execute(
        select(
            pages.c.url_key,
            pages.c.id,
            pages.c.content_hash,
            func.coalesce(pages.c.checked_at, pages.c.fetched_at, type_=pages.c.fetched_at.type).label(
                "checked_at"
            ),
            pages.c.etag,
            pages.c.last_modified,
            pages.c.reviews,
            pages.c.withheld,
        ).where(pages.c.url_key.in_(keys))
    ).all()
