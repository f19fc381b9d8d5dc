"""The sweep that links reposts, in small steps: comparing holds up no writer, and a step writes only what it found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection

from tasks.store import reposts
from tasks.store.database import Store, read_now
from tasks.store.writer import Operation

COMPARED_AT_ONCE = 200
"""Reviews of a step. Their bands are 2 to 3 ms of work in a transaction that SQLite's other writers wait for."""
SHARE_S = 0.05
"""CPU seconds of comparing in one sweep, every 2 s: with the writing about 3 % of a core, as a crawl needs the rest."""


def link_reposts(store: Store, write: Callable[[Operation[bool]], bool], cpu_s: Callable[[], float]) -> int:
    """Link the next reviews whose text is nearly an earlier one's, until `SHARE_S` is used or there are no more.

    It ends too where another scheduler took the same step: that one goes on.

    Args:
        store: to read from.
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        cpu_s: CPU seconds of this thread.

    Returns:
        How many reviews were looked at.
    """
    end_s = cpu_s() + SHARE_S
    looked = 0
    while cpu_s() < end_s:
        with store.read() as conn:
            step = reposts.find(conn, read_now(conn), COMPARED_AT_ONCE)
        if step is None or not write(partial(_save, step)):
            break
        looked += step.looked
    return looked


def _save(step: reposts.Step, conn: Connection, _now: object) -> bool:
    return reposts.save(conn, step)
