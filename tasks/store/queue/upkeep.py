"""The upkeep of a store: it drops old data, and the downtime of schedulers makes no lease late.

Retention works in batches, each in its transaction. Events, attempts and result pages are numbered as time goes on, so
each part walks its table by number and leaves a mark of how far it has come: a batch costs the same however long the
table is, and no row is read twice. The newest row is never processed: its number must not be given again. A log goes
as a whole, with the last event of a subtask that is DONE or CANCELLED; its row records this (`log_dropped`), so that
`verify` knows what it can no longer prove. The rows of subtasks, attempts, targets and pages stay.

Silence counts only while a scheduler looks. If the database, Redis or the scheduler was away, or a clock was set, the
time between two looks is long or negative. At most a quarter of a lease counts: each deadline moves by the rest. No
deadline is later than that of a lease that is renewed now, also if the clock was set back. So a scheduler that only
looks late, again and again, does not keep leases of dead nodes for ever.

The module also stores single values by name: marks of sweeps, measurements of a scheduler, a trained model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from tasks.domain.states import State
from tasks.domain.verdicts import Verdict
from tasks.store.queue import hosts, nodes
from tasks.store.queue.transitions import SUBTASKS, LockedSubtask
from tasks.store.sql.database import try_lock
from tasks.store.sql.rows import read_time, utc_text
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

log = logging.getLogger("reviewloop.store")

KEEP_DETAIL = timedelta(days=90)
"""How long `explain` shows the candidates of a decision, `failed show` the last response, and `judge` refused texts."""
KEEP_BREAKER = timedelta(days=7)
"""How long after its rest a host's refusals are dropped, if no attempt probed it."""
BATCH = 1000
"""Rows of a transaction: some 10 ms, which SQLite's other writers wait for."""
_LOCK_S = 2.0


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
    parts = [(RESTS, KEEP_BREAKER), *((part, KEEP_DETAIL) for part in (DETAILS, RESPONSES, REFUSED))]
    if keep_log is not None:
        parts += [(LOGS, keep_log), (RESULT_PAGES, keep_log)]
    looked = 0
    for part, keep in parts:
        while go_on() and (n := write(partial(drop_batch, part=part, keep=keep))):
            looked += n
    return looked


class Aging(NamedTuple):
    """A part of the store that grows old.

    Attributes:
        name: of its mark.
        following: selects id and time of the next `:most` rows, the oldest first: those `:after` the mark, or those
            that are not dropped yet.
        drop: statements that drop the rows `:ids`, all older than `:before`.
    """

    name: str
    following: str
    drop: tuple[str, ...]


def _walk(name: str, table: str, at: str, *drop: str) -> Aging:
    """Return the rows of a table, by their numbers up to the newest, each with the time in its column `at`."""
    rows = f"SELECT id, {at} AS at FROM {table} WHERE id > :after AND id < (SELECT max(id) FROM {table})"
    return Aging(name, f"{rows} ORDER BY id LIMIT :most", drop)


# Breakers of hosts that no attempt probed; there are few, at most one a host and node.
RESTS = Aging(
    "rests",
    "SELECT 0 AS id, until AS at FROM host_rests ORDER BY until LIMIT :most",
    ("DELETE FROM host_rests WHERE until < :before",),
)
DETAILS = _walk(
    "details", "events", "at", "UPDATE events SET detail = NULL WHERE id IN :ids AND detail IS NOT NULL"
)
_FORGET = "UPDATE attempts SET last_response = NULL WHERE id IN :ids AND last_response IS NOT NULL"
RESPONSES = _walk("responses", "attempts", "ended_at", _FORGET)
# Their rows stay, as they are counted. A page whose reviews were those of no product that it was found for is read
# again if it is found again.
REFUSED = Aging(
    "refused",
    """
    SELECT id, collected_at AS at FROM reviews WHERE refused IS NOT NULL AND body <> ''
    ORDER BY collected_at LIMIT :most
    """,
    (
        f"""
        UPDATE pages SET content_hash = '', etag = NULL, last_modified = NULL
        WHERE id IN (SELECT page_id FROM reviews WHERE id IN :ids AND refused = '{Verdict.WRONG_PRODUCT}')
        """,
        """
        UPDATE reviews SET title = '', body = '', author = '', date_text = '', variant = '', text_hash = :no_hash,
            copy_key = NULL, published_at = NULL, day = NULL, has_clock = false, rating = NULL, voice = NULL,
            voice_probability = NULL, buyer = NULL, sentiment = NULL, voice_model = NULL, themes = NULL
        WHERE id IN :ids
        """,
    ),
)
_ENDED = f"""
    state IN ('{State.DONE}', '{State.CANCELLED}') AND changed_at < :before
        AND id IN (SELECT subtask_id FROM events WHERE id IN :ids)
"""
LOGS = _walk(
    "logs",
    "events",
    "at",
    f"UPDATE subtasks SET log_dropped = true WHERE {_ENDED}",
    f"DELETE FROM events WHERE subtask_id IN (SELECT id FROM subtasks WHERE {_ENDED})",
)
RESULT_PAGES = _walk("result_pages", "result_pages", "at", "DELETE FROM result_pages WHERE id IN :ids")


