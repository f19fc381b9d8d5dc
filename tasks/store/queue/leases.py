"""Leases: granted, begun, renewed by progress. `tasks.store.queue.attempts` ends them.

The lease is in the subtask's row (token, node, deadline); the attempt's row is the node-run control.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tasks.domain.attempt_end import Counters
from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.states import State, Transition
from tasks.store.queue import transitions
from tasks.store.queue.hosts import close_breakers
from tasks.store.queue.transitions import LockedSubtask, Move
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

HITS_UNREAD = 10
"""Hits a result page counts for until it is read."""

KeywordSets = Sequence[Sequence[str]]

LEAST_WORDS = 2
"""Minimum number of words in a query that shows the subject of a page by itself."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A decision of allocation and modification, to be carried out.

    Attributes:
        detail: the data behind the decision, for `explain`.
        floor: when the attempt ends early.
        entry: hash of the site's entry that was decided by.
    """

    subtask_id: int
    node: str
    quota: int
    budget_s: float
    detail: Mapping[str, Any]
    floor: PageFloor = NO_FLOOR
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its node needs it to start an attempt; the content of a notification.

    Attributes:
        entry: hash of its site's entry in the scheduler's catalog (`splitter.catalog.entries`); empty: any.
    """

    attempt_id: int
    subtask_id: int
    token: str
    node: str
    site: str
    quota: int
    budget_s: float
    least_share: float = 0.0
    slack: float = 0.0
    entry: str = ""

    @property
    def floor(self) -> PageFloor:
        """When the attempt ends early."""
        return PageFloor(self.least_share, self.slack)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTarget:
    """A target still to do.

    Attributes:
        url, key: its canonical address, and the key of a page at this address.
        etag, last_modified: validators of a stored page that must be fetched again.
    """

    id: int
    kind: str
    url: str
    key: bytes
    tries: int
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target(WorkTarget):
    subtask_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of a started attempt.

    Attributes:
        token: of its lease.
        words, aliases: keyword sets of its product: its own, and those of its other names.
        own_words: keyword set of its query, if that has one of its own.
        category: of its product; `None`: unknown.
    """

    token: str
    subtask_id: int
    words: list[str]
    aliases: list[list[str]]
    own_words: list[str] | None
    category: str | None = None
    targets: Sequence[WorkTarget] = ()

    @property
    def keyword_sets(self) -> KeywordSets:
        """A page must match one of these sets.

        A query that was relaxed to a single word is left out: one word does not name a product.
        """
        own = self.own_words
        return [self.words, *self.aliases, *([own] if own and len(own) >= LEAST_WORDS else [])]


def lock_leased(
    tx: Transaction, leases: Collection[Lease], *, skip_locked: bool = False
) -> dict[Lease, LockedSubtask]:
    """Lock the subtasks of leases; return the leases that are in force, each with its subtask.

    Args:
        skip_locked: pass over those that another transaction has locked.
    """
    locked = transitions.lock(tx, {lease.subtask_id for lease in leases}, skip_locked=skip_locked)
    rows = {row.lease_token: row for row in locked}
    return {lease: rows[lease.token] for lease in leases if lease.token in rows}


_LEASE = ("subtask_id", "token", "node", "site", "quota", "budget_s", "least_share", "slack", "entry")
"""Columns of an attempt that its lease has, in the order of `Lease`, without its id."""


def grant(tx: Transaction, grants: Iterable[Grant], start_within: timedelta) -> list[Lease]:
    """Give subtasks in WAIT to nodes; those that have left WAIT meanwhile are passed over."""
    wanted = {one.subtask_id: one for one in grants}
    locked = transitions.lock(tx, wanted, skip_locked=True)
    waiting = {row.id: row for row in locked if row.state is State.WAIT}
    opened = []
    for one in wanted.values():
        if row := waiting.get(one.subtask_id):
            limits = (one.quota, one.budget_s, one.floor.least_share, one.floor.slack, one.entry)
            of = (row.product_id, row.round, row.attempts + 1)
            opened.append((row.id, uuid.uuid4().hex, one.node, row.site, *limits, *of))
    columns, returned = (*_LEASE, "product_id", "round", "no"), ", ".join(("id", *_LEASE))
    shared = {"allocated_at": tx.now, "errors": {}}
    made = tx.insert_returning("attempts", columns, opened, returning=returned, shared=shared)
    leases = sorted((Lease(*row) for row in made), key=lambda lease: lease.attempt_id)
    moves = []
    for lease in leases:
        values = {"attempts": waiting[lease.subtask_id].attempts + 1, **transitions.NO_WAIT}
        number, detail = lease.subtask_id, wanted[lease.subtask_id].detail
        moves.append(Move(number, values, lease.token, lease.attempt_id, lease.node, detail=detail))
    transitions.move(tx, Transition.ALLOCATE, moves, until=tx.now + start_within)
    return leases


@dataclass(frozen=True, slots=True)
class Renewal:
    """A lease to begin, or to keep by a sign of life, for `keep` from now on.

    Attributes:
        counters: the attempt's work so far; None at its start.
        page_hosts: hosts that gave a page of it since the last renewal that reported any.
    """

    lease: Lease
    keep: timedelta
    counters: Counters | None = None
    page_hosts: frozenset[str] = frozenset()


def start_many(tx: Transaction, items: Sequence[Renewal]) -> list[Work | None]:
    """Begin granted attempts; `None` for a lease that is over, or has begun already (a doubled notification)."""
    begun = {work.token: work for work in tx.records(Work, _BEGIN, **_renewal(tx, items))}
    if not begun:
        return [None] * len(items)
    attempts = [item.lease.attempt_id for item in items if item.lease.token in begun]
    tx.later(_STARTED, ids=attempts, now=tx.now)
    todo: dict[int, list[WorkTarget]] = {}
    for target in tx.records(_Target, _TODO, ids=[work.subtask_id for work in begun.values()]):
        todo.setdefault(target.subtask_id, []).append(target)
    works = {token: replace(work, targets=todo.get(work.subtask_id, ())) for token, work in begun.items()}
    # If a notification came twice within the batch, the first one gets the work.
    return [works.pop(item.lease.token, None) for item in items]


_STARTED = "UPDATE attempts SET started_at = :now, progress_at = :now WHERE id IN :ids"
# With the validators of pages that are known.
_TODO = """
    SELECT t.subtask_id, t.id, t.kind, t.url, t.url_key AS key, t.tries, p.etag, p.last_modified
    FROM targets t LEFT JOIN pages p ON p.url_key = t.url_key AND t.kind = 'hit'
    WHERE t.subtask_id IN :ids AND t.state = 'todo' ORDER BY t.id
