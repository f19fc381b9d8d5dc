"""Judge the state of each theme of a product at the end of each week: rising, new, back, quiet and others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.insight.rises import (
    BASELINE_WEEKS,
    FALSE_DISCOVERIES,
    LEAST_MEAN,
    NEWEST_WEEKS,
    RISES,
    Counts,
    Expectation,
    cutoff,
    log_likelihood_ratio,
    measure_baseline,
    measure_nu,
    p_values,
)
from app.insight.rows import ThemeState

Flags = NDArray[np.bool_]


_STATES = tuple(ThemeState)
WATCHED_WEEKS = 26
LEAST_RISE = 3
NEW_COMPLAINTS = 3
NEW_PAGES = 2
NEW_WEEKS = NEWEST_WEEKS
QUIET_WEEKS = 8
BACK_WEEKS = 8
USUAL_WEEKS = 4
"""Number of weeks with usual counts after which a rise has ended."""
_LOG_WEIGHTS = np.log([weight for _, weight in RISES])[:, None]
_CHANCE_1_PERCENT = 4.6
"""-ln(0.01): with this many expected complaints, none at all has a probability of 1 %."""


@dataclass(frozen=True, slots=True)
class ThemeSeries:
    """Weekly counts, with a row for each (product, theme) and a column for each week up to the last whole one.

    Attributes:
        counts: number of complaints.
        others: number of the product's other reviews at the same sites.
        has_reviews: True for weeks in which the product has a review.
        pages: number of pages with complaints about a theme first seen in the newest weeks; 0 for other themes.
        incomplete: number of newest weeks that are not judged, because late reviews are still expected for them.
    """

    counts: Counts
    others: Counts
    has_reviews: Flags
    pages: Counts
    incomplete: NDArray[np.int_]

    @property
    def last(self) -> NDArray[np.int_]:
        """Return for each series the index of the column of its last complete week."""
        last: NDArray[np.int_] = self.counts.shape[1] - 1 - self.incomplete
        return last


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures that show whether each series rises in each week, before the correction for the number of series.

    Attributes:
        baseline: expected number of complaints in each week.
        is_watched: True for weeks in which the product is watched.
        four_weeks: number of complaints in the 4 weeks that end with each week.
        ratios: logarithm of the likelihood ratio of each count; shape (weeks, rises of `RISES`, series).
        nu: factor of the p value (`measure_nu`); shape (weeks, series).
        can_rise: True if the series is watched and has enough complaints to rise; shape (weeks, series).
    """

    baseline: Expectation
    is_watched: Flags
    four_weeks: Counts
    ratios: Counts
    nu: Counts
    can_rise: Flags

    @property
    def is_usual(self) -> Flags:
        """Return True for each week at whose end the last 4 weeks together had a usual number of complaints."""
        return self.four_weeks <= 5 * self.baseline.weekly + 1

    def p_values_of(self, sums: Counts, week: int) -> Counts:
        """Return the p values of all series in a week; 1 for series that can't rise in it.

        Args:
            sums: logarithms of the Shiryaev-Roberts sums; shape (rises of `RISES`, series).
        """
        evidence = np.logaddexp.reduce(sums + _LOG_WEIGHTS, axis=0)
        return np.where(self.can_rise[week], p_values(evidence, self.nu[week]), 1.0)

    def add_week(self, sums: Counts, week: int) -> Counts:
        """Return the logarithms of the sums after adding a week. The sums of products that are not watched restart."""
        return np.where(self.is_watched[:, week], np.logaddexp(0.0, sums) + self.ratios[week], -np.inf)


def gather_evidence(series: ThemeSeries) -> Evidence:
    """Compute the figures that show for each series and week whether the series rises."""
    since_first = _weeks_since_first(series.has_reviews)
    baseline = measure_baseline(series.counts, series.others, since_first > 0)
    is_watched = (since_first >= WATCHED_WEEKS) & (_sum_last(series.has_reviews, 52) >= 26)
    four_weeks = _sum_last(series.counts, 4)
    ratios = [log_likelihood_ratio(series.counts, baseline, factor).T for factor, _ in RISES]
    return Evidence(
        baseline=baseline,
        is_watched=is_watched,
        four_weeks=four_weeks,
        ratios=np.stack(ratios, axis=1),
        nu=np.ascontiguousarray(measure_nu(baseline).T),
        can_rise=np.ascontiguousarray((is_watched & (four_weeks >= LEAST_RISE)).T),
    )


class CutoffSearch:
    """Finds for each week the largest p value that counts as a rise, from the p values of all watched series.

    Args:
        least: smallest number of series to correct for, even if fewer are watched.
    """

    def __init__(self, least: int = 0) -> None:
        self._least = least
        self._small: dict[int, list[Counts]] = defaultdict(list)
        self._watched: Counter[int] = Counter()

    def add(self, series: ThemeSeries) -> Flags:
        """Add the p values of series. Return for each series whether a week's p value is small enough for a rise."""
        evidence = gather_evidence(series)
        sums = np.full((len(RISES), len(series.counts)), -np.inf)
        may_rise = np.zeros(len(series.counts), bool)
        for week in range(series.counts.shape[1]):
            sums = evidence.add_week(sums, week)
            p = evidence.p_values_of(sums, week)
            is_judged = week <= series.last
            is_small = (p <= FALSE_DISCOVERIES) & is_judged
            may_rise |= is_small
            self._small[week].append(p[is_small])
            self._watched[week] += int((evidence.is_watched[:, week] & is_judged).sum())
        return may_rise

    def list_cutoffs(self) -> list[float]:
        """Return for each week the largest p value that counts as a rise; 0 if no series rises in the week."""
        return [
            cutoff(np.concatenate(found), max(self._watched[week], self._least))
            for week, found in sorted(self._small.items())
        ]


