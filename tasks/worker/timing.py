"""Measuring an attempt: active and waiting seconds, requests, bytes and errors, by a clock that is passed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tasks.scheduling.proximity.response_times import RoundTrip, without_noise

MOST_TIMED = 50
"""Response times an attempt keeps."""

FEWEST_TIMED = 3
"""Response times below which noise can't be told from distance (`sites ping` goes by it, too)."""


def _nothing() -> None:
    return


class Timing:
    """Sums of one attempt.

    Active is the time in which at least one request of the attempt is in flight or being read; waiting is the time
    in which nothing is, because every lane waits for a rate limit. They never overlap.

    Attributes:
        active: a context manager around a request and the reading of its answer.
        first_bytes_s: response times of the requests to the attempt's own site that were answered, the first
            `MOST_TIMED` of them.
        waiting: a context manager inside `active`, around a wait for a granted send time: that lane is not active
            meanwhile.

    Args:
        on_busy, on_idle: called whenever something of the attempt becomes active, and nothing is any more.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        on_busy: Callable[[], None] = _nothing,
        on_idle: Callable[[], None] = _nothing,
    ) -> None:
        self._clock = clock
        self._on_busy = on_busy
        self._on_idle = on_idle
        self._working = 0
        self._waiting = 0
        self._since = clock()
        self._active_s = 0.0
        self._wait_s = 0.0
        self.requests = 0
        self.bytes = 0
        self.errors: Counter[str] = Counter()
        self.first_bytes_s: list[float] = []
        self.active = _Span(self, 1, 0)
        self.waiting = _Span(self, -1, 1)

    @property
    def at_host(self) -> bool:
        """Whether anything is active, or waits for a send time."""
        return self._working + self._waiting > 0

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

    def answered(self, first_byte_s: float) -> None:
        """The attempt's own site answered a request, so many seconds after it was sent; 0: not known."""
        if first_byte_s > 0.0 and len(self.first_bytes_s) < MOST_TIMED:
            self.first_bytes_s.append(first_byte_s)

    def round_trip(self) -> RoundTrip | None:
        """How far the site is from this node, with the noise removed; None where too few requests were answered."""
        if len(self.first_bytes_s) < FEWEST_TIMED:
            return None
        values_ms = [seconds * 1000.0 for seconds in self.first_bytes_s]
        return RoundTrip(without_noise(values_ms), len(values_ms))

    def _change(self, working: int, waiting: int) -> None:
        self._settle()
        self._working += working
        self._waiting += waiting
        if working > 0 and self._working == working:
            self._on_busy()
        elif working < 0 and self._working == 0:
            self._on_idle()

    def _settle(self) -> None:
        now = self._clock()
        elapsed = now - self._since
        self._since = now
        if self._working:
            self._active_s += elapsed
        elif self._waiting:
            self._wait_s += elapsed


class _Span:
    """A context manager that may be entered by several lanes at once."""

    __slots__ = ("_timing", "_waiting", "_working")

    def __init__(self, timing: Timing, working: int, waiting: int) -> None:
        self._timing = timing
        self._working = working
        self._waiting = waiting

    def __enter__(self) -> None:
        self._timing._change(self._working, self._waiting)

    def __exit__(self, *_: object) -> None:
        self._timing._change(-self._working, -self._waiting)