"""


def progress_many(tx: Transaction, items: Sequence[Renewal]) -> list[bool]:
    """Record signs of life, of an attempt the last one; False if the lease is over: the attempt must stop.

    A renewal that comes after the deadline counts unless the lease was taken back: the database may have been away
    meanwhile. A lease is begun before its deadline only.
    """
    kept = {token for (token,) in tx.rows(_KEEP, **_renewal(tx, items))}
    renewed = [i for i in items if i.lease.token in kept]
    told = {i.lease.attempt_id: i.counters.columns() for i in renewed if i.counters is not None}
    rows = [{"id": attempt_id, **counters} for attempt_id, counters in told.items()]
    tx.update("attempts", ("id",), rows, shared={"progress_at": tx.now})
    close_breakers(tx, {(host, i.lease.node) for i in renewed for host in i.page_hosts})
    return [i.lease.token in kept for i in items]


def _renewal(tx: Transaction, items: Sequence[Renewal]) -> dict[str, Any]:
    """Return the values of `_BEGIN` and `_KEEP`. All leases of a process are kept for the same time."""
    return {
        "ids": [item.lease.subtask_id for item in items],
        "tokens": [item.lease.token for item in items],
        "now": tx.now,
        "deadline": tx.now + max(item.keep for item in items),
    }


_IN_FORCE = f"""
    UPDATE subtasks SET lease_deadline = :deadline, lease_started = true
    WHERE id IN :ids AND lease_token IN :tokens AND state = '{State.CRAWL}'
"""
_KEEP = f"{_IN_FORCE} AND lease_started RETURNING lease_token"
_VIRTUAL_TASK = "FROM virtual_tasks v JOIN tasks t ON t.virtual_task_id = v.id WHERE t.id = subtasks.task_id"
_BEGIN = f"""
    {_IN_FORCE} AND NOT lease_started AND lease_deadline > :now
    RETURNING lease_token AS token, id AS subtask_id,
        (SELECT v.keywords {_VIRTUAL_TASK}) AS words, (SELECT v.aliases {_VIRTUAL_TASK}) AS aliases,
        (SELECT p.keywords FROM task_parts p WHERE p.id = subtasks.part_id) AS own_words,
        (SELECT p.category FROM products p WHERE p.id = (SELECT v.product_id {_VIRTUAL_TASK})) AS category
"""

BEGIN_LEASES: BatchOperation[Renewal, Work | None] = BatchOperation(1, start_many)
RENEW_LEASES: BatchOperation[Renewal, bool] = BatchOperation(5, progress_many)


def list_overdue(tx: Transaction, limit: int) -> list[tuple[Lease, bool]]:
    """Return leases that have run out (deadline <= now), each with whether its attempt had begun."""
    rows = tx.rows(_OVERDUE, now=tx.now, limit=limit)
    return [(Lease(*lease), bool(has_begun)) for has_begun, *lease in rows]


def list_unstarted(tx: Transaction, node: str | None) -> list[Lease]:
    """Return the leases that a node has not begun; `None`: those of nodes that stopped in order and are not back."""
    return [Lease(*lease) for _, *lease in tx.rows(_UNSTARTED, node=node)]


_OPEN = f"""
    SELECT s.lease_started, a.id, {", ".join(f"a.{name}" for name in _LEASE)}
    FROM subtasks s JOIN attempts a ON a.id = s.attempt_id WHERE s.state = '{State.CRAWL}'
"""
_OVERDUE = f"{_OPEN} AND s.lease_deadline <= :now ORDER BY s.id LIMIT :limit"
_STOPPED = "CAST(:node AS text) IS NULL AND s.lease_node IN (SELECT name FROM nodes WHERE seen_at IS NULL)"
_UNSTARTED = f"{_OPEN} AND NOT s.lease_started AND (s.lease_node = :node OR {_STOPPED}) ORDER BY s.id"
