"""Dropping old data: that behind old decisions, old responses, old refusals. Never a transition."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, null, update

from tasks.store.tables import attempts, events, host_rests

KEEP_DETAIL = timedelta(days=90)
"""How long `explain` shows the candidates of a decision, and `failed show` the last response."""

KEEP_BREAKER = timedelta(days=7)
"""How long after its rest a host's refusals are dropped, if no attempt probed it."""


def drop_old(conn: Connection, now: datetime) -> int:
    """Empty the details of events and attempts older than `KEEP_DETAIL`, and drop breakers that no attempt probed.

    The event log itself is append-only: its transitions stay, so that `verify` can always prove them.

    Returns:
        How many rows were changed.
    """
    old = now - KEEP_DETAIL
    changed = conn.execute(
        update(events).where(events.c.at < old, events.c.detail.is_not(None)).values(detail=null())
    ).rowcount
    changed += conn.execute(
        update(attempts)
        .where(attempts.c.ended_at < old, attempts.c.last_response.is_not(None))
        .values(last_response=null())
    ).rowcount
    changed += conn.execute(delete(host_rests).where(host_rests.c.until <= now - KEEP_BREAKER)).rowcount
    return changed
