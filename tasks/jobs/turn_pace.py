"""How soon one turn of the loop may follow another."""

from __future__ import annotations

SHORTEST_S = 0.15
"""Slots that become free within this time are served by one turn: until then nodes begin what they have prefetched."""
OUT_OF_WORK_S = 0.05
"""The same where a node is out of work."""
PAUSE = 6.0
"""The pause between two turns, as a multiple of what the first one took: turns take at most a seventh of the time."""


class TurnPace:
    """Keeps turns apart, the further the longer they take; only a little where a node is out of work."""

    def __init__(self) -> None:
        self._ended_s: float | None = None
        self._took_s = 0.0

    def ended(self, now_s: float, took_s: float) -> None:
        """A turn has ended.

        Args:
            now_s: seconds of any clock.
            took_s: CPU seconds it took: a busy machine or database is no reason to come later.
        """
        self._ended_s, self._took_s = now_s, took_s

    def pause_s(self, now_s: float, *, out_of_work: bool) -> float:
        """Seconds until the next turn may begin; 0: now.

        Args:
            now_s: of the clock that `ended` was told.
            out_of_work: a node has nothing to do and nothing prefetched.
        """
        if self._ended_s is None:
            return 0.0
        apart_s = OUT_OF_WORK_S if out_of_work else max(SHORTEST_S, PAUSE * self._took_s)
        return min(apart_s, max(0.0, self._ended_s + apart_s - now_s))
