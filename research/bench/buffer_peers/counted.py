"""What a run counted, and the rates in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the cluster did.

    Attributes:
        counts: (seconds since the node's process was started, result pages read so far), ascending, from (0, 0) on.
        attempts: by outcome, at the end.
        ping_ms: of Redis through the proxy, the median.
    """

    counts: Sequence[tuple[float, int]]
    attempts: Mapping[str, int]
    ping_ms: float

    @property
    def lasted_s(self) -> float:
        """Seconds from the start of the node's process to the last count."""
        return self.counts[-1][0]

    @property
    def first_s(self) -> float | None:
        """When the first result page had been read; None: never."""
        return next((at for at, count in self.counts if count), None)

    def rate(self, seconds: float | None = None) -> float:
        """Result pages a second from the start of the process on, over so many seconds (None: all)."""
        until = self.lasted_s if seconds is None else min(seconds, self.lasted_s)
        return count_at(self.counts, until) / until

    def rate_since_first(self) -> float:
        """Result pages a second from the first one on; 0 where there is none."""
        if self.first_s is None or self.first_s >= self.lasted_s:
            return 0.0
        return (self.counts[-1][1] - count_at(self.counts, self.first_s)) / (self.lasted_s - self.first_s)

    def rate_of_last_half(self) -> float:
        """Result pages a second in the second half of the time."""
        half = self.lasted_s / 2
        return (self.counts[-1][1] - count_at(self.counts, half)) / half

    def seconds_for(self, results: int) -> float | None:
        """Seconds from the start until so many had been read; None: never."""
        return next((at for at, count in self.counts if count >= results), None)


def count_at(counts: Sequence[tuple[float, int]], second: float) -> float:
    """The count at a moment; between two counts it is taken to grow evenly."""
    for (before_s, before), (after_s, after) in pairwise(counts):
        if before_s <= second <= after_s:
            return before + (after - before) * (second - before_s) / max(1e-9, after_s - before_s)
    return float(counts[-1][1])
