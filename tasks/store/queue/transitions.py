"""The one module that writes the state of a subtask, and counts the subtasks of each queue.

Every transition is one compare-and-set on (state, lease token) plus one row in the append-only event log, in the
caller's transaction, with the numbers of the queues. A transition whose compare fails changes nothing.

The numbers of the queues that grow without bound are stored: each transaction adds a row with its changes, and a
sweep adds the rows up. So no transaction waits for another one's row, and the sum is exact in every view of the
database. The other queues are short, and counted by their index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.states import LEGAL, State, Transition, source, target
from tasks.store.sql.batches import sqlite_time
from tasks.store.sql.transaction import Transaction

LOCKED = "id IN :ids ORDER BY id FOR UPDATE"
"""Condition of a query that locks subtasks: every transaction locks them in the same order."""
LOCKED_IF_FREE = f"{LOCKED} SKIP LOCKED"
"""The same, but without those that another transaction has locked: they wait for the next sweep."""

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
    made = tx.insert_returning(
        "subtasks",
        tuple(rows[0]),
        [tuple(row.values()) for row in rows],
        returning="id, part_id, chunk, parent_id",
        shared={
            "state": State.PRIORITY.value,
            "failed_on": [],
            "created_at": tx.now,
            "changed_at": tx.now,
        },
    )
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


def lock(tx: Transaction, state: State, ids: Sequence[int]) -> list[int]:
    """Lock those of these subtasks that are in a queue; return their ids."""
    return [number for (number,) in tx.rows(_LOCK, ids=list(ids), state=state.value)]


_LOCK = f"SELECT id FROM subtasks WHERE state = :state AND {LOCKED}"


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
    assert begin is not None, "`create` makes what is in no queue"
    end = target(transition, begin)
    # The queue is a column of the rows, not a constant. Otherwise PostgreSQL's planner might look for the rows by it,
    # if its statistics come from a time when that queue was empty.
    rows = [{"id": one.subtask_id, "state": begin.value, **one.values} for one in moves]
    key: tuple[str, ...] = ("id", "state")
    shared: dict[str, Any] = {"state": end.value, "changed_at": tx.now}
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


class _Held(NamedTuple):
    state: State
    token: str | None
    attempt_id: int | None
    node: str | None


_LOCK_ONE = """
    SELECT state, lease_token AS token, attempt_id, lease_node AS node FROM subtasks WHERE id = :id FOR UPDATE
"""


def _lock_one(tx: Transaction, subtask_id: int) -> _Held:
    found = tx.record(_Held, _LOCK_ONE, id=subtask_id)
    if found is None:
        raise UnknownSubtask(f"there is no subtask {subtask_id}")
    return found


def move_one(tx: Transaction, transition: Transition, one: Move) -> None:
    """Perform one transition of a subtask that has no lease.

    Raises:
        IllegalTransition: it is in another queue.
        UnknownSubtask: there is no such subtask.
    """
    state = _lock_one(tx, one.subtask_id).state
    if state is not source(transition) or state is State.CRAWL:
        raise IllegalTransition(
            f"subtask {one.subtask_id} is in {state}: {transition} starts from {source(transition)}"
        )
    move(tx, transition, [one])


def set_aside(tx: Transaction, moves: Sequence[Move]) -> int:
    """Move subtasks that no node can work on to MANUAL, from any queue without a lease; return how many."""
    states = dict(tx.rows(_STATES, ids=[one.subtask_id for one in moves])) if moves else {}
    done = 0
    for begin in LEGAL[Transition.SET_ASIDE]:
        its = [
            replace(one, values={"reason": one.reason, "failed_on": [], "not_before": None, **NO_WAIT})
            for one in moves
            if states.get(one.subtask_id) == begin
        ]
        move(tx, Transition.SET_ASIDE, its, begin)
        done += len(its)
    return done


_STATES = f"SELECT id, state FROM subtasks WHERE {LOCKED_IF_FREE}"


def cancel(tx: Transaction, subtask_id: int, why: str) -> int | None:
    """Cancel a subtask that is not settled for good; return the attempt whose lease this ends.

    Raises:
        IllegalTransition: it is DONE or CANCELLED.
        UnknownSubtask: there is no such subtask.
    """
    held = _lock_one(tx, subtask_id)
    one = Move(
        subtask_id,
        NO_WAIT,
        held.token,
        held.attempt_id,
        held.node,
        reason="cancelled",
        detail={"why": why},
    )
    move(tx, Transition.CANCEL, [one], held.state)
    return held.attempt_id


def _log(
    tx: Transaction, transition: Transition, begin: State | None, end: State, moves: Sequence[Move]
) -> None:
    tx.insert(
        "events",
        _LOGGED,
        [
            (
                one.subtask_id,
                one.token,
                one.attempt_id,
                one.node,
                one.reason,
                one.detail and dict(one.detail),
                {name: sqlite_time(v) if isinstance(v, datetime) else v for name, v in one.values.items()},
            )
            for one in moves
        ],
        shared={
            "at": tx.now,
            "transition": transition.value,
            "from_state": begin and begin.value,
            "to_state": end.value,
        },
    )
    count_moves(tx, begin, end, len(moves))


_LOGGED = ("subtask_id", "token", "attempt_id", "node", "reason", "detail", "sets")

KEPT = (State.PRIORITY, State.MANUAL, State.DONE, State.CANCELLED)
"""Queues whose numbers are kept."""

_MANY_ROWS = 100
"""Maximum number of rows that are read as fast as one; more are added up."""


def count_moves(tx: Transaction, begin: State | None, end: State, n: int) -> None:
    """Store how a transaction changed the queues: `n` subtasks left `begin` (`None`: they are new) for `end`."""
    changed = [(state.value, by) for state, by in ((begin, -n), (end, n)) if state in KEPT]
    tx.insert("queue_counts", ("state", "n"), changed)


class _QueueCount(NamedTuple):
    state: str
    n: int


def count_queues(tx: Transaction) -> dict[str, int]:
    """Return the number of subtasks in each queue."""
    return dict.fromkeys(map(str, State), 0) | {row.state: row.n for row in tx.records(_QueueCount, _COUNTS)}


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
