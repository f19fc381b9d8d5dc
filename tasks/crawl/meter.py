"""Measuring an attempt: active and waiting seconds, requests, bytes and errors, by a clock that is passed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Meter:
    """Sums of one attempt.

    Active is the time in which at least one request of the attempt is in flight or being read; waiting is the time
    in which nothing is, because every lane waits for a rate limit. They never overlap.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._working = 0
        self._waiting = 0
        self._since = clock()
        self._active_s = 0.0
        self._wait_s = 0.0
        self.requests = 0
        self.bytes = 0
        self.errors: Counter[str] = Counter()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Around a request and the reading of its answer."""
        self._settle()
        self._working += 1
        try:
            yield
        finally:
            self._settle()
            self._working -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside `active`, around a wait for a granted send time: that lane is not active meanwhile."""
        self._settle()
        self._working -= 1
        self._waiting += 1
        try:
            yield
        finally:
            self._settle()
            self._waiting -= 1
            self._working += 1

    @property
    def active_s(self) -> float:
        """Active seconds so far."""
        self._settle()
        return self._active_s

    @property
    def wait_s(self) -> float:
        """Waiting seconds so far."""
        self._settle()
        return self._wait_s

    def _settle(self) -> None:
        now = self._clock()
        elapsed = now - self._since
        self._since = now
        if self._working:
            self._active_s += elapsed
        elif self._waiting:
            self._wait_s += elapsed
