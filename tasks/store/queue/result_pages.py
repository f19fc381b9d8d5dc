"""Result pages that were read: their hit counts, their hits as targets, and the known pages among their hits.

A known page is linked to the product (`tasks.store.content.pages`) and is not fetched, unless its site wants it
fetched again after a while or its texts were deleted.

A batch of result pages of any size takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from tasks.domain.hit_count import EngineLimits, hit_count
from tasks.domain.pages import ResultPage
from tasks.domain.verdicts import Verdict
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.queue.partitions import partitions_of_tasks, recount
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
    """

    lease: Lease
    target: WorkTarget
    page: ResultPage
    hits: Sequence[FoundHit]
    past_end: Sequence[int] = ()
    more: bool = False
    refresh: timedelta | None = None
    limits: EngineLimits = field(default_factory=EngineLimits)


@dataclass(frozen=True, slots=True)
class StoredHits:
    """The outcome for a result page's hits.

    Attributes:
        todo: new targets of this subtask, to be fetched; not hits that were listed before.
        known: keys of hits that were stored already: linked to the product, nothing to fetch.
    """

    todo: tuple[WorkTarget, ...]
    known: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class KnownPage:
    """A page that is stored.

    Attributes:
        checked_at: when it was asked for last.
        etag, last_modified: as answered then.
        content_hash: empty if its texts were deleted: it is read again if it is found for another product.
        linked_to: the products it is linked to, of those asked about.
    """

    id: int
    content_hash: str
    checked_at: datetime
    etag: str | None
    last_modified: str | None
    linked_to: frozenset[int]

    def time_of(self, now: datetime) -> datetime:
        """Return the time at which a transaction of `now` changes this page: never before its last request."""
        return max(now, self.checked_at)

    def is_unread(self, product_id: int) -> bool:
        """Return True if its texts were deleted and it is new to the product."""
        return not self.content_hash and product_id not in self.linked_to


class _Known(NamedTuple):
    """A known page with one of the products that it is linked to."""

    url_key: bytes
    id: int
    content_hash: str
    checked_at: datetime
    etag: str | None
    last_modified: str | None
    product_id: int | None


def find_pages(
    tx: Transaction, keys: Collection[bytes], product_ids: Collection[int] = ()
) -> dict[bytes, KnownPage]:
    """Return the pages that are stored, by key.

    Args:
        product_ids: products to check for links to the pages.
    """
    linked_to: dict[int, set[int]] = defaultdict(set)
    rows = tx.records(_Known, _KNOWN, keys=keys, products=product_ids) if keys else []
    for row in rows:
        if row.product_id is not None:
            linked_to[row.id].add(row.product_id)
    return {
        bytes(key): KnownPage(number, digest, checked_at, etag, last_modified, frozenset(linked_to[number]))
        for key, number, digest, checked_at, etag, last_modified, _ in rows
    }


_KNOWN = f"""
    SELECT p.url_key, p.id, p.content_hash, coalesce(p.checked_at, p.fetched_at) AS checked_at, p.etag,
        p.last_modified, l.product_id
    FROM pages p LEFT JOIN page_products l ON l.page_id = p.id AND l.product_id IN :products
        AND l.verdict <> '{Verdict.REMOVED}'
    WHERE p.url_key IN :keys
"""


_Source = tuple[int, int]
"""A result page: its subtask, and its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leased:
    """The subtask of a lease in force, with one of its unread result pages."""

    id: int
    token: str
    task_id: int
    product_id: int
    part_id: int
    engine: str
    unread: int | None


_Leases = Mapping[str, _Leased]
_LEASED = """
    SELECT s.id, s.lease_token AS token, s.task_id, s.product_id, s.part_id, t.engine, u.id AS unread
    FROM subtasks s JOIN tasks t ON t.id = s.task_id
    LEFT JOIN targets u ON u.subtask_id = s.id AND u.kind = 'result' AND u.state = 'todo'
    WHERE s.id IN :ids ORDER BY s.id FOR UPDATE OF s
"""


def save_result_pages(
    tx: Transaction, items: Sequence[ResultPageToStore]
) -> tuple[list[StoredHits | None], Collection[tuple[KnownPage, int]]]:
    """Store the hit counts and hits of result pages, and that these pages were read.

    If a lease is over, nothing is stored for it and its hits are `None`: the subtask may be done, and another attempt
    reads the page again. A page that was read before is not counted again, because a COMMIT whose answer was lost is
    done twice.

    Returns:
        The hits of each result page, and the known pages with the products to link them to, which
        `tasks.store.content.pages` does.
    """
    of = {item.lease.token: item.lease.subtask_id for item in items}
    locked = tx.records(_Leased, _LEASED, ids=set(of.values()))
    leases = {one.token: one for one in locked if of.get(one.token) == one.id}
    unread = {one.unread for one in locked}
    valid = [item for item in items if item.lease.token in leases]
    asked = {hit.key for item in valid for hit in item.hits if not hit.new}
    known = find_pages(tx, asked, {subtask.product_id for subtask in leases.values()})
    made, todo = _insert_hits(tx, valid, leases, known)
    _mark_read(tx, valid)
    _count_hits(tx, valid, leases, made, unread)
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
    items: Sequence[ResultPageToStore], leases: _Leases, known: Mapping[bytes, KnownPage]
) -> Collection[tuple[KnownPage, int]]:
    """Return the known pages that the items' products are not linked to, without those that are fetched again."""
    to_link: dict[tuple[KnownPage, int], None] = {}
    for item in items:
        product_id = leases[item.lease.token].product_id
        for hit in item.hits:
            page = known.get(hit.key)
            if page is not None and page.content_hash and product_id not in page.linked_to:
                to_link[page, product_id] = None
    return to_link


