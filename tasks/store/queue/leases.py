"""Leases: granted, begun, renewed by progress. `tasks.store.queue.closing` ends them.

The lease is in the subtask's row (token, node, deadline); the attempt's row is the node-run control.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.states import State, Transition
from tasks.store.queue import transitions
from tasks.store.queue.hosts import close_breakers
from tasks.store.queue.transitions import LOCKED_IF_FREE, Move
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

R = TypeVar("R", bound="LeasedRow")

HITS_UNREAD = 10
"""Hits a result page counts for until it is read."""

KeywordSets = Sequence[Sequence[str]]

LEAST_WORDS = 2
"""Minimum number of words in a query that shows the subject of a page by itself."""

_VIRTUAL_TASK = "FROM virtual_tasks v JOIN tasks t ON t.virtual_task_id = v.id WHERE t.id = subtasks.task_id"
KEYWORDS = f"""
    (SELECT v.keywords {_VIRTUAL_TASK}) AS words, (SELECT v.aliases {_VIRTUAL_TASK}) AS aliases,
    (SELECT p.keywords FROM task_parts p WHERE p.id = subtasks.part_id) AS own_words
"""
"""Columns of a query of `subtasks` that `keyword_sets` reads: with the lock, not in a round trip of their own."""


class SubtaskKeywords(Protocol):
    """A row with the columns `KEYWORDS`."""

    @property
    def words(self) -> list[str]: ...
    @property
    def aliases(self) -> list[list[str]]: ...
    @property
    def own_words(self) -> list[str] | None: ...


def keyword_sets(subtask: SubtaskKeywords) -> KeywordSets:
    """Return the keyword sets of a subtask: its product's, the aliases' and its own. A page must match one of them.

    A query that was relaxed to a single word is left out: one word does not name a product.
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
        """Return it in plain JSON types."""
        return asdict(self)


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
        statuses: requests by HTTP status, or by error if there was no response.
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
        """Return the columns of the attempt's row."""
        rounded = {"active_s": round(self.active_s, 6), "wait_s": round(self.wait_s, 6)}
        return asdict(self) | rounded


class LeasedRow(Protocol):
    """A row of `subtasks`."""

    @property
    def id(self) -> int: ...
    @property
    def lease_token(self) -> str | None: ...


def lock_leased(tx: Transaction, row_type: type[R], statement: str, leases: Iterable[Lease]) -> dict[str, R]:
    """Lock the subtasks of these leases and return those whose lease is in force.

    Args:
        row_type: of the statement's rows, with `id` and `lease_token`.
        statement: reads and locks subtasks, see `transitions.LOCKED`.

    Returns:
        The subtasks' rows of the leases in force, by token.
    """
    of = {lease.token: lease.subtask_id for lease in leases}
    rows = tx.records(row_type, statement, ids=list(set(of.values())))
    return {row.lease_token: row for row in rows if row.lease_token and of.get(row.lease_token) == row.id}


class _Grantable(NamedTuple):
    id: int
    site: str
    product_id: int
    round: int
    attempts: int


_WAITING = f"""
    SELECT id, site, product_id, round, attempts FROM subtasks WHERE state = '{State.WAIT}' AND {LOCKED_IF_FREE}
"""


def grant(tx: Transaction, grants: Iterable[Grant], start_within: timedelta) -> list[Lease]:
    """Give subtasks in WAIT to nodes; those that have left WAIT meanwhile are passed over."""
    wanted = {one.subtask_id: one for one in grants}
    rows = {row.id: row for row in tx.records(_Grantable, _WAITING, ids=list(wanted))} if wanted else {}
    given = [one for one in wanted.values() if one.subtask_id in rows]
    tokens = {one.subtask_id: uuid.uuid4().hex for one in given}
    attempt_ids = _open_attempts(tx, [(one, rows[one.subtask_id]) for one in given], tokens)
    leases, moves = [], []
    for one in given:
        row = rows[one.subtask_id]
        lease = Lease(
            subtask_id=one.subtask_id,
            attempt_id=attempt_ids[one.subtask_id],
            token=tokens[one.subtask_id],
            node=one.node,
            site=row.site,
            quota=one.quota,
            budget_s=one.budget_s,
            least_share=one.floor.least_share,
            slack=one.floor.slack,
            entry=one.entry,
        )
        values = {"attempts": row.attempts + 1, **transitions.NO_WAIT}
        leases.append(lease)
        moves.append(Move(row.id, values, lease.token, lease.attempt_id, lease.node, detail=one.detail))
    transitions.move(tx, Transition.ALLOCATE, moves, until=tx.now + start_within)
    return leases


