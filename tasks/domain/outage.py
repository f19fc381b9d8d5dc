"""Log of an outage that many callers notice: one line when it begins and one when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

_SETTLE_S = 30.0
"""Seconds after an outage. Until then a process may still find connections that broke during it."""


class Outage:
    """The state, there or away, of a server or lock that this process needs. Several threads may use it.

    Everything that asks for it reports here, and no other part logs that it is away. Without it, each of a process's
    connections logs the same outage again and again.

    Args:
        begins: first line of an outage; the error follows.
        ends: last line of an outage; its duration follows.
        clock: monotonic seconds.

    Attributes:
        is_away: True during an outage.
    """

    def __init__(
        self,
        log: logging.Logger,
        begins: str,
        ends: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._begins = begins
        self._ends = ends
        self._clock = clock
        self._lock = Lock()
        self.is_away = False
        self._since_s = 0.0
        self._ended_s: float | None = None
        self._is_logged = False

    def note_loss(self, error: object) -> None:
        """Record that it is away. Log the first such error of an outage.

        Soon after an outage, an error is logged only if it lasts: most come from connections of that outage.
        """
        with self._lock:
            now_s = self._clock()
            if not self.is_away:
                self.is_away = True
                self._since_s = now_s
            is_settling = self._ended_s is not None and now_s - self._ended_s < _SETTLE_S
            if self._is_logged or is_settling:
                return
            self._is_logged = True
        reason = " ".join(str(error).split()) or type(error).__name__
        self._log.warning("%s: %s", self._begins, reason)

    def note_return(self) -> None:
        """Note that it was there. Log it if that ends an outage that was logged."""
        if not self.is_away:
            return
        with self._lock:
            lasted_s = self._clock() - self._since_s
            was_logged = self._is_logged
            self.is_away = False
            self._is_logged = False
            self._ended_s = self._clock()
        if was_logged:
            self._log.warning("%s after %.1f s", self._ends, lasted_s)

    @property
    def lasted_s(self) -> float:
        """Seconds since it was first found away; 0 while it is there."""
        with self._lock:
            if not self.is_away:
                return 0.0
            return self._clock() - self._since_s
