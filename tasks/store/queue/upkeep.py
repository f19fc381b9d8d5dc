"""The upkeep of a store: it drops old data, and the downtime of schedulers makes no lease late.

Retention works in batches, each in its transaction: details of events, old responses, rests, texts of refused records,
and event logs. Events and attempts are numbered as time goes on, so each part walks its table by number and leaves a
mark of how far it has come: a batch costs the same however long the table is, and no row is read twice. The newest row
is never processed: its number must not be given again. A log goes as a whole, with the last event of a subtask that is
DONE or CANCELLED; its row records this (`log_dropped`), so that `verify` knows what it can no longer prove. The rows of
subtasks, attempts, targets and pages stay.

Silence counts only while a scheduler looks. If the database, Redis or the scheduler was away, or a clock was set, the
time between two looks is long or negative. At most a quarter of a lease counts: each deadline moves by the rest, or by
all of it if the clock was set back, but never beyond the deadline of a lease that is renewed now. So a scheduler that
only looks late, again and again, does not keep leases of dead nodes for ever.

The module also stores single values by name: marks of sweeps, measurements of a scheduler, a trained model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tasks.domain.states import State
from tasks.domain.verdicts import Verdict
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

KEEP_DETAIL = timedelta(days=90)
"""How long `explain` shows the candidates of a decision, `failed show` the last response, and `judge` refused texts."""

KEEP_BREAKER = timedelta(days=7)
"""How long after its rest a host's refusals are dropped, if no attempt probed it."""

BATCH = 1000
"""Rows of a transaction: some 10 ms, which SQLite's other writers wait for."""

_LOCK_S = 2.0

Step = Callable[[Transaction], int]
"""Drops the next batch in the caller's transaction; returns how many rows it has looked at, 0 if none is old."""


