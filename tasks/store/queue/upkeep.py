"""The upkeep of a store: it drops old data, and the downtime of schedulers makes no lease late.

Retention works in batches, each in its transaction: details of events, old responses, rests, refused records, and event
logs. Events and attempts are numbered as time goes on, so each part walks its table by number and leaves a mark of how
far it has come: a batch costs the same however long the table is, and no row is read twice. The newest row is never
processed: its number must not be given again. A log goes as a whole, with the last event of a subtask that is DONE or
CANCELLED; its row records this (`log_dropped`), so that `verify` knows what it can no longer prove. The rows of
subtasks, attempts, targets and pages stay.

Silence counts only while a scheduler looks. If the database, Redis or the scheduler was away, or a clock was set, the
time between two looks is long or negative. Leases that seem to have run out then get a new time, and each node that
lives renews its own. A scheduler that only looks late, again and again, must not keep the leases of dead nodes for
ever: after such a time, a short one soon after it gives no new time. Each node that lives has renewed its lease since.

The module also stores single values: marks of sweeps, measurements of the scheduler's process for metrics, and the
trained run-time model of the 2019 balance paper, one row a strategy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, Select, Table, bindparam, delete, null, select, update

from tasks.domain.grants import AddressGrants, Grants, HostGrants
from tasks.domain.states import State
from tasks.store.sql.database import columns_of, insert_or, try_lock
from tasks.store.sql.prepared import Prepared, defer
from tasks.store.sql.tables import (
    attempts,
    events,
    host_rests,
    measurements,
    refused_reviews,
    run_time_model,
    subtasks,
    sweep_marks,
)
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

KEEP_DETAIL = timedelta(days=90)
"""How long `explain` shows the candidates of a decision, `failed show` the last response, and `judge` refused texts."""

KEEP_BREAKER = timedelta(days=7)
"""How long after its rest a host's refusals are dropped, if no attempt probed it."""

BATCH = 1000
"""Rows of a transaction: some 10 ms, which SQLite's other writers wait for."""

_LOCK_S = 2.0

Step = Callable[[Transaction, datetime], int]
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
    always = (empty_details, empty_responses, drop_rests, drop_refused)
    if keep_log is None:
        return always
    kept = keep_log
    return (*always, lambda conn, now: drop_logs(conn, now, kept))


def empty_details(conn: Transaction, now: datetime) -> int:
    """Empty the details of the next events older than `KEEP_DETAIL`; their transitions stay."""
    old = _old(conn, "details", _EVENTS, now - KEEP_DETAIL)
    if old:
        conn.execute(_emptied(events, "detail", old))
    return len(old)


def empty_responses(conn: Transaction, now: datetime) -> int:
    """Empty the last responses of the next attempts that ended longer ago than `KEEP_DETAIL`."""
    old = _old(conn, "responses", _ATTEMPTS, now - KEEP_DETAIL)
    if old:
        conn.execute(_emptied(attempts, "last_response", old))
    return len(old)


def drop_rests(conn: Transaction, now: datetime) -> int:
    """Drop breakers of hosts that no attempt probed; there are few, at most one a host and node."""
    if not _free(conn):
        return 0
    return conn.execute(delete(host_rests).where(host_rests.c.until <= now - KEEP_BREAKER)).rowcount


def drop_refused(conn: Transaction, now: datetime) -> int:
    """Drop the next records that were refused longer ago than `KEEP_DETAIL`; without a mark, as these go themselves."""
    if not _free(conn):
        return 0
    r = refused_reviews.c
    first = select(r.id).order_by(r.id).limit(BATCH)
    old = r.id.in_(first.scalar_subquery()) & (r.refused_at < now - KEEP_DETAIL)
    return conn.execute(delete(refused_reviews).where(old)).rowcount


def drop_logs(conn: Transaction, now: datetime, keep: timedelta) -> int:
    """Drop the logs of subtasks that have been DONE or CANCELLED for longer than `keep`, by the next old events."""
    old = _old(conn, "logs", _EVENTS, now - keep)
    if not old:
        return 0
    s = subtasks.c
    ended = s.id.in_({row.subtask_id for row in old}), s.state.in_((State.DONE, State.CANCELLED))
    done = list(conn.scalars(select(s.id).where(*ended, s.changed_at < now - keep).order_by(s.id)))
    conn.execute(delete(events).where(events.c.subtask_id.in_(done)))
    conn.execute(update(subtasks).where(s.id.in_(done)).values(log_dropped=True))
    return len(old)