def _insert_hits(
    tx: Transaction,
    items: Sequence[ResultPageToStore],
    leases: _Leases,
    known: Mapping[bytes, KnownPage],
) -> tuple[Counter[_Source], dict[_Source, list[WorkTarget]]]:
    """Insert hits as targets; return how many each result page brought, and those to fetch, in their order."""
    rows = []
    of: dict[tuple[int, bytes], _Source] = {}
    for item in items:
        subtask = leases[item.lease.token]
        for hit in item.hits:
            page = known.get(hit.key)
            again = page is not None and (
                page.is_unread(subtask.product_id)
                or (item.refresh is not None and page.checked_at <= tx.now - item.refresh)
            )
            end = ("todo", None) if page is None or again else ("stored", "known")
            of.setdefault((subtask.task_id, hit.key), (subtask.id, item.target.id))
            rows.append((subtask.task_id, subtask.id, "hit", hit.url, hit.key, *end))
    returning = "id, task_id, url, url_key, state"
    # A hit that another result page listed before is a target already.
    made: Counter[_Source] = Counter()
    todo: dict[_Source, list[WorkTarget]] = {}
    added = tx.insert_returning("targets", _TARGET, rows, returning=returning, skip_known=True)
    for target_id, task_id, url, url_key, state in sorted(added):
        source = of[task_id, key := bytes(url_key)]
        made[source] += 1
        if state == "todo":
            page = known.get(key)
            target = WorkTarget(
                id=target_id,
                kind="hit",
                url=url,
                key=key,
                tries=0,
                etag=page.etag if page is not None else None,
                last_modified=page.last_modified if page is not None else None,
            )
            todo.setdefault(source, []).append(target)
    return made, todo


_TARGET = ("task_id", "subtask_id", "kind", "url", "url_key", "state", "reason")


def _mark_read(tx: Transaction, items: Sequence[ResultPageToStore]) -> None:
    tx.later(_READ, ids=[item.target.id for item in items])
    if past_end := [target_id for item in items for target_id in item.past_end]:
        tx.later(_PAST_END, ids=past_end)
    if more := [item.lease.attempt_id for item in items if item.more]:
        tx.later("UPDATE attempts SET more = true WHERE id IN :ids", ids=more)


_READ = "UPDATE targets SET state = 'stored', reason = 'read' WHERE id IN :ids"
_PAST_END = "UPDATE targets SET state = 'refused', reason = 'past_end' WHERE id IN :ids AND state = 'todo'"


def _count_hits(
    tx: Transaction,
    items: Sequence[ResultPageToStore],
    leases: _Leases,
    made: Counter[_Source],
    unread: set[int | None],
) -> None:
    """Store result pages, and how many hits the searches have, as far as these show (`tasks.domain.hit_count`).

    Args:
        made: how many of its hits each result page listed first.
        unread: targets of result pages that were not read before.
    """
    rows = {row.id: row for row in partitions_of_tasks(tx, {one.task_id for one in leases.values()})}
    changed, found, log = set(), {}, []
    for item in items:
        subtask = leases[item.lease.token]
        row, new_hits = rows[subtask.part_id], made.pop((subtask.id, item.target.id), 0)
        if item.target.id in unread:
            unread.discard(item.target.id)
            keys = b"".join(hit.key[:_KEY_BYTES] for hit in item.hits)
            log.append((subtask.product_id, item.lease.site, subtask.engine, row.id, item.lease.node, keys))
            row = replace(
                row,
                reported=row.reported if item.page.found is None else item.page.found,
                listed=row.listed + len(item.page.hits),
                pages_read=row.pages_read + 1,
                ended=not item.page.more,
            )
        elif not new_hits:
            continue
        hits = hit_count(row.listing, item.limits, row.state)
        rows[row.id] = replace(
            row, new_hits=row.new_hits + new_hits, found=hits.found, provenance=hits.provenance
        )
        changed.add(row.id)
        if hits.found is not None:
            counted = {"found": hits.found, "found_provenance": hits.provenance}
            found[item.lease.attempt_id] = {"id": item.lease.attempt_id, **counted}
    counts = [{name: getattr(rows[part_id], name) for name in _COUNTS} for part_id in sorted(changed)]
    tx.update("task_parts", ("id",), counts)
    recount(tx, rows.values())
    tx.insert("result_pages", _READ_PAGE, log, shared={"at": tx.now})
    tx.update("attempts", ("id",), list(found.values()))


_KEY_BYTES = 8
"""Bytes of the key of a hit that are stored with its result page."""
_READ_PAGE = ("product_id", "site", "engine", "part_id", "node", "hits")
_COUNTS = ("id", "pages_read", "listed", "new_hits", "ended", "reported", "found", "provenance")