@dataclass(frozen=True, slots=True)
class Judgement:
    """State of each theme at the end of each week, with the evidence for rises.

    An incomplete week has the state and the p value of the last complete week.

    Attributes:
        states: index in the members of `ThemeState`, for each series and week.
        p: p value of a rise; 1 in weeks when the series can't rise.
        evidence: the figures behind the p values.
    """

    states: NDArray[np.int8]
    p: Counts
    evidence: Evidence

    def state_of(self, series: int, week: int = -1) -> ThemeState:
        """Return the state of a series in a week, the last one by default."""
        return _STATES[int(self.states[series, week])]

    def has_risen_since(self, series: int, week: int) -> bool:
        """Return True if a series began to rise in this week or later."""
        is_rising = self.states[series] == _STATES.index(ThemeState.RISING)
        begins = is_rising[1:] & ~is_rising[:-1]
        return bool(begins[max(week - 1, 0) :].any())

    def count_weeks_in_state(self, series: int) -> int:
        """Return the number of weeks that a series has been in its last state."""
        is_same = self.states[series, ::-1] == self.states[series, -1]
        return int(np.argmin(is_same)) or is_same.size


def judge_weeks(series: ThemeSeries, cutoffs: Sequence[float]) -> Judgement:
    """Judge the state of each series week by week.

    Args:
        cutoffs: for each week, the largest p value that counts as a rise (`CutoffSearch`).
    """
    evidence = gather_evidence(series)
    is_usual = evidence.is_usual
    silent_weeks = _weeks_since(series.counts > 0)
    quiet_after = _weeks_until_quiet(evidence.baseline)
    is_quiet = (silent_weeks >= quiet_after) & np.isfinite(silent_weeks)
    is_new = _find_new(series)
    has_usual_weeks = _sum_last(is_usual, USUAL_WEEKS) == USUAL_WEEKS
    may_return = evidence.four_weeks >= 2
    n = len(series.counts)
    p = np.ones(series.counts.shape)
    is_rising, was_quiet, returns = (np.zeros(series.counts.shape, bool) for _ in range(3))
    sums = np.full((len(RISES), n), -np.inf)
    rises, quiet = np.zeros(n, bool), np.zeros(n, bool)
    for week, limit in enumerate(cutoffs):
        sums = evidence.add_week(sums, week)
        p[:, week] = evidence.p_values_of(sums, week)
        ends = rises & has_usual_weeks[:, week]
        rises = (rises | (p[:, week] <= limit)) & ~ends & evidence.is_watched[:, week]
        is_rising[:, week] = rises
        if ends.any():
            sums[:, ends] = -np.inf
        returns[:, week] = quiet & may_return[:, week]
        quiet = (quiet | is_quiet[:, week]) & ~returns[:, week]
        was_quiet[:, week] = quiet
    is_back = _sum_last(returns, BACK_WEEKS) > 0
    states = np.select(
        [~evidence.is_watched, is_rising, is_new, is_back, was_quiet],
        [np.int8(one) for one in range(len(_STATES) - 1)],
        np.int8(len(_STATES) - 1),
    )
    last = series.last.reshape(-1, 1)
    judged = np.minimum(np.arange(series.counts.shape[1]), last)
    return Judgement(np.take_along_axis(states, judged, 1), np.take_along_axis(p, judged, 1), evidence)


def _weeks_since_first(has_reviews: Flags) -> NDArray[np.int_]:
    """Return for each week the number of weeks since the first review: 1 in its week, 0 before."""
    since: NDArray[np.int_] = np.cumsum(np.maximum.accumulate(has_reviews, axis=1), axis=1)
    return since


def _sum_last(values: Counts | Flags, weeks: int) -> Counts:
    """Return for each week the sum of the `weeks` weeks that end with it."""
    total = np.cumsum(values, axis=1, dtype=float)
    total[:, weeks:] -= total[:, :-weeks].copy()
    return total


def _weeks_since(holds: Flags) -> Counts:
    """Return for each week the number of weeks since `holds` was True; infinite if it never was."""
    week = np.arange(holds.shape[1], dtype=float)
    last = np.maximum.accumulate(np.where(holds, week, -np.inf), axis=1)
    return week - last


def _weeks_until_quiet(baseline: Expectation) -> Counts:
    """Return the number of weeks without a complaint after which a theme is quiet."""
    improbable = _CHANCE_1_PERCENT * baseline.dispersion / np.maximum(baseline.weekly, LEAST_MEAN)
    return np.clip(improbable, QUIET_WEEKS, BASELINE_WEEKS)


def _find_new(series: ThemeSeries) -> Flags:
    """Return True for weeks when a theme is new: first seen lately, about a product that was watched earlier."""
    since_first = _weeks_since_first(series.has_reviews)
    seen = np.cumsum(series.counts, axis=1)
    weeks_seen = np.cumsum(seen > 0, axis=1)
    is_recent = (weeks_seen > 0) & (weeks_seen <= NEWEST_WEEKS)
    was_watched = since_first - weeks_seen >= WATCHED_WEEKS
    has_enough = (seen >= NEW_COMPLAINTS) & (series.pages[:, None] >= NEW_PAGES)
    return is_recent & was_watched & has_enough
