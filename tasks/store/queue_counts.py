"""How many subtasks are in each queue, without reading those that pile up.

Of the queues that grow without bound, the numbers are kept: each transaction adds a row for what it changed, and a
sweep adds the rows up. So nobody waits for anybody's row, and the sum is exact in every view of the database. The
other queues are short, and counted by their index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, delete, func, insert, select, union_all

from tasks.domain.states import State
from tasks.store.bulk import insert_many
from tasks.store.database import count_by
from tasks.store.prepared import Prepared
from tasks.store.tables import queue_counts, subtasks

KEPT = (State.PRIORITY, State.MANUAL, State.DONE, State.CANCELLED)
"""Queues whose numbers are kept."""

_SHORT = [str(state) for state in State if state not in KEPT]
_MANY_ROWS = 100
"""So many rows are read as fast as one; more are added up."""


def note(conn: Connection, moved: Iterable[tuple[State | None, State]]) -> None:
    """Keep what a transaction changed: the queue that each subtask left (None: none), and the one it came to."""
    changed: Counter[State] = Counter()
    for begin, end in moved:
        if begin in KEPT:
            changed[begin] -= 1
        if end in KEPT:
            changed[end] += 1
    rows = [(str(state), n) for state, n in changed.items() if n]
    if rows:
        insert_many(conn, queue_counts, {}, ("state", "n"), rows)


def counts(conn: Connection) -> dict[str, int]:
    """Subtasks per queue, every queue named."""
    return dict.fromkeys(map(str, State), 0) | {row.state: row.n for row in _COUNTS.rows(conn)}


_q, _s = queue_counts.c, subtasks.c
_COUNTED = union_all(
    select(_q.state, func.sum(_q.n).label("n")).group_by(_q.state),
    select(_s.state, func.count()).where(_s.state.in_(_SHORT)).group_by(_s.state),
).subquery("counted")
_COUNTS = Prepared(select(_COUNTED.c.state, _COUNTED.c.n))


def add_up(conn: Connection) -> None:
    """Make one row a queue of the rows that transactions left, where these are many."""
    if conn.execute(select(func.count()).select_from(queue_counts)).scalar_one() < _MANY_ROWS:
        return
    # Rows of transactions that are still under way are not seen: they stay.
    total: Counter[str] = Counter()
    for row in conn.execute(delete(queue_counts).returning(_q.state, _q.n)):
        total[row.state] += row.n
    if total:  # else another transaction added them up meanwhile
        conn.execute(insert(queue_counts), [{"state": state, "n": n} for state, n in total.items()])


def wrong(conn: Connection) -> Iterator[str]:
    """What is kept and is not what the subtasks count, one sentence a queue."""
    kept = {
        row.state: row.n
        for row in conn.execute(select(_q.state, func.sum(_q.n).label("n")).group_by(_q.state))
    }
    counted = count_by(conn, _s.state, _s.state.in_(KEPT))
    for state in sorted({*kept, *counted}):
        if kept.get(state, 0) != counted.get(state, 0):
            yield f"{state} is kept as {kept.get(state, 0)} subtasks, and there are {counted.get(state, 0)}"
