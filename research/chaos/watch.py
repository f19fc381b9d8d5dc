"""Watches whether anything moves: asks the store several times a second, and finds stalls after a fault."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from research.chaos.movement import can_go_on, movement
from tasks.domain.errors import StoreFailed
from tasks.store.queue import transitions
from tasks.store.sql.database import Store
from tasks.store.sql.postgres import open_transactions

log = logging.getLogger("reviewloop.chaos")

STALL_S = 20.0
"""The survivors go on within this time after the fault, or after the return of the server that was the fault."""

_EVERY_S = 0.25
_QUIET_S = 3.0
_LOOK_EVERY_S = 1.0


class Watch:
    """Follows the store in its own thread, so that only this thread waits if the database does not answer.

    Args:
        store: opened past all links.

    Attributes:
        answered_s, moved_s: when the database last answered, and when something last moved (`time.monotonic`).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answered_s = self.moved_s = time.monotonic()
        self._stop = Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch during the block. The thread is left behind if the database does not answer at the end."""
        thread = Thread(target=self._run, name="chaos-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(5.0)

    def _run(self) -> None:
        before: tuple[Any, ...] | None = None
        while not self._stop.wait(_EVERY_S):
            try:
                with self._store.read() as tx:
                    now = movement(tx)
            except StoreFailed as error:
                log.debug("no answer: %s", error)
                continue
            self.answered_s = time.monotonic()
            if before is not None and now != before:
                self.moved_s = self.answered_s
            before = now


class StallWatch:
    """Finds a stall: nothing moves for `STALL_S` although there is work that no program out of order is needed for.

    Args:
        store: opened past all links; asked only while its server is there.
        without: nodes that are out of order.
        moved_s: returns when something last moved.
        clock: returns the time on the same scale.

    Attributes:
        free_s: since when nothing holds the survivors up; None while a server is away.
        stalled: what stood still, or None.
    """

    def __init__(
        self,
        store: Store,
        without: Collection[str],
        moved_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._without = without
        self._moved_s = moved_s
        self._clock = clock
        self._looked_s = self._idle_s = float("-inf")
        self.free_s: float | None = None
        self.stalled: str | None = None

    def look(self) -> None:
        """Look for a stall, about once a second. Raises what the database raises."""
        now_s = self._clock()
        if self.free_s is None or self.stalled is not None or now_s < self._looked_s + _LOOK_EVERY_S:
            return
        self._looked_s = now_s
        quiet_s = max(self.free_s, self._moved_s())
        if now_s - quiet_s < _QUIET_S:
            return
        with self._store.read() as tx:
            if not can_go_on(tx, self._without):
                self._idle_s = now_s
            elif now_s - max(quiet_s, self._idle_s) > STALL_S:
                queues = [f"{n} in {state}" for state, n in transitions.count_queues(tx).items() if n]
                sessions = [
                    f"{state}, waits for {waits or 'nothing'}, {seconds:.0f} s: {' '.join(query.split())}"
                    for state, waits, seconds, query in open_transactions(tx)
                ]
                self.stalled = f"{', '.join(queues)}; transactions: {'; '.join(sessions) or 'none'}"
