"""How soon one turn of the loop may follow another."""

from __future__ import annotations

SHORTEST_S = 0.15
"""Seconds within which free slots are served by the same turn. Until then nodes begin prefetched leases."""
OUT_OF_WORK_S = 0.05
"""The same in seconds if a node is out of work."""
PAUSE = 6.0
"""Pause after a turn as a multiple of its duration, so that turns take at most a seventh of the time."""


class TurnPace:
    """Computes the pause between turns. It grows with their duration, and is short if a node is out of work."""

    def __init__(self) -> None:
        self._ended_s: float | None = None
        self._took_s = 0.0

    def record_end(self, now_s: float, took_s: float) -> None:
        """Record the end of a turn.

        Args:
            now_s: time of any clock in seconds.
            took_s: CPU seconds of the turn. A busy machine or database must not delay the next one.
        """
        self._ended_s, self._took_s = now_s, took_s

    def pause_s(self, now_s: float, *, out_of_work: bool) -> float:
        """Return the seconds until the next turn may begin; 0 for now.

        Args:
            now_s: time of the same clock as in `record_end`.
            out_of_work: True if a node has neither work nor prefetched leases.
        """
        if self._ended_s is None:
            return 0.0
        apart_s = OUT_OF_WORK_S if out_of_work else max(SHORTEST_S, PAUSE * self._took_s)
        return min(apart_s, max(0.0, self._ended_s + apart_s - now_s))
