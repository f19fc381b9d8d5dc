"""One sweep by its name, in one transaction: what both runners call on schedule and on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from tasks.jobs import sweeps, turn
from tasks.jobs.context import Context
from tasks.store import products, retention
from tasks.store.database import try_lock
from tasks.store.leases import Lease

_SWEEPS: dict[str, Callable[[Connection, datetime, Context], object]] = {
    "admit": sweeps.admit,
    "recall": sweeps.recall,
    "wake": sweeps.wake,
    "recrawl_due": lambda conn, now, _: products.recrawl_due(conn, now),
    "retention": lambda conn, now, _: retention.drop_old(conn, now),
}
"""Sweeps that give no leases, by name."""

_LEASING: dict[str, Callable[[Connection, datetime, Context], list[Lease]]] = {
    "allocate": sweeps.allocate,
    "rebalance": sweeps.rebalance,
    "turn": turn.turn,
}
"""Sweeps that give leases, by name."""


def tick(conn: Connection, now: datetime, context: Context, names: Sequence[str]) -> list[Lease]:
    """Run sweeps in this order under the scheduler's lock.

    Returns:
        Leases that were given: notify their nodes once the transaction is committed. Nothing happens where another
        scheduler holds the lock: it does the same work.
    """
    if not try_lock(conn, "scheduler"):
        return []
    given: list[Lease] = []
    try:
        for name in names:
            if name in _LEASING:
                given += _LEASING[name](conn, now, context)
            else:
                _SWEEPS[name](conn, now, context)
    except BaseException:
        context.state.forget()  # it read what is now rolled back
        raise
    return given
