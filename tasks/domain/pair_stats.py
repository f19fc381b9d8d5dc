"""The sums that closed attempts of a (site, node) leave, and the two rates made of them.

Every sum is a weighted count over closed attempts. With w_i = 2 ** -(age of attempt i / half-life):

    attempts = sum w_i                       collected = sum w_i * collected_i     (and so on for each field)

Fading is multiplicative, so sums need no history: to add an attempt, fade the stored sums by the time since they were
last written, then add the attempt's counts. From them (2014 paper, allocation, steps 2 and 3):

    completion rate = collected / offered            (higher is better; None without an offered hit)
    efficiency      = active seconds / collected     (lower is better; None without a collected page)

Both are ratios of sums, not means of ratios, so sums of several nodes or sites are pooled by adding them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import StrEnum

from tasks.domain.change_point import still_counts

HALF_LIFE_S = 7200.0
"""Age at which an attempt counts half in decisions. Sites change within the hour (2014 product paper, figure 4), which
shows in the next attempts of a pair (`tasks.domain.change_point`). Age decides when an unused pair is tried again."""

MEMORY = 60.0
"""Attempts of a pair after which an older one of the same pair counts 1 / e."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStats:
    """Sums over closed attempts: of one (site, node), or pooled over several. Fractional once they have faded.

    Attributes:
        attempts: attempts closed.
        failed: of these, failed with a typed reason.
        silent: of these, taken back because they went silent or never started.
        offered: hits they were responsible for and not stored already.
        tried, collected: hits requested; pages stored.
        active_s: active seconds (a request in flight or a page being read).
        lost_s: seconds of silent attempts between their last sign of life and their recall.
    """

    attempts: float = 0.0
    failed: float = 0.0
    silent: float = 0.0
    offered: float = 0.0
    tried: float = 0.0
    collected: float = 0.0
    active_s: float = 0.0
    lost_s: float = 0.0

    @classmethod
    def unpack(cls, sums: Iterable[float]) -> PairStats:
        """Return the statistics with these numbers, in the order of `SUMS`."""
        return cls(**dict(zip(SUMS, sums, strict=True)))

    def values(self) -> tuple[float, ...]:
        """The numbers in the order of `SUMS`."""
        return _VALUES(self)

    def __add__(self, other: PairStats) -> PairStats:
        return PairStats.unpack(map(operator.add, self.values(), other.values()))

    def fade(self, age_s: float, half_life_s: float = HALF_LIFE_S) -> PairStats:
        """Return the sums `age_s` seconds later: each times 2 ** -(age_s / half_life_s).

        Both rates stay as they are; only the weight of the evidence shrinks. A negative age (a clock set back)
        counts as 0.

        Raises:
            ValueError: the half-life is not positive.
        """
        if half_life_s <= 0:
            raise ValueError(f"half_life_s must be positive, not {half_life_s}")
        keep = 2.0 ** -(max(0.0, age_s) / half_life_s)
        return PairStats.unpack([total * keep for total in self.values()])

    def with_attempt(self, attempt: AttemptResult, memory: float = math.inf) -> PairStats:
        """The sums with one more closed attempt, for sums that are already faded to the moment it closed.

        Args:
            attempt: one that `counts`; any other leaves the sums as they are.
            memory: every earlier attempt counts 1 - 1 / memory as much as before, and less if this one shows that
                the pair has changed (`tasks.domain.change_point`). Of a pair that is crawled all the time, what
                counts is then its last `memory` attempts or so. Infinite: nothing is forgotten.
        """
        if not attempt.counts:
            return self
        keep = 1.0
        if memory < math.inf:
            keep = (1.0 - 1.0 / memory) * still_counts(
                attempts=self.attempts,
                tried=self.tried,
                collected=self.collected,
                active_s=self.active_s,
                now=(attempt.tried, attempt.collected, attempt.active_s),
            )
        added = attempt.sums().values()
        return PairStats.unpack(
            [total * keep + more for total, more in zip(self.values(), added, strict=True)]
        )

    @property
    def completion(self) -> float | None:
        """Completion rate: collected / offered, in [0, 1]; None if nothing was offered."""
        return min(1.0, self.collected / self.offered) if self.offered > 0 else None

    @property
    def efficiency_s(self) -> float | None:
        """Efficiency: active seconds per collected page, lower is better; None if nothing was collected."""
        return self.active_s / self.collected if self.collected > 0 else None


SUMS = tuple(field.name for field in fields(PairStats))
"""Names of the sums, in the order of the class: the order of arrays of them, and of stored columns."""

_VALUES: Callable[[PairStats], tuple[float, ...]] = operator.attrgetter(*SUMS)


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # with a typed reason
    SILENT = "silent"  # taken back: never started, or no progress until the lease ran out
    RELEASED = "released"  # given back by a drained or overfull node: no fault of node or host
    CANCELLED = "cancelled"  # by a person

    @property
    def cut_short(self) -> bool:
        """True if others than its node ended the attempt: it counts over the hits it tried."""
        return self in (AttemptOutcome.RELEASED, AttemptOutcome.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """A closed attempt, as far as the sums count it.

    Attributes:
        offered: hits it was responsible for and not stored already; hits that quota or budget kept it from
            are left out, hits that a failure, a block or silence kept it from are not.
        tried, collected: hits it requested; pages it stored.
        active_s: seconds with a request in flight or a page being read.
        lost_s: of a silent attempt, seconds between its last sign of life and its recall; otherwise 0.
        wait_s: seconds it waited for rate limits.
        requests: number of requests it sent.
        round_trip: to its site; None: not measured.
    """

    site: str
    node: str
    outcome: AttemptOutcome
    offered: int = 0
    tried: int = 0
    collected: int = 0
    active_s: float = 0.0
    lost_s: float = 0.0
    wait_s: float = 0.0
    requests: int = 0
    round_trip: RoundTrip | None = None

    @property
    def counts(self) -> bool:
        """Return False for an attempt that was given back untouched: it is no evidence against the node."""
        return not self.outcome.cut_short or self.tried > 0 or self.collected > 0

    def sums(self) -> PairStats:
        """The sums that it adds. One that was given back counts over the hits it tried: the others leave `offered`."""
        offered = self.offered
        if self.outcome.cut_short:
            offered = min(offered, max(self.tried, self.collected))
        return PairStats(
            attempts=1.0,
            failed=float(self.outcome is AttemptOutcome.FAILED),
            silent=float(self.outcome is AttemptOutcome.SILENT),
            offered=offered,
            tried=self.tried,
            collected=self.collected,
            active_s=self.active_s,
            lost_s=self.lost_s,
        )


RESPONSES = 50
"""Response times of a pair beyond which older ones fade."""

_SLOWER = 0.25
"""Weight of a response time that is longer than those before: delays only add to the distance."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The distance of a site from a node.

    Attributes:
        ms: with the noise removed, above 0.
        n: response times it rests on, at least 1.
    """

    ms: float
    n: int

    def __add__(self, measured: RoundTrip) -> RoundTrip:
        """Return the belief once another attempt has measured it, within the range of both.

        A faster measurement counts by the number of its response times, and a slower one a quarter as much: a host
        that is busy for an hour has not moved, and one that moved is seen all the same. The belief before weighs as
        `RESPONSES` response times at most.
        """
        weight = measured.n * (_SLOWER if measured.ms > self.ms else 1.0)
        share = weight / (min(self.n, RESPONSES) + weight)
        return RoundTrip(self.ms + share * (measured.ms - self.ms), self.n + measured.n)
