"""The one module that writes the state of a subtask, and counts the subtasks of each queue.

Every transition is one compare-and-set on (state, lease token) plus one row in the append-only event log, in the
caller's transaction, with the numbers of the queues. Whoever moves a subtask has locked it and looked at its queue.

The numbers of the queues that grow without bound are stored: each transaction adds a row with its changes, and a
sweep adds the rows up. So no transaction waits for another one's row, and the sum is exact in every view of the
database. The other queues are short, and counted by their index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from tasks.domain.errors import UnknownSubtask
from tasks.domain.states import State, Transition, source, target
from tasks.store.sql.rows import utc_text
from tasks.store.sql.transaction import Transaction

LOCKED = "id IN :ids ORDER BY id FOR UPDATE"
"""Condition of a query that locks subtasks: every transaction locks them in the same order."""

NO_WAIT: Mapping[str, Any] = {"wait_host": None, "wait_reason": None}
"""Columns of a subtask that waits for no host."""

_NO_LEASE: Mapping[str, Any] = {
    **dict.fromkeys(("lease_token", "lease_node", "lease_deadline", "attempt_id")),
    "lease_started": False,
}


@dataclass(frozen=True, slots=True)
class Move:
    """One transition of a subtask, and the content of its event.

    Attributes:
        values: further columns to set, which the event keeps for `verify`; the same ones in every move of a batch.
        token, attempt_id, node: of the lease that begins, or of the one that ends: then the token must be in force.
        detail: the data behind the decision.
    """

    subtask_id: int
    values: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None
    attempt_id: int | None = None
    node: str | None = None
    reason: str | None = None
    detail: Mapping[str, Any] | None = None


def create(
    tx: Transaction, rows: Sequence[Mapping[str, Any]], details: Sequence[Mapping[str, Any]]
) -> list[int]:
    """Put new subtasks into PRIORITY.

    Args:
        rows: the columns task_id, product_id, site, kind, chunk, part_id, priority, left of each; of all or none,
            parent_id, not_before and assigned_quota.
        details: of the events, one a row.

    Returns:
        Their ids, in the order of `rows`.
    """
    if not rows:
        return []
    values, returned = [tuple(row.values()) for row in rows], "id, part_id, chunk, parent_id"
    shared = {"state": State.PRIORITY, "failed_on": [], "created_at": tx.now, "changed_at": tx.now}
    made = tx.insert_returning("subtasks", tuple(rows[0]), values, returning=returned, shared=shared)
    numbers = {tuple(key): number for number, *key in made}
    ids = [numbers[row["part_id"], row["chunk"], row.get("parent_id")] for row in rows]
    moves = [
        Move(number, {name: row[name] for name in _CHOSEN if row.get(name) is not None}, detail=detail)
        for number, row, detail in zip(ids, rows, details, strict=True)
    ]
    _log(tx, Transition.CREATE, None, State.PRIORITY, moves)
    return ids


_CHOSEN = ("not_before", "assigned_quota")
"""Columns of a new subtask that later events set again."""


class LockedSubtask(NamedTuple):
    """A subtask that this transaction has locked.

    Attributes:
        lease_token, lease_node, lease_deadline, lease_started, attempt_id: of its lease; None, and False, without one.
        failed_on: nodes that failed in this round, the oldest failure first.
        idle_releases: attempts in a row that no host answered.
    """

    id: int
    product_id: int
    site: str
    kind: str
    state: State
    round: int
    attempts: int
    lease_token: str | None
    lease_node: str | None
    lease_deadline: datetime | None
    lease_started: bool
    attempt_id: int | None
    failed_on: list[str]
    assigned_node: str | None
    idle_releases: int


SUBTASKS = f"SELECT {', '.join(LockedSubtask._fields)} FROM subtasks"


def lock(tx: Transaction, ids: Collection[int], *, skip_locked: bool = False) -> list[LockedSubtask]:
    """Lock subtasks, by their ids: every transaction locks them in the same order.

    Args:
        skip_locked: pass over those that another transaction has locked; they wait for the next sweep.
    """
    return tx.records(LockedSubtask, _LOCK_IF_FREE if skip_locked else _LOCK, ids=ids) if ids else []


def lock_one(tx: Transaction, subtask_id: int) -> LockedSubtask:
    """Lock a subtask. Raises UnknownSubtask if there is no such subtask."""
    found = lock(tx, [subtask_id])
    if not found:
        raise UnknownSubtask("there is no subtask {subtask}", subtask=subtask_id)
    return found[0]


_LOCK = f"{SUBTASKS} WHERE {LOCKED}"
_LOCK_IF_FREE = f"{_LOCK} SKIP LOCKED"


def move(
    tx: Transaction,
    transition: Transition,
    moves: Sequence[Move],
    begin: State | None = None,
    *,
    until: datetime | None = None,
) -> None:
    """Perform one transition for many subtasks.

    Each must be locked and in its queue, with its lease in force (`LOCKED`, `tasks.store.queue.leases.lock_leased`).
    The compare-and-set is made all the same.

    Args:
        begin: the queue that they are in; `None`: the only one that the transition starts from.
        until: when the leases end that an allocation gives.

    Raises:
        IllegalTransition: it does not start from `begin`.
    """
    if not moves:
        return
    begin = begin or source(transition)
    end = target(transition, begin)
    # The queue is a column of the rows, not a constant. Otherwise PostgreSQL's planner might look for the rows by it,
    # if its statistics come from a time when that queue was empty.
    rows: list[dict[str, Any]] = [{"id": one.subtask_id, "state": begin, **one.values} for one in moves]
    shared: dict[str, Any] = {"state": end, "changed_at": tx.now}
    key: tuple[str, ...] = ("id", "state")
    if end is State.CRAWL:
        shared["lease_deadline"] = until
        for row, one in zip(rows, moves, strict=True):
            row |= {"lease_token": one.token, "lease_node": one.node, "attempt_id": one.attempt_id}
    elif begin is State.CRAWL:
        key = ("id", "state", "lease_token")
        shared |= _NO_LEASE
        for row, one in zip(rows, moves, strict=True):
            row["lease_token"] = one.token
    tx.update("subtasks", key, rows, shared=shared)
    _log(tx, transition, begin, end, moves)


def _log(
    tx: Transaction, transition: Transition, begin: State | None, end: State, moves: Sequence[Move]
) -> None:
    rows = [(*_LOGGED(one), {name: _plain(value) for name, value in one.values.items()}) for one in moves]
    shared = {"at": tx.now, "transition": transition, "from_state": begin, "to_state": end}
    tx.insert("events", (*_TOLD, "sets"), rows, shared=shared)
    count_moves(tx, begin, end, len(moves))


def _plain(value: Any) -> Any:
    return utc_text(value) if isinstance(value, datetime) else value


_TOLD = ("subtask_id", "token", "attempt_id", "node", "reason", "detail")
_LOGGED = attrgetter(*_TOLD)
KEPT = (State.PRIORITY, State.MANUAL, State.DONE, State.CANCELLED)
"""Queues whose numbers are kept."""

_MANY_ROWS = 100
"""Maximum number of rows that are read as fast as one; more are added up."""


def count_moves(tx: Transaction, begin: State | None, end: State, n: int) -> None:
    """Store how a transaction changed the queues: `n` subtasks left `begin` (`None`: they are new) for `end`."""
    changed = [(state, by) for state, by in ((begin, -n), (end, n)) if state in KEPT]
    tx.insert("queue_counts", ("state", "n"), changed)


def count_queues(tx: Transaction) -> dict[str, int]:
    """Return the number of subtasks in each queue."""
    return dict.fromkeys(map(str, State), 0) | dict(tx.rows(_COUNTS))


_SHORT = ", ".join(f"'{state}'" for state in State if state not in KEPT)
_COUNTS = f"""
    SELECT state, CAST(sum(n) AS bigint) AS n FROM queue_counts GROUP BY state
    UNION ALL SELECT state, count(*) FROM subtasks WHERE state IN ({_SHORT}) GROUP BY state
"""


def add_up_queues(tx: Transaction) -> None:
    """Replace the rows that transactions left with one row per queue, if there are many."""
    if tx.value("SELECT count(*) FROM queue_counts") < _MANY_ROWS:
        return
    # Rows of transactions that are still under way are not seen: they stay.
    total: Counter[str] = Counter()
    for state, n in tx.rows("DELETE FROM queue_counts RETURNING state, n"):
        total[state] += n
    tx.insert("queue_counts", ("state", "n"), list(total.items()))
