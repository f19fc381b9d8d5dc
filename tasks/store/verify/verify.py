"""Check every invariant of the store, from the event log and the tables (docs/verify.md lists them).

Each subtask is in exactly one queue, the one its last event led to. Every attempt is allocated, begun and closed once,
under one token. Rows say what follows from their events. Counters add up, nothing is lost, and nothing that is due
waits for long.

The queries are linear in the rows of the tables. They run in a transaction of `Store.read`, so they have one
consistent view.

"Now" is the last sign of life of the loop itself: the latest event or heartbeat. So a run that was stopped is not
overdue, however long ago that was. After a pause, time counts from when the node that now lives longest came back.
Sweeps run every few seconds and take a batch at a time, so the bounds are generous. Older work is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from splitter.normalize import name_key

from tasks.store.queue.upkeep import SetClock, get_mark, get_steady_since
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.clocks import Clock, as_time
from tasks.store.verify.counted import counted_violations
from tasks.store.verify.invariants import INVARIANTS, Violation, row_violations
from tasks.store.verify.replay import replay
from tasks.store.verify.search_parts import plan_violations

BOUNDS: Final[Mapping[str, timedelta]] = {
    "lease": timedelta(minutes=5),
    "failed": timedelta(minutes=5),
    "sleeping": timedelta(minutes=5),
    "unplanned": timedelta(hours=1),
    "recrawl": timedelta(minutes=15),
    "lease_ahead": timedelta(hours=1),
}
"""How long each may be overdue: a lease that ran out, a subtask in FAILED or SLEEP, a virtual task without tasks, a
product's next round; and how far ahead of the last sign of life a lease may end."""

_ALIVE = timedelta(minutes=2)
"""A node whose last heartbeat is older than this, seen from the latest sign of life, is not alive."""
_CACHE_KIB = 12 * 1024
"""SQLite's cache while all is read once: as fast as the runner's larger one."""
_LOOP = ("virtual_tasks", "tasks", "task_parts", "subtasks", "targets", "attempts", "events")
_COUNTS = {
    **{table: f"SELECT count(*) FROM {table}" for table in ("products", *_LOOP, "pages")},
    "reviews": "SELECT count(*) FROM reviews WHERE refused IS NULL",
    "logs_dropped": "SELECT count(*) FROM subtasks WHERE log_dropped",
    "overdue": "SELECT count(*) FROM subtasks WHERE state = 'CRAWL' AND lease_deadline <= :now",
}
_LAST_SIGN = """
    SELECT max(at) FROM (
        SELECT at FROM (SELECT at FROM events ORDER BY id DESC LIMIT 1) last UNION ALL SELECT seen_at FROM nodes
    ) signs
"""
_ALIVE_SINCE = "SELECT min(registered_at) FROM nodes WHERE seen_at > :dead"
_DUE = {
    "lease": ("lease_deadline", "subtasks WHERE state = 'CRAWL'"),
    "failed": ("changed_at", "subtasks WHERE state = 'FAILED'"),
    "sleeping": ("changed_at", "subtasks WHERE state = 'SLEEP'"),
    "unplanned": ("created_at", "virtual_tasks WHERE planned_at IS NULL"),
    "recrawl": ("next_at", "schedules WHERE what = 'recrawl'"),
}
"""The column that holds when work is due, and the rows of that work, by kind."""
_NO_BOUND = timedelta(days=10_000)


@dataclass(frozen=True, slots=True)
class Overdue:
    """Overdue work of one kind.

    Attributes:
        n: number of overdue rows.
        longest_s: how long the oldest one is overdue, in seconds; 0 if none is.
    """

    n: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings of `verify`.

    Attributes:
        violations: empty if every invariant holds.
        counts: number of rows by table. `overdue`: leases that have run out and wait for the recall sweep.
            `logs_dropped`: subtasks whose events were dropped after the retention time, so that their state can't be
            proved any longer.
        as_of: the loop's last sign of life; None if there was none.
        overdue: overdue work at that time, by kind (`BOUNDS`).
        set_clocks: periods in which the database's clock was set back, so that no order was judged in them.
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]
    as_of: datetime | None
    overdue: Mapping[str, Overdue]
    set_clocks: tuple[SetClock, ...]


