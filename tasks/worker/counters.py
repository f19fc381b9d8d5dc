"""An attempt's counters and clocks: hits, requests, bytes, errors, and active and waiting seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tasks.domain.attempt_end import Counters
from tasks.domain.pair_stats import RoundTrip
from tasks.scheduling.proximity.response_times import remove_noise

MOST_TIMED = 50
"""Response times an attempt keeps."""

FEWEST_TIMED = 3
"""Minimum number of response times. With fewer, noise looks like distance."""


class Timing:
    """Seconds, requests and bytes of one attempt, by a clock that is passed in.

    Active is the time when at least one request of the attempt is in flight or being read. Waiting is the time
    when none is, because every lane waits for a permit. They never overlap.

    Attributes:
        active: a context manager around a request and the reading of its answer.
        waiting: a context manager inside `active`, around a wait for a permit: that lane is not active meanwhile.
        answers: requests that were answered, by any host, with whatever status.
        statuses: number of sent requests by HTTP status, or by error if there was no answer.
        first_bytes_s: response times of the requests to the attempt's own site that were answered, the first
            `MOST_TIMED` of them.

    Args:
        on_busy, on_idle: called whenever something of the attempt becomes active, and nothing is any more.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        on_busy: Callable[[], None] = lambda: None,
        on_idle: Callable[[], None] = lambda: None,
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
        self.answers = 0
        self.bytes = 0
        self.statuses: Counter[str] = Counter()
        self.first_bytes_s: list[float] = []
        self.active = _Span(self, 1, 0)
        self.waiting = _Span(self, -1, 1)

    @property
    def under_way(self) -> bool:
        """True while anything is active, or waits for a permit."""
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

    def record_answer(self, first_byte_s: float) -> None:
        """Record an answer of the attempt's own site, `first_byte_s` after its request was sent; 0: not known."""
        if first_byte_s > 0.0 and len(self.first_bytes_s) < MOST_TIMED:
            self.first_bytes_s.append(first_byte_s)

    def round_trip(self) -> RoundTrip | None:
        """Return the distance of the site without noise; None if too few requests were answered."""
        if len(self.first_bytes_s) < FEWEST_TIMED:
            return None
        values_ms = [seconds * 1000.0 for seconds in self.first_bytes_s]
        return RoundTrip(remove_noise(values_ms), len(values_ms))

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


@dataclass(slots=True, kw_only=True)
class AttemptCounters:
    """Hits and errors of one attempt while it runs; `totals` is what the store takes of them.

    Attributes:
        responsible: hits it was given or found, and that were not stored already.
        tried: hits it requested.
        in_flight: of those, how many it has not been answered yet.
        failed: of those that were answered, how many gave no page.
        collected: pages it stored.
        known: hits that were stored already.
        left_over: hits that quota, budget or a full host kept it from.
        errors: of all its requests, each counted once.
    """

    timing: Timing
    responsible: int = 0
    tried: int = 0
    in_flight: int = 0
    failed: int = 0
    collected: int = 0
    known: int = 0
    left_over: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def count_known(self) -> None:
        """Count a tried hit that was stored already."""
        self.known += 1
        self.responsible -= 1
        self.tried -= 1

    def so_far(self) -> Counters:
        """Return the counters of a running attempt: ended tries, including pages that are being stored."""
        ended = self.tried - self.in_flight
        return replace(self.totals(interrupted=False), tried=ended, collected=max(0, ended - self.failed))

    def totals(self, *, interrupted: bool) -> Counters:
        """Return the counters of an attempt that ends now.

        Args:
            interrupted: the attempt did not end by itself: only what it tried counts as offered.
        """
        offered = self.tried if interrupted else self.responsible - self.left_over
        timing = self.timing
        return Counters(
            offered=max(offered, self.tried, self.collected),
            tried=self.tried,
            collected=self.collected,
            known=self.known,
            requests=timing.requests,
            bytes=timing.bytes,
            active_s=timing.active_s,
            wait_s=timing.wait_s,
            errors=dict(self.errors),
            statuses=dict(timing.statuses),
        )
