"""Result pages that were read: their hit counts, their hits as targets, and the known pages among their hits.

A known page is linked to the product (`tasks.store.content.known_pages`) and is not fetched, unless its site wants it
fetched again after a while or its reviews were withheld (`tasks.store.content.page_links`).

A batch of result pages of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, and_, bindparam, func, select, update

from tasks.domain.hit_count import EngineLimits
from tasks.domain.pages import ResultPage
from tasks.domain.product_match import Verdict
from tasks.store.queue import partitions
from tasks.store.queue.leases import KEYWORDS, KeywordSets, Lease, WorkTarget, in_force, keyword_sets
from tasks.store.queue.transitions import LOCKED
from tasks.store.sql.database import columns_of
from tasks.store.sql.prepared import Prepared, new_rows
from tasks.store.sql.tables import attempts, page_products, pages, targets
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class FoundHit:
    """A hit of a result page: canonical address and its key.

    Attributes:
        new: it cannot be stored yet, so the database need not be queried (`tasks.worker.seen`).
    """

    url: str
    key: bytes
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPageToStore:
    """A result page as read, ready to be stored.

    Attributes:
        hits: those of `page`, with canonical addresses, each once.
        past_end: targets of result pages behind this one that do not exist, as this is the last.
        more: this is the last result page of its chunk and shows that there is more.
        refresh: a known page that was fetched longer ago is fetched again; None: never.
        limits: how many hits the engine lists.
        judge: known pages are judged when they are linked; False: they are linked as the product's reviews.
    """

    lease: Lease
    target: WorkTarget
    page: ResultPage
    hits: Sequence[FoundHit]
    past_end: Sequence[int] = ()
    more: bool = False
    refresh: timedelta | None = None
    limits: EngineLimits = field(default_factory=EngineLimits)
    judge: bool = False


@dataclass(frozen=True, slots=True)
class StoredHits:
    """The outcome for a result page's hits.

    Attributes:
        todo: new targets of this subtask, to be fetched; not hits that were listed before.
        known: keys of hits that were stored already: linked to the product, nothing to fetch.
    """

    todo: tuple[WorkTarget, ...]
    known: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownPage:
    """A page that is stored.

    Attributes:
        checked_at: when it was asked for last.
        etag, last_modified: as answered then.
        reviews, withheld: how many reviews of it are stored, and how many are kept back.
        linked_to: the products it is linked to, of those asked about.
    """

    id: int
    title: str
    content_hash: str
    checked_at: datetime
    etag: str | None
    last_modified: str | None
    reviews: int
    withheld: int
    linked_to: frozenset[int]

    def time_of(self, now: datetime) -> datetime:
        """Return the time at which a transaction of `now` changes this page: never before its last request."""
        return max(now, self.checked_at)


PagesToLink = Mapping[tuple[KnownPage, int], KeywordSets | None]
"""Known pages and the products to link them to, each with the keyword sets it is judged by; None: it is not judged."""


def known_pages(
    conn: Transaction, keys: Collection[bytes], product_ids: Collection[int] = ()
) -> dict[bytes, KnownPage]:
    """Return the pages that are stored, by key.

    Args:
        product_ids: products to check for links to the pages.
    """
    if not keys:
        return {}
    rows = _WITH_LINKS.rows(conn, {"keys": list(keys), "products": list(product_ids)})
    known: dict[bytes, KnownPage] = {}
    for row in rows:
        columns = row._asdict()
        key, product_id = bytes(columns.pop("url_key")), columns.pop("product_id")
        linked = frozenset([product_id] if product_id is not None else [])
        known[key] = KnownPage(**columns, linked_to=linked | known[key].linked_to if key in known else linked)
    return known


ASKED = func.coalesce(pages.c.checked_at, pages.c.fetched_at, type_=pages.c.fetched_at.type)
"""When a page was requested for the last time."""
_KNOWN = (
    pages.c.url_key,
    *(column for column in columns_of(KnownPage, pages) if column.name != "checked_at"),
    ASKED.label("checked_at"),
)
_LINK = and_(
    page_products.c.page_id == pages.c.id,
    page_products.c.product_id.in_(bindparam("products", expanding=True)),
    page_products.c.verdict != Verdict.REMOVED.value,
)
_WITH_LINKS = Prepared(
    select(*_KNOWN, page_products.c.product_id)
    .select_from(pages.outerjoin(page_products, _LINK))
    .where(pages.c.url_key.in_(bindparam("keys", expanding=True)))
)


_Source = tuple[int, int]
"""A result page: its subtask, and its target."""


class _Searching(NamedTuple):
    """A subtask whose result pages are read.

    Attributes:
        unread: numbers of the result pages that are still to be read, with commas between them.
    """

    id: int
    lease_token: str
    task_id: int
    product_id: int
    part_id: int
    unread: str | None
    words: list[str]
    aliases: list[list[str]]
    own_words: list[str] | None


def _searching(*, sqlite: bool) -> str:
    """Return the text that locks subtasks."""
    numbers = "group_concat(t.id)" if sqlite else "string_agg(CAST(t.id AS text), ',')"
    return f"""
        SELECT id, lease_token, task_id, product_id, part_id, {KEYWORDS}, (
            SELECT {numbers} FROM targets t WHERE t.subtask_id = subtasks.id AND t.kind = 'result' AND t.state = 'todo'
        ) AS unread
        FROM subtasks WHERE {LOCKED}
    """


def save_result_pages(
    conn: Transaction, now: datetime, items: Sequence[ResultPageToStore]
) -> tuple[list[StoredHits | None], PagesToLink]:
    """Store the hit counts and hits of result pages, and that these pages were read.

    If a lease is over, nothing is stored for it and its hits are `None`: the subtask may be done, and another attempt
    reads the page again. A page that was read before is not counted again, because a COMMIT whose answer was lost is
    done twice.

    Returns:
        The hits of each result page, and the known pages to link, which `tasks.store.content.known_pages` does.
    """
    statement = _searching(sqlite=conn.is_sqlite)
    leases = in_force(conn, _Searching, statement, (item.lease for item in items))
    valid = [item for item in items if item.lease.token in leases]
    asked = {hit.key for item in valid for hit in item.hits if not hit.new}
    known = known_pages(conn, asked, {subtask.product_id for subtask in leases.values()})
    made, todo = _new_targets(conn, now, valid, leases, known)
    _results_are_read(conn, valid)
    _count_hits(conn, valid, leases, made)
    stored = [
        _hits(item, todo.get((item.lease.subtask_id, item.target.id), []), known)
        if item.lease.token in leases
        else None
        for item in items
    ]
    return stored, _pages_to_link(valid, leases, known)


def _hits(item: ResultPageToStore, todo: Sequence[WorkTarget], known: Collection[bytes]) -> StoredHits:
    again = {target.key for target in todo}
    return StoredHits(
        tuple(todo), frozenset(h.key for h in item.hits if h.key in known and h.key not in again)
    )


def _pages_to_link(
    items: Sequence[ResultPageToStore], leases: Mapping[str, _Searching], known: Mapping[bytes, KnownPage]
) -> PagesToLink:
    """Return the known pages that the items' products are not linked to, without those that are fetched again."""
    to_link: dict[tuple[KnownPage, int], KeywordSets | None] = {}
    for item in items:
        subtask = leases[item.lease.token]
        sets = keyword_sets(subtask) if item.judge else None
        for hit in item.hits:
            page = known.get(hit.key)
            if page is not None and subtask.product_id not in page.linked_to and not page.withheld:
                to_link.setdefault((page, subtask.product_id), sets)
    return to_link


