"""Finds frozen processes: those of which no thread has run for a while.

A process that waits for work wakes several times a second to look at the time. One that was stopped (SIGSTOP, a
debugger), or whose threads wait for each other, runs never; it still holds its connections, so nobody else notices.
One whose loop is held does run: its pulse (`app.run.cluster.pulse`) tells, later, as a busy one is not to be killed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FROZEN_S = 5.0
"""A process that has not run for so long is frozen."""

_PROC = Path("/proc")
_COUNTED = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


class Stillness:
    """Since when processes have not run, as far as was looked.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[int, tuple[int, float]] = {}

    def still_s(self, pid: int) -> float:
        """Seconds since a look at this process found that it had run; 0 where it can't be known (not on Linux)."""
        now, switches = self._clock(), _switches(pid)
        before, since = self._seen.get(pid, (None, now))
        if switches is None or switches != before:
            since = now
        self._seen[pid] = switches or 0, since
        return now - since


def _switches(pid: int) -> int | None:
    """How often the threads of a process have been switched to and from; None where that is not told."""
    try:
        return sum(
            int(line.rpartition(":")[2])
            for thread in (_PROC / str(pid) / "task").iterdir()
            for line in (thread / "status").read_text().splitlines()
            if line.startswith(_COUNTED)
        )
    except (OSError, ValueError):
        return None