_LIMITS = ("quota", "budget_s", "least_share", "slack", "entry")
_OPENED = ("subtask_id", "product_id", "no", "round", "site", "node", "token", *_LIMITS)


def _open_attempts(
    tx: Transaction, given: Sequence[tuple[Grant, _Grantable]], tokens: Mapping[int, str]
) -> dict[int, int]:
    """Insert the attempts of grants; return their ids by subtask."""
    opened = []
    for one, row in given:
        of = (one.subtask_id, row.product_id, row.attempts + 1, row.round, row.site)
        limits = (one.quota, one.budget_s, one.floor.least_share, one.floor.slack, one.entry)
        opened.append((*of, one.node, tokens[one.subtask_id], *limits))
    shared = {"allocated_at": tx.now, "errors": {}}
    return dict(tx.insert_returning("attempts", _OPENED, opened, returning="subtask_id, id", shared=shared))


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
    begun = _renew_all(tx, items, _BEGIN)
    mine = {item.lease.subtask_id: item.lease for item in items if item.lease.token in begun}
    if not mine:
        return [None] * len(items)
    tx.later(_STARTED, ids=[lease.attempt_id for lease in mine.values()], now=tx.now)
    rows = tx.records(_BegunRow, _BEGUN, ids=list(mine))
    todo = _list_targets(tx, mine)
    works = {
        row.id: Work(row.product_id, row.task_id, row.chunk, tuple(todo.get(row.id, ())), keyword_sets(row))
        for row in rows
    }
    # If a notification came twice within the batch, the first one gets the work.
    return [works.pop(i.lease.subtask_id, None) if i.lease.token in begun else None for i in items]


class _BegunRow(NamedTuple):
    id: int
    product_id: int
    task_id: int
    chunk: int
    words: list[str]
    aliases: list[list[str]]
    own_words: list[str] | None


_STARTED = "UPDATE attempts SET started_at = :now, progress_at = :now WHERE id IN :ids"
_BEGUN = f"SELECT id, product_id, task_id, chunk, {KEYWORDS} FROM subtasks WHERE id IN :ids"


def _list_targets(tx: Transaction, of: Collection[int]) -> dict[int, list[WorkTarget]]:
    """Return targets to do, in their order, by subtask; with the validators of pages that are known."""
    found: dict[int, list[WorkTarget]] = {}
    for row in tx.records(_Todo, _TODO, ids=list(of)):
        found.setdefault(row.subtask_id, []).append(row.target())
    return found


class _Todo(NamedTuple):
    subtask_id: int
    id: int
    kind: str
    url: str
    key: bytes
    tries: int
    etag: str | None
    last_modified: str | None

    def target(self) -> WorkTarget:
        return WorkTarget(
            id=self.id,
            kind=self.kind,
            url=self.url,
            key=self.key,
            tries=self.tries,
            etag=self.etag,
            last_modified=self.last_modified,
        )


_TODO = """
    SELECT t.subtask_id, t.id, t.kind, t.url, t.url_key AS key, t.tries, p.etag, p.last_modified
    FROM targets t LEFT JOIN pages p ON p.url_key = t.url_key AND t.kind = 'hit'
    WHERE t.subtask_id IN :ids AND t.state = 'todo' ORDER BY t.id
"""