def drop_old(
    write: Callable[[Operation[int]], int],
    keep_log: timedelta | None,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Drop all that is old, in batches; it ends early if another process is doing the same, which then does the rest.

    Args:
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        keep_log: how long after its end the log of a subtask is kept; None: for ever.
        go_on: called before each batch; if it returns False, the rest is left to the next sweep.

    Returns:
        How many rows were looked at.
    """
    looked = 0
    for step in retention_steps(keep_log):
        while go_on() and (n := write(step)):
            looked += n
    return looked


def retention_steps(keep_log: timedelta | None) -> Sequence[Step]:
    """Droppers of old rows, each to be called until it returns 0.

    Args:
        keep_log: how long after its end the log of a subtask is kept; None: for ever.
    """
    always = (empty_details, empty_responses, drop_rests, empty_refused)
    if keep_log is None:
        return always
    kept = keep_log
    logs = (lambda tx: drop_logs(tx, kept), lambda tx: drop_result_pages(tx, kept))
    return (*always, *logs)


def empty_details(tx: Transaction) -> int:
    """Empty the details of the next events older than `KEEP_DETAIL`; their transitions stay."""
    old = _old(tx, "details", _EVENTS, tx.now - KEEP_DETAIL)
    if old:
        tx.later(_EMPTY_DETAILS, first=old[0].id, last=old[-1].id)
    return len(old)


_EMPTY_DETAILS = "UPDATE events SET detail = NULL WHERE id BETWEEN :first AND :last AND detail IS NOT NULL"


def empty_responses(tx: Transaction) -> int:
    """Empty the last responses of the next attempts that ended longer ago than `KEEP_DETAIL`."""
    old = _old(tx, "responses", _ATTEMPTS, tx.now - KEEP_DETAIL)
    if old:
        tx.later(_EMPTY_RESPONSES, first=old[0].id, last=old[-1].id)
    return len(old)


_EMPTY_RESPONSES = """
    UPDATE attempts SET last_response = NULL WHERE id BETWEEN :first AND :last AND last_response IS NOT NULL
"""


def drop_rests(tx: Transaction) -> int:
    """Drop breakers of hosts that no attempt probed; there are few, at most one a host and node."""
    if not _free(tx):
        return 0
    return tx.run("DELETE FROM host_rests WHERE until <= :before", before=tx.now - KEEP_BREAKER)


def empty_refused(tx: Transaction) -> int:
    """Empty the next records that were refused longer ago than `KEEP_DETAIL`; their rows stay, as they are counted.

    A page whose reviews were those of no product that it was found for is read again if another product finds it.
    """
    if not _free(tx):
        return 0
    ids = [number for (number,) in tx.rows(_OLD_REFUSED, before=tx.now - KEEP_DETAIL, most=BATCH)]
    if ids:
        tx.later(_EMPTY_PAGES, ids=ids)
        tx.later(_EMPTY_REFUSED, ids=ids, no_hash=b"")
    return len(ids)


_OLD_REFUSED = """
    SELECT id FROM reviews WHERE refused IS NOT NULL AND body <> '' AND collected_at < :before
    ORDER BY collected_at LIMIT :most
"""
_EMPTY_PAGES = f"""
    UPDATE pages SET content_hash = '', etag = NULL, last_modified = NULL
    WHERE id IN (SELECT page_id FROM reviews WHERE id IN :ids AND refused = '{Verdict.WRONG_PRODUCT}')
"""
_EMPTY_REFUSED = """
    UPDATE reviews SET title = '', body = '', author = '', date_text = '', variant = '', text_hash = :no_hash,
        published_at = NULL, rating = NULL, voice = NULL, voice_probability = NULL, buyer = NULL, sentiment = NULL,
        voice_model = NULL
    WHERE id IN :ids
"""


def drop_logs(tx: Transaction, keep: timedelta) -> int:
    """Drop the logs of subtasks that have been DONE or CANCELLED for longer than `keep`, by the next old events."""
    old = _old(tx, "logs", _EVENTS, tx.now - keep)
    if old:
        ids = sorted({row.subtask_id for row in old})
        ended = [subtask_id for (subtask_id,) in tx.rows(_ENDED, ids=ids, before=tx.now - keep)]
        tx.later("DELETE FROM events WHERE subtask_id IN :ended", ended=ended)
        tx.later("UPDATE subtasks SET log_dropped = true WHERE id IN :ended", ended=ended)
    return len(old)


_ENDED = f"""
    SELECT id FROM subtasks
    WHERE id IN :ids AND state IN ('{State.DONE}', '{State.CANCELLED}') AND changed_at < :before ORDER BY id
"""


def drop_result_pages(tx: Transaction, keep: timedelta) -> int:
    """Drop the next result pages that were read longer ago than `keep`."""
    return tx.run(_DROP_RESULT_PAGES, most=BATCH, before=tx.now - keep) if _free(tx) else 0


_DROP_RESULT_PAGES = """
    DELETE FROM result_pages
    WHERE id IN (SELECT id FROM result_pages ORDER BY id LIMIT :most) AND at < :before
"""


class _Following(NamedTuple):
    """An event, or an attempt with its end."""

    id: int
    at: datetime | None
    subtask_id: int


def _old(tx: Transaction, part: str, following: str, before: datetime) -> Sequence[_Following]:
    """Return the next rows of a part that are older, up to the first that is not; the mark is moved behind them."""
    if not _free(tx):
        return ()
    rows = tx.records(_Following, following, after=get_mark(tx, part), most=BATCH + 1)[:-1]
    young = next((place for place, row in enumerate(rows) if row.at is None or row.at >= before), len(rows))
    if young:
        set_mark(tx, part, rows[young - 1].id)
    return rows[:young]


def _free(tx: Transaction) -> bool:
    """Return True if no other process is dropping at this moment: two would wait for each other's rows."""
    return try_lock(tx, "retention", _LOCK_S)


_EVENTS = "SELECT id, at, subtask_id FROM events WHERE id > :after ORDER BY id LIMIT :most"
_ATTEMPTS = "SELECT id, ended_at AS at, subtask_id FROM attempts WHERE id > :after ORDER BY id LIMIT :most"


log = logging.getLogger("reviewloop.store")

_LEAST = timedelta(seconds=5)
"""Delay of a tick that a busy machine may cause."""
_SHARE = 4
_SET_BACK = timedelta(seconds=1)
_LOOKED = "looked"
"""Name of the time of the last look of any scheduler."""


def longest_lapse(silent_after: timedelta) -> timedelta:
    """Return how much of the time between two looks counts. `silent_after`: how long a lease lasts unrenewed."""
    return max(_LEAST, silent_after / _SHARE)


def mark_look(tx: Transaction) -> None:
    """Store the time of this look for other schedulers."""
    store_value(tx, _LOOKED, tx.now, {})


def bridge_lapse(tx: Transaction, last: datetime | None, silent_after: timedelta) -> None:
    """Move the deadline of every lease if no scheduler has looked for too long, see the module.

    Args:
        last: the last look of this scheduler; `None` if it has just begun. If that is too long ago, another scheduler
            may have looked (`mark_look`).
        silent_after: how long a lease lasts without a renewal.
    """
    limit = longest_lapse(silent_after)
    if last is not None and -_SET_BACK <= tx.now - last <= limit:
        return
    other = load_value(tx, _LOOKED)
    gaps = [tx.now - at for at in (last, other and other.at) if at is not None]
    gap = min(gaps, key=abs, default=timedelta())
    if gap < -_SET_BACK:
        log.warning(
            "the database's clock was set back by %.0f s: leases end as much earlier", -gap.total_seconds()
        )
    elif gap > limit:
        level = logging.INFO if last is None else logging.WARNING  # a new run has nothing to warn of
        said = "no scheduler looked for %.0f s, or the database's clock was set: leases last longer"
        log.log(level, said, gap.total_seconds())
    else:
        return
    move = gap if gap < timedelta() else gap - limit
    latest = tx.now + silent_after  # of a lease that was renewed at this moment
    for lease in tx.records(_OpenLease, _OPEN_LEASES):
        deadline = min(lease.lease_deadline + move, latest)
        if deadline > lease.lease_deadline or lease.lease_deadline > latest:
            tx.later(
                "UPDATE subtasks SET lease_deadline = :deadline WHERE id = :id",
                id=lease.id,
                deadline=deadline,
            )


class _OpenLease(NamedTuple):
    id: int
    lease_deadline: datetime


# A locked lease is being renewed or closed by whoever locked it.
_OPEN_LEASES = f"""
    SELECT id, lease_deadline FROM subtasks WHERE state = '{State.CRAWL}' ORDER BY id FOR UPDATE SKIP LOCKED
"""


RUN_TIME_MODEL = "run_time_model"
"""Name of the trained run-time model of the 2019 balance paper; its time is that of its training."""


class StoredValue(NamedTuple):
    """A value that is stored under a name, and its time."""

    at: datetime
    data: Mapping[str, Any]


def load_value(tx: Transaction, name: str) -> StoredValue | None:
    """Return the value of a name; `None` if none was stored."""
    return tx.record(StoredValue, "SELECT at, data FROM stored_values WHERE name = :name", name=name)


def store_value(tx: Transaction, name: str, at: datetime, data: Mapping[str, Any]) -> None:
    """Store the value of a name, at most 60 characters, in place of the earlier one."""
    tx.later(_STORE_VALUE, name=name, at=at, data=data)


_STORE_VALUE = """
    INSERT INTO stored_values (name, at, data) VALUES (:name, :at, :data)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at, data = excluded.data
"""


def get_mark(tx: Transaction, sweep: str) -> int:
    """Return the number of the last row that a sweep through a table has processed; 0 before it began."""
    mark = load_value(tx, sweep)
    return mark.data["last_id"] if mark is not None else 0


def set_mark(tx: Transaction, sweep: str, last_id: int) -> None:
    """Store the number of the last row that a sweep has processed."""
    store_value(tx, sweep, tx.now, {"last_id": last_id})
