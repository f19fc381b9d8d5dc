"""Times in which no scheduler looked, or in which the database's clock was set: they are held against nobody.

Silence counts only while somebody listens. Where the database, Redis or the scheduler was away, or a clock was set, the
time between two looks is long or negative; leases that seem to have run out then get a new time, and whoever is alive
renews them.
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
_MARK = "looked"
"""Name of the mark; its number is milliseconds since 1970."""


def longest(silent_after: timedelta) -> timedelta:
    """How far two looks may lie apart, where a lease lasts so long without a renewal."""
    return max(_LEAST, silent_after / _SHARE)


def mark_look(conn: Connection, now: datetime) -> None:
    """Leave a mark of this look for other schedulers."""
    set_mark(conn, _MARK, int(now.timestamp() * 1000))


def _marked(conn: Connection) -> datetime | None:
    """The last look that any scheduler left a mark of."""
    at = mark_of(conn, _MARK)
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def bridge(conn: Connection, now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    """Give every lease a new time where nobody has looked for too long; True where that was so.

    Args:
        last: the last look of this scheduler; None: it has just begun. Where that is too long ago, another one may
            have looked (`mark_look`).
        silent_after: how long a lease lasts without a renewal.
    """
    if _near(now, last, silent_after):
        return False
    other = _marked(conn)
    if _near(now, other, silent_after):
        return False
    last = last if last is not None else other
    if last is not None and now < last:
        back = last - now
        log.warning(
            "the database's clock was set back by %.0f s: leases get a new time", back.total_seconds()
        )
    elif last is not None:
        away_s = (now - last).total_seconds()
        log.warning(
            "no scheduler looked for %.0f s, or the database's clock was set: leases get a new time", away_s
        )
    held = subtasks.c.state == State.CRAWL
    until = now + silent_after
    off = held & (subtasks.c.lease_deadline != until)
    if last is None or last <= now:
        off = held & (subtasks.c.lease_deadline < until)
    # A locked lease is being renewed or closed by whoever locked it.
    free = select(subtasks.c.id).where(off).with_for_update(skip_locked=True).scalar_subquery()
    conn.execute(update(subtasks).where(subtasks.c.id.in_(free)).values(lease_deadline=until))
    return True


def _near(now: datetime, last: datetime | None, silent_after: timedelta) -> bool:
    return last is not None and -_SET_BACK <= now - last <= longest(silent_after)