def _is_unread(page: KnownPage, product_id: int) -> bool:
    """Return True if the page is new to the product and its reviews were withheld."""
    return bool(page.withheld) and product_id not in page.linked_to


def _new_targets(
    conn: Transaction,
    now: datetime,
    items: Sequence[ResultPageToStore],
    leases: Mapping[str, _Searching],
    known: Mapping[bytes, KnownPage],
) -> tuple[Counter[_Source], dict[_Source, list[WorkTarget]]]:
    """Insert hits as targets; how many each result page brought, and those to fetch, in their order."""
    rows: list[dict[str, Any]] = []
    of: dict[tuple[int, bytes], _Source] = {}
    for item in items:
        task_id, product_id = leases[item.lease.token].task_id, leases[item.lease.token].product_id
        for hit in item.hits:
            page = known.get(hit.key)
            again = page is not None and (
                _is_unread(page, product_id)
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
        return Counter(), {}
    added = new_rows(conn, targets, tuple(rows[0]), *_TARGET).rows_of_each(conn, rows)
    # A hit that another result page listed before is a target already.
    made: Counter[_Source] = Counter()
    todo: dict[_Source, list[WorkTarget]] = {}
    for row in sorted(added, key=lambda row: row.id):
        key = bytes(row.url_key)
        source = of[row.task_id, key]
        made[source] += 1
        if row.state == "todo":
            page = known.get(key)
            whole = page if page is not None and not page.withheld else None
            target = WorkTarget(
                id=row.id,
                kind="hit",
                url=row.url,
                key=key,
                tries=0,
                etag=whole.etag if whole is not None else None,
                last_modified=whole.last_modified if whole is not None else None,
            )
            todo.setdefault(source, []).append(target)
    return made, todo


_TARGET = (targets.c.id, targets.c.task_id, targets.c.url, targets.c.url_key, targets.c.state)


def _results_are_read(conn: Transaction, items: Sequence[ResultPageToStore]) -> None:
    if items:
        read = [item.target.id for item in items]
        _ARE_READ.defer(conn, {"ids": read})
    past_end = [target_id for item in items for target_id in item.past_end]
    if past_end:
        _ARE_PAST_END.defer(conn, {"ids": past_end})
    more = [item.lease.attempt_id for item in items if item.more]
    if more:
        _SHOW_MORE.defer(conn, {"ids": more})


_ids = bindparam("ids", expanding=True, type_=BigInteger())
_ARE_READ = Prepared(update(targets).where(targets.c.id.in_(_ids)).values(state="stored", reason="read"))
_ARE_PAST_END = Prepared(
    update(targets)
    .where(targets.c.id.in_(_ids), targets.c.state == "todo")
    .values(state="refused", reason="past_end")
)
_SHOW_MORE = Prepared(update(attempts).where(attempts.c.id.in_(_ids)).values(more=True))


def _count_hits(
    conn: Transaction,
    items: Sequence[ResultPageToStore],
    leases: Mapping[str, _Searching],
    made: Counter[_Source],
) -> None:
    """Record how many hits the searches have, as far as these result pages show (`tasks.domain.hit_count`).

    Args:
        made: how many of its hits each result page listed first.
    """
    unread = {number for subtask in leases.values() for number in (subtask.unread or "").split(",")}
    read = []
    for item in items:
        subtask = leases[item.lease.token]
        source = item.lease.subtask_id, item.target.id
        first = str(item.target.id) in unread
        if subtask.part_id is not None and (first or made[source]):
            one = partitions.ReadPage(
                part_id=subtask.part_id,
                task_id=subtask.task_id,
                attempt_id=item.lease.attempt_id,
                page=item.page,
                limits=item.limits,
                new_hits=made.pop(source, 0),
                first=first,
            )
            read.append(one)
            unread.discard(str(item.target.id))
    counted = partitions.count_hits(conn, read) if read else {}
    found = [
        {"id": attempt_id, "found": known.found, "found_provenance": known.provenance}
        for attempt_id, known in counted.items()
        if known.found is not None
    ]
    conn.update("attempts", ("id",), found)