def verify(tx: Transaction, bounds: Mapping[str, timedelta] | None = BOUNDS) -> Verification:
    """Check every invariant over the whole store, and change nothing.

    Args:
        bounds: how long work may be overdue. None: without limit, for a store whose loop does not run by itself.
    """
    if tx.is_sqlite:
        tx.run(f"PRAGMA cache_size=-{_CACHE_KIB}")
    counts = {name: tx.value(statement, now=tx.now) for name, statement in _COUNTS.items()}
    try:
        return _check(tx, counts, bounds or dict.fromkeys(BOUNDS, _NO_BOUND))
    except (KeyError, TypeError, ValueError) as error:  # SQLite takes a text in every column
        unread = Violation("value", None, f"a value cannot be read, so nothing is proved: {error}")
        return Verification((unread,), counts, None, {}, ())


def _check(tx: Transaction, counts: Mapping[str, int], bounds: Mapping[str, timedelta]) -> Verification:
    """Check all that `verify` checks. Raises KeyError, TypeError or ValueError if a value can't be read."""
    as_of = tx.time(_LAST_SIGN)
    clock = Clock(tx)
    overdue = _find_overdue(tx, as_of, clock) if as_of is not None else {}
    ahead = clock.latest(as_of or tx.now) + bounds["lease_ahead"]
    violations = (
        *replay(tx, clock),
        *row_violations(tx, INVARIANTS, clock, ahead=ahead, compared=get_mark(tx, "reposts")),
        *plan_violations(tx, clock),
        *counted_violations(tx),
        *_name_violations(tx),
        *_mark_violations(tx),
        *_overdue_violations(as_of, overdue, bounds),
    )
    return Verification(violations, counts, as_of, overdue, clock.set_back)


def _name_violations(tx: Transaction) -> Iterator[Violation]:
    """Yield products whose key is not that of their name."""
    for name, key in tx.rows("SELECT name, name_key FROM products ORDER BY id"):
        if key != name_key(name):
            yield Violation("copy", None, f"product {name!r} has the key {key!r}, not that of its name")


def _mark_violations(tx: Transaction) -> Iterator[Violation]:
    """Yield the mark of the sweep for reposts if it is behind the last review."""
    last_id = get_mark(tx, "reposts")
    newest = tx.value("SELECT coalesce(max(id), 0) FROM reviews WHERE refused IS NULL")
    if not 0 <= last_id <= newest:
        yield Violation("links", None, f"sweep reposts has looked at review {last_id}, and there is none")


def _find_overdue(tx: Transaction, as_of: datetime, clock: Clock) -> dict[str, Overdue]:
    """Return what is overdue, by kind (`BOUNDS`). Time counts only while nodes lived and schedulers looked steadily."""
    begins = [tx.time(_ALIVE_SINCE, dead=as_of - _ALIVE)]
    end = as_of
    if looks := get_steady_since(tx):
        begins.append(looks[0])
        end = min(as_of, looks[1])
    found = {}
    for kind, (time, rows) in _DUE.items():
        ((n, first),) = tx.rows(f"SELECT count(*), min({time}) FROM {rows} AND {time} <= :as_of", as_of=as_of)
        longest_s = 0.0
        if n:
            since = max([as_time(first), *(begin for begin in begins if begin is not None)])
            longest_s = max(0.0, (end - clock.steady_since(since, end)).total_seconds())
        found[kind] = Overdue(n, longest_s)
    return found


def _overdue_violations(
    as_of: datetime | None, overdue: Mapping[str, Overdue], bounds: Mapping[str, timedelta]
) -> Iterator[Violation]:
    """Yield the kinds that are overdue by more than their bound."""
    for kind, one in overdue.items():
        if one.longest_s > bounds[kind].total_seconds():
            by = f"one by {one.longest_s:.0f} s: the bound is {bounds[kind]}"
            yield Violation("overdue", None, f"{kind}: {one.n} are overdue at {as_of}, {by}")
