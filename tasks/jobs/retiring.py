"""The sweep `retention`: drops what is old in many short transactions, outside the scheduler's lock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tasks.store import retention
from tasks.store.writer import Operation


def drop_old(
    write: Callable[[Operation[int]], int],
    keep_log: timedelta | None,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Drop all that is old, in batches; it ends early where another process is at it, which then does the rest.

    Args:
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        keep_log: how long after its end the log of a subtask is kept; None: for ever.
        go_on: asked before each batch; what is left is for the next sweep.

    Returns:
        How many rows were looked at.
    """
    looked = 0
    for step in retention.steps(keep_log):
        while go_on() and (n := write(step)):
            looked += n
    return looked