def _old(conn: Transaction, part: str, following: Select[Any], before: datetime) -> Sequence[Any]:
    """The next rows of a part that are older, up to the first that is not; the mark is moved behind them."""
    if not _free(conn):
        return ()
    after = mark_of(conn, part) or 0
    rows = conn.execute(following, {"after": after, "most": BATCH + 1}).all()[:-1]
    young = next((place for place, row in enumerate(rows) if row.at is None or row.at >= before), len(rows))
    if young:
        set_mark(conn, part, rows[young - 1].id)
    return rows[:young]


def _free(conn: Transaction) -> bool:
    """Whether no other process is dropping at this moment: two would wait for each other's rows."""
    return try_lock(conn, "retention", _LOCK_S)


def _following(table: Table, at: Column[Any], *columns: Column[Any]) -> Select[Any]:
    after = bindparam("after", type_=table.c.id.type)
    wanted = select(table.c.id, at.label("at"), *columns)
    return wanted.where(table.c.id > after).order_by(table.c.id).limit(bindparam("most"))


_EVENTS = _following(events, events.c.at, events.c.subtask_id)
_ATTEMPTS = _following(attempts, attempts.c.ended_at)


def _emptied(table: Table, name: str, old: Sequence[Any]) -> Any:
    column = table.c[name]
    rows = table.c.id.between(old[0].id, old[-1].id)
    return update(table).where(rows, column.is_not(None)).values({name: null()})


log = logging.getLogger("reviewloop.store")

_LEAST = timedelta(seconds=5)
"""Delay of a tick that a busy machine may cause."""
_SHARE = 4
"""Looks lie no further apart than this share of the silence after which work is taken back."""
_SET_BACK = timedelta(seconds=1)
_LOOKED, _BRIDGED = "looked", "bridged"
"""Names of the marks of a look, and of a new time for leases; their numbers are milliseconds since 1970."""
_APART = 2
"""Short lapses give leases a new time no more often than this, in times of the silence that a lease lasts."""


def longest_lapse(silent_after: timedelta) -> timedelta:
    """Return the maximum time between two looks. `silent_after`: how long a lease lasts without a renewal."""
    return max(_LEAST, silent_after / _SHARE)


def mark_look(conn: Transaction, now: datetime) -> None:
    """Leave a mark of this look for other schedulers."""
    _mark(conn, _LOOKED, now)


def _mark(conn: Transaction, name: str, now: datetime) -> None:
    set_mark(conn, name, int(now.timestamp() * 1000))