def progress_many(tx: Transaction, items: Sequence[Renewal]) -> list[bool]:
    """Record signs of life; False if the lease is over: the attempt must stop."""
    kept = _renew_all(tx, items, _KEEP)
    renewed = [i for i in items if i.lease.token in kept]
    rows = [{"id": i.lease.attempt_id, **i.counters.columns()} for i in renewed if i.counters is not None]
    tx.update("attempts", ("id",), rows, shared={"progress_at": tx.now})
    close_breakers(tx, {(host, i.lease.node) for i in renewed for host in i.page_hosts})
    return [i.lease.token in kept for i in items]


def _renew_all(tx: Transaction, items: Sequence[Renewal], statement: str) -> set[str]:
    """Move the deadlines of leases that were not taken back; return the tokens of those.

    A renewal that comes after the deadline counts unless the lease was taken back: the database may have been away
    meanwhile. A lease is begun before its deadline only.

    Args:
        statement: `_BEGIN` begins those that have not begun, `_KEEP` renews those that have.
    """
    by_time: dict[timedelta, list[Lease]] = {}
    for item in items:
        by_time.setdefault(item.keep, []).append(item.lease)
    kept: set[str] = set()
    for keep, leases in by_time.items():
        given = {"ids": [one.subtask_id for one in leases], "tokens": [one.token for one in leases]}
        kept |= {token for (token,) in tx.rows(statement, now=tx.now, deadline=tx.now + keep, **given)}
    return kept


_IN_FORCE = f"""
    UPDATE subtasks SET lease_deadline = :deadline, lease_started = true
    WHERE id IN :ids AND lease_token IN :tokens AND state = '{State.CRAWL}'
"""
_BEGIN = f"{_IN_FORCE} AND NOT lease_started AND lease_deadline > :now RETURNING lease_token"
_KEEP = f"{_IN_FORCE} AND lease_started RETURNING lease_token"

BEGIN_LEASES: BatchOperation[Renewal, Work | None] = BatchOperation(1, start_many)
RENEW_LEASES: BatchOperation[Renewal, bool] = BatchOperation(5, progress_many)


def list_overdue(tx: Transaction, limit: int) -> list[tuple[Lease, bool]]:
    """Return leases that have run out (deadline <= now), each with whether its attempt had begun."""
    return _list_open(tx, _OVERDUE, now=tx.now, limit=limit)


def list_open(tx: Transaction, node: str | None) -> list[Lease]:
    """Return the leases of a node, or of all, begun or not."""
    return [lease for lease, _ in _list_open(tx, _OF_NODE, node=node)]


def list_unstarted(tx: Transaction, node: str | None) -> list[Lease]:
    """Return the leases that a node has not begun; `None`: those of nodes that stopped in order and are not back."""
    found = _list_open(tx, _OF_GONE) if node is None else _list_open(tx, _UNSTARTED, node=node)
    return [lease for lease, _ in found]


def _list_open(tx: Transaction, statement: str, **values: Any) -> list[tuple[Lease, bool]]:
    rows = tx.records(dict, statement, **values)
    begun = [bool(row.pop("lease_started")) for row in rows]
    return [(Lease(**row), is_begun) for row, is_begun in zip(rows, begun, strict=True)]


_OPEN = f"""
    SELECT a.subtask_id, a.id AS attempt_id, a.token, a.node, a.site, a.quota, a.budget_s, a.least_share, a.slack,
        a.entry, s.lease_started
    FROM subtasks s JOIN attempts a ON a.id = s.attempt_id WHERE s.state = '{State.CRAWL}'
"""
_OVERDUE = f"{_OPEN} AND s.lease_deadline <= :now ORDER BY s.id LIMIT :limit"
_OF_NODE = f"{_OPEN} AND (CAST(:node AS text) IS NULL OR s.lease_node = :node) ORDER BY s.id"
_UNSTARTED = f"{_OPEN} AND NOT s.lease_started AND s.lease_node = :node ORDER BY s.id"
_OF_GONE = f"""
    {_OPEN} AND NOT s.lease_started AND s.lease_node IN (SELECT name FROM nodes WHERE seen_at IS NULL) ORDER BY s.id
"""
