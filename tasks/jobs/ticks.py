"""Run a sweep by its name in one transaction. Both runners call it on schedule and on demand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from tasks.jobs import recalling, sweeps, turn
from tasks.jobs.context import Context
from tasks.jobs.measurements import save_measurements
from tasks.store.queue import schedules, transitions, upkeep
from tasks.store.queue.leases import Lease
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction


def _measure(tx: Transaction, context: Context) -> None:
    """Store measurements for people that are cheap to get only here."""
    save_measurements(tx, dict(context.state.sweep_times), context.state.grants)
    transitions.add_up_queues(tx)


_SWEEPS: dict[str, Callable[[Transaction, Context], object]] = {
    "admit": sweeps.admit,
    "recall": recalling.recall,
    "wake": sweeps.wake,
    "measure": _measure,
    "recrawl_due": lambda tx, _: schedules.recrawl_due(tx),
}
"""Sweeps that give no leases, by name."""

_LEASING: dict[str, Callable[[Transaction, Context], list[Lease]]] = {
    "allocate": sweeps.allocate,
    "rebalance": sweeps.rebalance,
    "turn": turn.turn,
}
"""Sweeps that give leases, by name."""

_LOCK_S = 2.0
"""Maximum seconds that a sweep waits for a row that another process holds. The next sweep tries again."""


_LOOK_EVERY = timedelta(seconds=2)


def _look(tx: Transaction, context: Context) -> None:
    """Record every few seconds that a scheduler looks. After a gap or a change of a clock, move deadlines."""
    state = context.state
    if state.looked_at is None or not timedelta() <= tx.now - state.looked_at < _LOOK_EVERY:
        silent_after = timedelta(seconds=context.settings.recall.silent_after_s)
        is_new = not any(times.count for times in state.sweep_times.values())
        if upkeep.bridge_lapse(tx, silent_after, is_new=is_new):
            state.begin_anew()
            state.forget()
        state.looked_at = tx.now


def tick(tx: Transaction, context: Context, names: Sequence[str]) -> list[Lease]:
    """Run sweeps in this order under the scheduler's lock.

    Returns:
        The new leases. Notify their nodes after the commit. There are none if another scheduler holds the lock: it
        does the same work.
    """
    if not try_lock(tx, "scheduler", _LOCK_S):
        return []
    given: list[Lease] = []
    state = context.state
    try:
        _look(tx, context)
        for name in names:
            began_s = time.monotonic()
            if name in _LEASING:
                given += _LEASING[name](tx, context)
            else:
                _SWEEPS[name](tx, context)
            state.sweep_times[name].add(time.monotonic() - began_s)
    except BaseException:
        state.forget()  # the rows that it read are now rolled back
        raise
    return given
