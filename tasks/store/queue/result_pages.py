"""Result pages that were read: their hit counts, their hits as targets, and the known pages among their hits.

A known page is linked to the product (`tasks.store.content.pages`) and is not fetched, unless its site wants it
fetched again after a while or its texts were deleted.

A batch of result pages of any size takes the same number of statements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from tasks.domain.hit_count import EngineLimits, hit_count
from tasks.domain.pages import ResultPage
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.queue.tasks import lock_partitions, recount
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


class KnownPage(NamedTuple):
    """A page that is stored.

    Attributes:
        content_hash: empty if its texts were deleted: it is read again if it is found again.
        checked_at: when it was asked for last.
        etag, last_modified: as answered then.
    """

    key: bytes
    id: int
    content_hash: str
    checked_at: datetime
    etag: str | None
    last_modified: str | None


def find_pages(tx: Transaction, keys: Collection[bytes]) -> dict[bytes, KnownPage]:
    """Return the pages that are stored, by key."""
    return {page.key: page for page in tx.records(KnownPage, _KNOWN, keys=keys)} if keys else {}


_KNOWN = """
    SELECT url_key AS key, id, content_hash, coalesce(checked_at, fetched_at) AS checked_at, etag, last_modified
    FROM pages WHERE url_key IN :keys
"""


class _Leased(NamedTuple):
    """The subtask of a lease in force, with one of its unread result pages."""

    id: int
    token: str
    task_id: int
    product_id: int
    part_id: int
    engine: str
    unread: int | None


_LEASED = """
    SELECT s.id, s.lease_token AS token, s.task_id, s.product_id, s.part_id, t.engine, u.id AS unread
    FROM subtasks s JOIN tasks t ON t.id = s.task_id
    LEFT JOIN targets u ON u.subtask_id = s.id AND u.kind = 'result' AND u.state = 'todo'
    WHERE s.id IN :ids AND s.lease_token IN :tokens ORDER BY s.id FOR UPDATE OF s
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
    ids, tokens = [item.lease.subtask_id for item in items], [item.lease.token for item in items]
    locked = tx.records(_Leased, _LEASED, ids=ids, tokens=tokens)
    leases = {one.token: one for one in locked}
    valid = [(item, leases[item.lease.token]) for item in items if item.lease.token in leases]
    if not valid:
        return [None] * len(items), ()
    known = find_pages(tx, {hit.key for item, _ in valid for hit in item.hits if not hit.new})
    new = _insert_hits(tx, valid, known)
    tx.later(_READ, ids=[item.target.id for item, _ in valid])
    if past_end := [target_id for item, _ in valid for target_id in item.past_end]:
        tx.later(_PAST_END, ids=past_end)
    if more := [item.lease.attempt_id for item, _ in valid if item.more]:
        tx.later("UPDATE attempts SET more = true WHERE id IN :ids", ids=more)
    _count_hits(tx, valid, {page: len(its) for page, its in new.items()}, {one.unread for one in locked})
    stored: list[StoredHits | None] = []
    for item in items:
        todo = tuple(target for target, is_todo in new.get(item.target.id, ()) if is_todo)
        hits = {hit.key for hit in item.hits if hit.key in known} - {target.key for target in todo}
        stored.append(StoredHits(todo, frozenset(hits)) if item.lease.token in leases else None)
    found = [(known.get(hit.key), subtask.product_id) for item, subtask in valid for hit in item.hits]
    return stored, {(page, product_id) for page, product_id in found if page and page.content_hash}


_READ = "UPDATE targets SET state = 'stored', reason = 'read' WHERE id IN :ids"
_PAST_END = "UPDATE targets SET state = 'refused', reason = 'past_end' WHERE id IN :ids AND state = 'todo'"


def _insert_hits(
    tx: Transaction, items: Sequence[tuple[ResultPageToStore, _Leased]], known: Mapping[bytes, KnownPage]
) -> dict[int, list[tuple[WorkTarget, bool]]]:
    """Insert hits as targets.

    Returns:
        By the target of a result page, the hits that no other page of its task had listed, in their order, each with
        whether it must be fetched.
    """
    rows = []
    pages: dict[tuple[int, bytes], int] = {}
    for item, subtask in items:
        for hit in item.hits:
            page = known.get(hit.key)
            is_todo = page is None or not page.content_hash
            if page is not None and item.refresh is not None:
                is_todo |= page.checked_at <= tx.now - item.refresh
            end = ("todo", None) if is_todo else ("stored", "known")
            pages.setdefault((subtask.task_id, hit.key), item.target.id)
            rows.append((subtask.task_id, subtask.id, "hit", hit.url, hit.key, *end))
    returning = "id, task_id, url, url_key, state"
    added = tx.insert_returning("targets", _TARGET, rows, returning=returning, skip_known=True)
    new: dict[int, list[tuple[WorkTarget, bool]]] = {}
    for number, task_id, url, url_key, state in sorted(added):
        page = known.get(key := bytes(url_key))
        validators = {} if page is None else {"etag": page.etag, "last_modified": page.last_modified}
        target = WorkTarget(id=number, kind="hit", url=url, key=key, tries=0, **validators)
        new.setdefault(pages[task_id, key], []).append((target, state == "todo"))
    return new


_TARGET = ("task_id", "subtask_id", "kind", "url", "url_key", "state", "reason")


def _count_hits(
    tx: Transaction,
    items: Sequence[tuple[ResultPageToStore, _Leased]],
    made: dict[int, int],
    unread: set[int | None],
) -> None:
    """Store result pages, and how many hits the searches have, as far as these show (`tasks.domain.hit_count`).

    Args:
        made: how many of its hits each result page listed first.
        unread: targets of result pages that were not read before.
    """
    partitions = lock_partitions(tx, {subtask.task_id for _, subtask in items})
    changed, found, log = set(), {}, []
    for item, subtask in items:
        lease, one = item.lease, partitions[subtask.part_id]
        if item.target.id in unread:
            unread.discard(item.target.id)
            keys = b"".join(hit.key[:_KEY_BYTES] for hit in item.hits)
            log.append((subtask.product_id, lease.site, subtask.engine, one.id, lease.node, keys))
            one = replace(
                one,
                reported=one.reported if item.page.found is None else item.page.found,
                listed=one.listed + len(item.page.hits),
                pages_read=one.pages_read + 1,
                ended=not item.page.more,
            )
        hits, n = hit_count(one, item.limits), one.new_hits + made.pop(item.target.id, 0)
        partitions[one.id] = replace(one, new_hits=n, found=hits.found, provenance=hits.provenance)
        changed.add(one.id)
        if hits.found is not None:
            counted = {"found": hits.found, "found_provenance": hits.provenance}
            found[lease.attempt_id] = {"id": lease.attempt_id, **counted}
    counts = [{name: getattr(partitions[number], name) for name in _COUNTS} for number in sorted(changed)]
    tx.update("task_parts", ("id",), counts)
    recount(tx, partitions.values())
    tx.insert("result_pages", _READ_PAGE, log, shared={"at": tx.now})
    tx.update("attempts", ("id",), list(found.values()))


_KEY_BYTES = 8
"""Bytes of the key of a hit that are stored with its result page."""
_READ_PAGE = ("product_id", "site", "engine", "part_id", "node", "hits")
_COUNTS = ("id", "pages_read", "listed", "new_hits", "ended", "reported", "found", "provenance")