class _Aged(NamedTuple):
    id: int
    at: datetime | None


def drop_batch(tx: Transaction, part: Aging, keep: timedelta) -> int:
    """Drop the next rows of a part that are older than `keep`, up to the first that is not; return their number."""
    if not try_lock(tx, "retention", _LOCK_S):
        return 0  # another process drops at this moment: two would wait for each other's rows
    before = tx.now - keep
    rows = tx.records(_Aged, part.following, after=get_mark(tx, part.name), most=BATCH)
    ids = [row.id for row in takewhile(lambda row: row.at is not None and row.at < before, rows)]
    if ids:
        for statement in part.drop:
            tx.later(statement, ids=ids, before=before, no_hash=b"")
        set_mark(tx, part.name, ids[-1])
    return len(ids)


_LEAST = timedelta(seconds=5)
"""Delay of a tick that a busy machine may cause."""
_SHARE = 4
_SET_BACK = timedelta(seconds=1)
_LOOKED = "looked"
"""Name of the time of the last look of any scheduler."""


_SET_CLOCKS = "set_clocks"
"""Name of the periods in which the clock was set back; at most `_MAX_PERIODS`, the latest ones."""
_MAX_PERIODS = 100


class SetClock(NamedTuple):
    """A period whose times occurred twice: the database's clock was set back from `until` to `since`."""

    since: datetime
    until: datetime


def list_set_clocks(tx: Transaction) -> list[SetClock]:
    """Return the periods that schedulers noted: the clock was set back, by more than a second each time."""
    stored = load_value(tx, _SET_CLOCKS)
    listed = stored.data["periods"] if stored is not None else []
    return [SetClock(*map(read_time, one)) for one in listed]


def get_steady_since(tx: Transaction) -> tuple[datetime, datetime] | None:
    """Return since when schedulers have looked without a lapse, and the last look; `None` if none ever looked."""
    last = load_value(tx, _LOOKED)
    if last is None:
        return None
    return read_time(last.data.get("since", utc_text(last.at))), last.at


_STARTED = "started"
"""Name of the time at which the processes of a cluster were started."""


def note_start(tx: Transaction, *, over: bool = False) -> None:
    """Note that the processes of a cluster are being started, or that they have ended."""
    store_value(tx, _STARTED, tx.now, {"over": over})


def is_starting(tx: Transaction, within: timedelta, after: datetime | None = None) -> bool:
    """Return True if processes were started within that time, later than a moment, and have not ended."""
    last = load_value(tx, _STARTED)
    if last is None or last.data["over"] or tx.now - last.at >= within:
        return False
    return after is None or last.at > after


def bridge_lapse(tx: Transaction, silent_after: timedelta, *, is_new: bool) -> bool:
    """Record a scheduler's look. If none has looked for too long, or a clock was set, move times by that.

    Deadlines of leases and heartbeats of nodes move. A lease that was not begun in time goes back at once, as its node
    may have been refused it. Rests of hosts end earlier by as much as the clock was set back.

    Args:
        silent_after: how long a lease lasts without a renewal.
        is_new: it is the first look of this scheduler, which does not warn of the time before.

    Returns:
        True if the clock was set back: what a scheduler remembers with a time is of no use then.
    """
    last = load_value(tx, _LOOKED)
    gap = tx.now - last.at if last is not None else timedelta()
    limit = max(_LEAST, silent_after / _SHARE)
    is_steady = last is not None and -_SET_BACK <= gap <= limit
    since = last.data.get("since") if last is not None and is_steady else None
    store_value(tx, _LOOKED, tx.now, {"since": since or utc_text(tx.now)})
    if last is None or is_steady:
        return False
    move = max(gap - limit, timedelta())
    said = "no scheduler looked for %.0f s, or the database's clock was set: leases last %.0f s longer"
    log.log(logging.INFO if is_new else logging.WARNING, said, gap.total_seconds(), move.total_seconds())
    if gap < timedelta():
        periods = [*list_set_clocks(tx), SetClock(tx.now, last.at)][-_MAX_PERIODS:]
        listed = [[utc_text(one.since), utc_text(one.until)] for one in periods]
        store_value(tx, _SET_CLOCKS, tx.now, {"periods": listed})
        hosts.shorten_rests(tx, -gap)
    latest = tx.now + silent_after  # of a lease that was renewed at this moment
    changes = [
        {"id": row.id, "lease_deadline": min((row.lease_deadline or latest) + move, latest)}
        for row in tx.records(LockedSubtask, _OPEN_LEASES, now=tx.now)
    ]
    tx.update("subtasks", ("id",), changes)
    nodes.move_heartbeats(tx, move)
    return gap < timedelta()


# A locked lease is being renewed or closed by whoever locked it.
_OPEN_LEASES = f"""
    {SUBTASKS} WHERE state = '{State.CRAWL}' AND (lease_started OR lease_deadline > :now)
    ORDER BY id FOR UPDATE SKIP LOCKED
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
