"""Watches whether anything moves: asks the store several times a second, and measures how long it stood still."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Event, Thread

from sqlalchemy.exc import DBAPIError

from research.chaos.movement import Movement, movement
from tasks.store.sql.database import Store

log = logging.getLogger("reviewloop.chaos")

_EVERY_S = 0.25

USUAL_S = 1.0
"""Between two signs of progress so many seconds may lie without anything being wrong."""


def standstill_s(
    begin_s: float, end_s: float, progress_s: Sequence[float], usual_s: float = USUAL_S
) -> float:
    """Seconds of a time in which nothing moved, beyond the usual distance of two signs of progress.

    Args:
        progress_s: when something moved, in order; only what lies within the time counts.
    """
    within = [at for at in progress_s if begin_s < at < end_s]
    return sum(max(0.0, after - before - usual_s) for before, after in pairwise([begin_s, *within, end_s]))


class Watch:
    """Looks in a thread of its own: it waits where the database does not answer, and nobody else does.

    Args:
        store: opened past all links.
        clock: seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._moved: list[float] = []
        self._idle: list[float] = []
        self._answered_s = clock()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="chaos-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; a database that does not answer is left behind."""
        self._stop.set()
        self._thread.join(5.0)

    @property
    def answered_s(self) -> float:
        """When the database answered last."""
        return self._answered_s

    def note_idle(self, at_s: float) -> None:
        """At this time there was nothing that could move."""
        self._idle.append(at_s)

    def moved_since(self, at_s: float) -> bool:
        """Whether anything moved after a time."""
        return bool(self._moved) and self._moved[-1] > at_s

    def first_after(self, at_s: float) -> float | None:
        """When something moved first after a time; None: not yet."""
        place = bisect_left(self._moved, at_s)
        return self._moved[place] if place < len(self._moved) else None

    def last_before(self, at_s: float) -> float:
        """When something moved last before a time; the time itself where nothing did."""
        place = bisect_left(self._moved, at_s)
        return self._moved[place - 1] if place else at_s

    def standstill_s(self, begin_s: float, end_s: float) -> float:
        """Seconds of a time in which nothing moved that could have (see `standstill_s`)."""
        return standstill_s(begin_s, end_s, sorted([*self._moved, *self._idle]))

    def _run(self) -> None:
        before: Movement | None = None
        while not self._stop.wait(_EVERY_S):
            try:
                with self._store.read() as conn:
                    now = movement(conn)
            except DBAPIError as error:
                log.debug("no answer: %s", error)
                continue
            at = self._answered_s = self._clock()
            if before is not None and now != before:
                self._moved.append(at)
            before = now
