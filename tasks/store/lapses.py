"""Times in which no scheduler looked, or in which the database's clock was set: they are held against nobody.

Silence counts only while somebody listens. Where the database, Redis or the scheduler was away, or a clock was set, the
time between two looks is long or negative; leases that seem to have run out then get a new time, and whoever is alive
renews them.

A scheduler that only looks late, again and again, must not keep the leases of the dead for ever: after such a time, a
short one soon after it gives none. Whoever lives has renewed its lease since.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, select, update

from tasks.domain.states import State
from tasks.store.marks import mark_of, set_mark
from tasks.store.tables import subtasks

log = logging.getLogger("reviewloop.store")

_LEAST = timedelta(seconds=5)
"""A tick may be late by so much on a busy machine."""
_SHARE = 4
"""Looks lie no further apart than this share of the silence after which work is taken back."""
_SET_BACK = timedelta(seconds=1)
_LOOKED, _BRIDGED = "looked", "bridged"
"""Names of the marks of a look, and of a new time for leases; their numbers are milliseconds since 1970."""
_APART = 2
"""Short lapses give leases a new time no more often than this, in times of the silence that a lease lasts."""


def longest(silent_after: timedelta) -> timedelta:
    """How far two looks may lie apart, where a lease lasts so long without a renewal."""
    return max(_LEAST, silent_after / _SHARE)


def mark_look(conn: Connection, now: datetime) -> None:
    """Leave a mark of this look for other schedulers."""
    _mark(conn, _LOOKED, now)


def _mark(conn: Connection, name: str, now: datetime) -> None:
    set_mark(conn, name, int(now.timestamp() * 1000))


def _marked(conn: Connection, name: str) -> datetime | None:
    at = mark_of(conn, name)
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def bridge(conn: Connection, now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    """Give every lease a new time where nobody has looked for too long; True where it did.

    Args:
        last: the last look of this scheduler; None: it has just begun. Where that is too long ago, another one may
            have looked (`mark_look`).
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
    conn: Connection, now: datetime, last: datetime | None, other: datetime | None, silent_after: timedelta
) -> bool:
    """Whether somebody looked within a lease's time, and leases got a new time not long ago."""
    looks = [now - at for at in (last, other) if at is not None]
    bridged = _marked(conn, _BRIDGED)
    return (
        bool(looks)
        and timedelta() <= min(looks) < silent_after
        and bridged is not None
        and timedelta() <= now - bridged < _APART * silent_after
    )


def _near(now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    return last is not None and -_SET_BACK <= now - last <= longest(silent_after)
