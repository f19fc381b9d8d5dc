"""Checks whether the survivors of a fault go on in time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from research.chaos.diagnosis import stood_still
from research.chaos.movement import can_go_on
from research.chaos.watch import Watch
from tasks.store.sql.database import Store, read_now

STALL_S = 20.0
"""They go on within this time after the fault, or after the return of the server that was the fault."""

_QUIET_S = 3.0
_LOOK_EVERY_S = 1.0


class StallWatch:
    """Looks for a stall: nothing moved for `STALL_S`, while there was work that needs nobody who is out of order.

    Args:
        store: opened past all links; asked only while its server is there.
        without: nodes that are out of order.
        free_s: since when nothing holds the survivors up; None: a server is away (see `returned`).
        waits: tells what every program waits for.
        clock: that of the watch.

    Attributes:
        stalled: what stood still; None: nothing so far.
    """

    def __init__(
        self,
        watch: Watch,
        store: Store,
        without: Collection[str],
        free_s: float | None,
        waits: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._watch = watch
        self._store = store
        self._without = without
        self._free_s = free_s
        self._waits = waits
        self._clock = clock
        self._looked_s = 0.0
        self._idle_s: float | None = None
        self.stalled: str | None = None

    def returned(self, now_s: float) -> None:
        """The server is back."""
        self._free_s = now_s

    def look(self) -> None:
        """Look, about once a second. Raises what the database raises."""
        now_s = self._clock()
        if self._free_s is None or self.stalled is not None or now_s < self._looked_s + _LOOK_EVERY_S:
            return
        self._looked_s = now_s
        quiet_s = max(self._free_s, self._watch.last_before(now_s))
        if now_s - quiet_s < _QUIET_S:
            self._idle_s = None
            return
        with self._store.read() as conn:
            if not can_go_on(conn, read_now(conn), self._without):
                self._idle_s = now_s
                self._watch.note_idle(now_s)
            elif now_s - max(quiet_s, self._idle_s or quiet_s) > STALL_S:
                self.stalled = f"{stood_still(conn, read_now(conn))}; {self._waits()}"