def _marked(conn: Transaction, name: str) -> datetime | None:
    at = mark_of(conn, name)
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def bridge_lapse(conn: Transaction, now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    """Give every lease a new deadline if no scheduler has looked for too long; return True if it did.

    Args:
        last: the last look of this scheduler; `None` if it has just begun. If that is too long ago, another scheduler
            may have looked (`mark_look`).
        silent_after: how long a lease lasts without a renewal.
    """
    if _near(now, last, silent_after):
        return False
    other = _marked(conn, _LOOKED)
    if _near(now, other, silent_after) or _is_late_again(conn, now, last, other, silent_after):
        return False
    just_begun = last is None  # as after the end of a run: nothing to warn of
    last = last if last is not None else other
    if last is not None and now < last:
        back = last - now
        log.warning(
            "the database's clock was set back by %.0f s: leases get a new time", back.total_seconds()
        )
    elif last is not None:
        away_s = (now - last).total_seconds()
        level = logging.INFO if just_begun else logging.WARNING
        said = "no scheduler looked for %.0f s, or the database's clock was set: leases get a new time"
        log.log(level, said, away_s)
    held = subtasks.c.state == State.CRAWL
    until = now + silent_after
    off = held & (subtasks.c.lease_deadline != until)
    if last is None or last <= now:
        off = held & (subtasks.c.lease_deadline < until)
    # A locked lease is being renewed or closed by whoever locked it.
    free = select(subtasks.c.id).where(off).with_for_update(skip_locked=True).scalar_subquery()
    conn.execute(update(subtasks).where(subtasks.c.id.in_(free)).values(lease_deadline=until))
    _mark(conn, _BRIDGED, now)
    return True


def _is_late_again(
    conn: Transaction, now: datetime, last: datetime | None, other: datetime | None, silent_after: timedelta
) -> bool:
    """Return True if a scheduler looked within a lease's time, and leases got a new deadline not long ago."""
    looks = [now - at for at in (last, other) if at is not None]
    bridged = _marked(conn, _BRIDGED)
    return (
        bool(looks)
        and timedelta() <= min(looks) < silent_after
        and bridged is not None
        and timedelta() <= now - bridged < _APART * silent_after
    )


def _near(now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    return last is not None and -_SET_BACK <= now - last <= longest_lapse(silent_after)


def mark_of(conn: Transaction, sweep: str) -> int | None:
    """The mark of a sweep; None: it has left none yet."""
    rows = _MARK.rows(conn, {"of_sweep": sweep})
    return rows[0].last_id if rows else None


_MARK = Prepared(select(sweep_marks.c.last_id).where(sweep_marks.c.sweep == bindparam("of_sweep")))


def set_mark(conn: Transaction, sweep: str, last_id: int) -> None:
    """Leave the mark of a sweep."""
    given = {"sweep": sweep, "last_id": last_id}
    marked = insert_or(conn.dialect, sweep_marks).values(given)
    defer(conn, marked.on_conflict_do_update(index_elements=[sweep_marks.c.sweep], set_=given))


_SCHEDULER = "scheduler"


@dataclass(slots=True)
class SweepTimes:
    """How often a sweep ran, and for how long, without its commit.

    Attributes:
        longest_s: since the times were kept last.
    """

    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Add a run of `seconds`."""
        self.count += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements that a scheduler kept last.

    Attributes:
        at: when.
        sweeps: by name, since its process began.
        grants: by host, of those that don't grant all of their limits.
    """

    at: datetime
    sweeps: Mapping[str, SweepTimes]
    grants: Grants


def save_measurements(
    conn: Transaction, now: datetime, sweeps: Mapping[str, SweepTimes], grants: Grants
) -> None:
    """Store the measurements in place of the earlier ones."""
    data = {
        "sweeps": {name: asdict(times) for name, times in sweeps.items()},
        "hosts": {
            host: {
                "share": one.share,
                "next_s": one.next_s,
                "addresses": {address: [own.share, own.next_s] for address, own in one.addresses.items()},
            }
            for host, one in grants.items()
            if one.share < 1.0 or one.next_s or one.addresses
        },
    }
    values = {"at": now, "data": data}
    statement = insert_or(conn.dialect, measurements).values(name=_SCHEDULER, **values)
    conn.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
    for times in sweeps.values():
        times.longest_s = 0.0


def load_measurements(conn: Transaction) -> Measured | None:
    """The measurements kept last; None: no scheduler has run yet."""
    row = conn.execute(select(measurements).where(measurements.c.name == _SCHEDULER)).one_or_none()
    if row is None:
        return None
    sweeps = {name: SweepTimes(**times) for name, times in row.data["sweeps"].items()}
    grants = {
        host: HostGrants(
            share=one["share"],
            next_s=one["next_s"],
            addresses={
                name: AddressGrants(share=share, next_s=next_s)
                for name, (share, next_s) in one["addresses"].items()
            },
        )
        for host, one in row.data["hosts"].items()
    }
    return Measured(row.at, sweeps, grants)


_STRATEGY = "balance"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A trained network.

    Attributes:
        trained_at: time of training; it identifies the network, as there is one at a time.
        newest_attempt: number of the newest attempt it was trained on.
        network: what `Trained.as_json` made of it.
    """

    trained_at: datetime
    newest_attempt: int
    network: Mapping[str, Any]


def load_model(conn: Transaction) -> StoredModel | None:
    """Return the model trained last, or `None`."""
    row = conn.execute(
        select(*columns_of(StoredModel, run_time_model)).where(run_time_model.c.strategy == _STRATEGY)
    ).one_or_none()
    return None if row is None else StoredModel(*row)


def save_model(conn: Transaction, model: StoredModel) -> None:
    """Keep this model instead of the one before."""
    values = asdict(model)
    conn.execute(
        insert_or(conn.dialect, run_time_model).on_conflict_do_update(
            index_elements=["strategy"], set_=values
        ),
        {"strategy": _STRATEGY, **values},
    )
