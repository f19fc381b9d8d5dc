"""Leases: granted, begun, renewed by progress. `tasks.store.queue.closing` ends them.

The lease is in the subtask's row (token, node, deadline); the attempt's row is the node-run control.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, bindparam, select, update

from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.states import State, Transition
from tasks.store.queue import transitions
from tasks.store.queue.hosts import recovered
from tasks.store.queue.transitions import Move
from tasks.store.sql.database import columns_of
from tasks.store.sql.prepared import Prepared
from tasks.store.sql.tables import (
    UtcDateTime,
    attempts,
    nodes,
    pages,
    subtasks,
    targets,
    task_parts,
    tasks,
    virtual_tasks,
)
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

HITS_UNREAD = 10
"""Hits a result page counts for until it is read."""

KeywordSets = Sequence[Sequence[str]]

LEAST_WORDS = 2
"""Minimum number of words with which a query alone shows the subject of a page."""

_WORDS = virtual_tasks.join(tasks, tasks.c.virtual_task_id == virtual_tasks.c.id)
_OF_SUBTASK = tasks.c.id == subtasks.c.task_id
KEYWORDS = (
    select(virtual_tasks.c.keywords).select_from(_WORDS).where(_OF_SUBTASK).scalar_subquery().label("words"),
    select(virtual_tasks.c.aliases).select_from(_WORDS).where(_OF_SUBTASK).scalar_subquery().label("aliases"),
    select(task_parts.c.keywords)
    .where(task_parts.c.id == subtasks.c.part_id)
    .scalar_subquery()
    .label("own_words"),
)
"""Columns of a query of `subtasks` that `keyword_sets` reads: with the lock, not in a round trip of their own."""


def keyword_sets(subtask: Row[Any]) -> KeywordSets:
    """Return the keyword sets of a subtask: its product's, the aliases' and its own. A page must match one of them.

    A query that was relaxed to a single word is left out: a word alone names nothing.

    Args:
        subtask: a row with the columns `KEYWORDS`.
    """
    own = subtask.own_words
    return [subtask.words, *subtask.aliases, *([own] if own and len(own) >= LEAST_WORDS else [])]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease as its node needs it to start an attempt; the content of a notification (`as_message`).

    Attributes:
        entry: hash of its site's entry in the scheduler's catalog (`splitter.catalog.entries`); empty: any.
    """

    subtask_id: int
    attempt_id: int
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

    def as_message(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTarget:
    """A target still to do.

    Attributes:
        url, key: its canonical address, and the key of a page at this address.
        etag, last_modified: validators of a page that is stored and is to be fetched again.
    """

    id: int
    kind: str
    url: str
    key: bytes
    tries: int
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a started attempt.

    Attributes:
        keyword_sets: a page is about the product if it matches one of them.
    """

    product_id: int
    task_id: int
    chunk: int
    targets: tuple[WorkTarget, ...]
    keyword_sets: KeywordSets


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """An attempt's work so far: sums, in hits, seconds and bytes.

    Attributes:
        errors: requests that gave no page, by error class.
        statuses: requests by HTTP status, or by error where there was none.
    """

    offered: int = 0
    tried: int = 0
    collected: int = 0
    known: int = 0
    requests: int = 0
    bytes: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)

    def columns(self) -> dict[str, Any]:
        """As columns of the attempt's row."""
        rounded = {"active_s": round(self.active_s, 6), "wait_s": round(self.wait_s, 6)}
        return asdict(self) | rounded


def in_force(
    conn: Transaction, leases: Iterable[Lease], *columns: ColumnElement[Any], skip_locked: bool = False
) -> dict[str, Any]:
    """Lock the subtasks of these leases and find out which are in force.

    Args:
        columns: of `subtasks`, wanted besides ``id`` and ``lease_token``.
        skip_locked: pass over those that another transaction has locked (`transitions.locked`).

    Returns:
        The subtasks' rows of the leases in force, by token.
    """
    of = {lease.token: lease.subtask_id for lease in leases}
    rows = transitions.locked(
        conn, set(of.values()), subtasks.c.lease_token, *columns, skip_locked=skip_locked
    )
    return {row.lease_token: row for row in rows.values() if of.get(row.lease_token) == row.id}


def grant(conn: Transaction, now: datetime, grants: Iterable[Grant], start_within: timedelta) -> list[Lease]:
    """Give subtasks in WAIT to nodes; those that have left WAIT meanwhile are passed over."""
    wanted = {one.subtask_id: one for one in grants}
    columns = (subtasks.c.site, subtasks.c.product_id, subtasks.c.round, subtasks.c.attempts)
    rows = transitions.locked(conn, wanted, *columns, state=State.WAIT, skip_locked=True)
    given = [(one, rows[one.subtask_id]) for one in wanted.values() if one.subtask_id in rows]
    if not given:
        return []
    tokens = {one.subtask_id: uuid.uuid4().hex for one, _ in given}
    attempt_ids = _open_attempts(conn, now, given, tokens)
    leases, moves = [], []
    for one, row in given:
        token, attempt_id = tokens[one.subtask_id], attempt_ids[one.subtask_id]
        leases.append(
            Lease(
                subtask_id=one.subtask_id,
                attempt_id=attempt_id,
                token=token,
                node=one.node,
                site=row.site,
                quota=one.quota,
                budget_s=one.budget_s,
                least_share=one.floor.least_share,
                slack=one.floor.slack,
                entry=one.entry,
            )
        )
        values = {
            "lease_token": token,
            "lease_node": one.node,
            "lease_deadline": now + start_within,
            "attempt_id": attempt_id,
            "attempts": row.attempts + 1,
            "waits_for": None,
        }
        event = transitions.EventData(token, attempt_id, one.node, detail=one.detail)
        moves.append(Move(one.subtask_id, event, values))
    transitions.move_many(conn, now, Transition.ALLOCATE, moves)
    return leases


_OPENED = (
    "subtask_id",
    "product_id",
    "no",
    "round",
    "site",
    "node",
    "token",
    "quota",
    "budget_s",
    "least_share",
    "slack",
    "entry",
)


def _open_attempts(
    conn: Transaction, now: datetime, given: Sequence[tuple[Grant, Row[Any]]], tokens: Mapping[int, str]
) -> dict[int, int]:
    """Insert the attempts of grants; their ids by subtask."""
    opened = []
    for one, row in given:
        of = (one.subtask_id, row.product_id, row.attempts + 1, row.round, row.site)
        limits = (one.quota, one.budget_s, one.floor.least_share, one.floor.slack, one.entry)
        opened.append((*of, one.node, tokens[one.subtask_id], *limits))
    same = {"allocated_at": now, "errors": {}}
    return dict(conn.inserted("attempts", _OPENED, opened, returning="subtask_id, id", shared=same))


@dataclass(frozen=True, slots=True)
class Renewal:
    """A lease to begin, or to keep by a sign of life, for `keep` from now on.

    Attributes:
        counters: what the attempt has done so far; None at its start.
        page_hosts: hosts that gave a page of it since the last renewal that said so.
    """

    lease: Lease
    keep: timedelta
    counters: Counters | None = None
    page_hosts: frozenset[str] = frozenset()


def start_many(conn: Transaction, now: datetime, items: Sequence[Renewal]) -> list[Work | None]:
    """Begin granted attempts; None for a lease that is over, or has begun already (a doubled notification)."""
    begun = _renewed(conn, now, items, start=True)
    mine = {item.lease.subtask_id: item.lease for item in items if item.lease.token in begun}
    if not mine:
        return [None] * len(items)
    started = [lease.attempt_id for lease in mine.values()]
    _STARTED.defer(conn, {"ids": started, "now": now})
    rows = _BEGUN.rows(conn, {"ids": list(mine)})
    todo = _to_do(conn, mine)
    works = {
        row.id: Work(row.product_id, row.task_id, row.chunk, tuple(todo.get(row.id, ())), keyword_sets(row))
        for row in rows
    }
    # Of a notification that came twice within the batch, the first one.
    return [works.pop(i.lease.subtask_id, None) if i.lease.token in begun else None for i in items]


_ids = bindparam("ids", expanding=True, type_=BigInteger())
_now = bindparam("now", type_=UtcDateTime())
_STARTED = Prepared(update(attempts).where(attempts.c.id.in_(_ids)).values(started_at=_now, progress_at=_now))
_BEGUN = Prepared(
    select(subtasks.c.id, subtasks.c.product_id, subtasks.c.task_id, subtasks.c.chunk, *KEYWORDS).where(
        subtasks.c.id.in_(_ids)
    )
)


def _to_do(conn: Transaction, of: Collection[int]) -> dict[int, list[WorkTarget]]:
    """Targets to do, in their order, by subtask; with the validators of pages that are known."""
    found: dict[int, list[WorkTarget]] = {}
    for row in _TO_DO.rows(conn, {"ids": list(of)}):
        columns = row._asdict()
        found.setdefault(columns.pop("subtask_id"), []).append(WorkTarget(**columns))
    return found


_TO_DO = Prepared(
    select(targets.c.subtask_id, targets.c.url_key.label("key"), *columns_of(WorkTarget, targets, pages))
    # A page whose reviews were withheld is wanted whole, not "unchanged".
    .outerjoin(
        pages,
        (pages.c.url_key == targets.c.url_key) & (targets.c.kind == "hit") & (pages.c.withheld == 0),
    )
    .where(targets.c.subtask_id.in_(_ids), targets.c.state == "todo")
    .order_by(targets.c.id)
)


def progress_many(conn: Transaction, now: datetime, items: Sequence[Renewal]) -> list[bool]:
    """Record signs of life; False where the lease is over: the attempt must stop."""
    kept = _renewed(conn, now, items, start=False)
    renewed = [i for i in items if i.lease.token in kept]
    rows = [{"id": i.lease.attempt_id, **i.counters.columns()} for i in renewed if i.counters is not None]
    conn.update("attempts", ("id",), rows, shared={"progress_at": now})
    recovered(conn, now, {(host, i.lease.node) for i in renewed for host in i.page_hosts})
    return [i.lease.token in kept for i in items]


def _renewed(conn: Transaction, now: datetime, items: Sequence[Renewal], *, start: bool) -> set[str]:
    by_time: dict[timedelta, dict[str, int]] = {}
    for item in items:
        by_time.setdefault(item.keep, {})[item.lease.token] = item.lease.subtask_id
    kept: set[str] = set()
    for keep, tokens in by_time.items():
        kept |= transitions.renew(conn, tokens, now, now + keep, start=start)
    return kept


BEGIN_LEASES: BatchOperation[Renewal, Work | None] = BatchOperation(1, start_many)
RENEW_LEASES: BatchOperation[Renewal, bool] = BatchOperation(5, progress_many)


def _open_leases(
    conn: Transaction, statement: Prepared, given: Mapping[str, Any]
) -> list[tuple[Lease, bool]]:
    """Leases of subtasks in CRAWL, in the order of their subtasks, each with whether its attempt has begun."""
    read = [row._asdict() for row in statement.rows(conn, given)]
    started = [bool(columns.pop("lease_started")) for columns in read]
    return [(Lease(**columns), begun) for columns, begun in zip(read, started, strict=True)]


def overdue(conn: Transaction, now: datetime, limit: int) -> list[tuple[Lease, bool]]:
    """Leases that have run out (deadline <= now), each with whether its attempt had begun."""
    return _open_leases(conn, _OVERDUE, {"now": now, "most": limit})


def open_leases(conn: Transaction, node: str | None) -> list[Lease]:
    """Leases of a node, or of all, begun or not."""
    statement, given = (_ALL, {}) if node is None else (_OF_NODE, {"of_node": node})
    return [lease for lease, _ in _open_leases(conn, statement, given)]


def unstarted_of(conn: Transaction, node: str | None) -> list[Lease]:
    """Leases that a node has not begun; None: those of all nodes that have stopped in order, and not started since."""
    statement, given = (_OF_GONE, {}) if node is None else (_UNSTARTED, {"of_node": node})
    return [lease for lease, _ in _open_leases(conn, statement, given)]


_OPEN = (
    select(*columns_of(Lease, attempts), attempts.c.id.label("attempt_id"), subtasks.c.lease_started)
    .join(attempts, attempts.c.id == subtasks.c.attempt_id)
    .where(subtasks.c.state == State.CRAWL)
    .order_by(subtasks.c.id)
)
_ALL = Prepared(_OPEN)
_OF_NODE = Prepared(_OPEN.where(subtasks.c.lease_node == bindparam("of_node")))
_OVERDUE = Prepared(_OPEN.where(subtasks.c.lease_deadline <= bindparam("now")).limit(bindparam("most")))
_NOT_BEGUN = _OPEN.where(subtasks.c.lease_started.is_(False))
_UNSTARTED = Prepared(_NOT_BEGUN.where(subtasks.c.lease_node == bindparam("of_node")))
_GONE = select(nodes.c.name).where(nodes.c.seen_at.is_(None))
_OF_GONE = Prepared(_NOT_BEGUN.where(subtasks.c.lease_node.in_(_GONE)))
