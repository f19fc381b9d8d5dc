"""The state of each theme of a product, judged at the end of each week: new, rising, quiet, back, ongoing, watching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.insight.rises import (
    BASELINE_WEEKS,
    LEAST_MEAN,
    NEWEST_WEEKS,
    RISES,
    Counts,
    cutoff,
    log_likelihood_ratio,
    measure_baseline,
    p_values,
)

Flags = NDArray[np.bool_]


class ThemeState(StrEnum):
    """What a theme of a product does.

    WATCHING: the product is watched for less than `WATCHED_WEEKS`, or too few of its last weeks hold a review.
    RISING: the week's complaints are significantly more than expected, and at least `LEAST_RISE` in 4 weeks; until
        4 weeks in a row have no more than 1.25 times the usual complaints and one.
    NEW: first seen less than `NEWEST_WEEKS` ago, with at least 3 complaints from 2 pages.
    BACK: it was quiet, and at least 2 complaints came in 4 weeks; for `BACK_WEEKS`.
    QUIET: none for so many weeks that, at its usual rate, this has a chance of 1 %; at least `QUIET_WEEKS`.
    ONGOING: any other.
    """

    WATCHING = "watching"
    RISING = "rising"
    NEW = "new"
    BACK = "back"
    QUIET = "quiet"
    ONGOING = "ongoing"


_STATES = tuple(ThemeState)
WATCHED_WEEKS = 26
LEAST_RISE = 3
NEW_COMPLAINTS = 3
NEW_PAGES = 2
QUIET_WEEKS = 8
BACK_WEEKS = 8
_CHANCE_1_PERCENT = 4.6
"""-ln(0.01): so many expected complaints, and none came, has a chance of 1 %."""


@dataclass(frozen=True, slots=True)
class ThemeSeries:
    """Weekly counts of themes; a row for each product and theme, a column for each week, the last one complete.

    Attributes:
        counts: complaints.
        others: the product's other reviews on the same sites.
        has_reviews: whether the product has any review in the week.
        pages: number of pages that the first complaints of a theme are from, within `NEWEST_WEEKS` of the first.
    """

    counts: Counts
    others: Counts
    has_reviews: Flags
    pages: Counts


@dataclass(frozen=True, slots=True)
class Judgement:
    """States of themes at the end of each week, and the evidence for rises.

    Attributes:
        states: index of a `ThemeState` for each series and week.
        p: p value of a rise; 1 before the product is watched.
        mean: complaints expected in the week.
        weekly: complaints a week in the baseline.
        cutoffs: for each week, the p value up to which series rise.
    """

    states: NDArray[np.int8]
    p: Counts
    mean: Counts
    weekly: Counts
    cutoffs: Sequence[float]

    def state_of(self, series: int, week: int = -1) -> ThemeState:
        """Return the state of a series in a week, the last one by default."""
        return _STATES[int(self.states[series, week])]


def judge_weeks(series: ThemeSeries, cutoffs: Sequence[float] | None = None) -> Judgement:
    """Judge each series in each week, in turn.

    Args:
        cutoffs: for each week; `None`: they follow from these series, which are then all that are watched.
    """
    counts = series.counts
    since_first = np.cumsum(np.maximum.accumulate(series.has_reviews, axis=1), axis=1)
    is_watched = (since_first >= WATCHED_WEEKS) & (_sum_last(series.has_reviews, 52) >= 26)
    baseline = measure_baseline(counts, series.others, since_first > 0)
    ratios = [log_likelihood_ratio(counts, baseline, factor) for factor, _ in RISES]
    four_weeks = _sum_last(counts, 4)
    is_usual = four_weeks <= 5 * baseline.weekly + 1
    quiet_after = _weeks_until_quiet(baseline.weekly, baseline.dispersion)
    silent_weeks = _weeks_since(counts > 0)
    is_quiet = (silent_weeks >= quiet_after) & np.isfinite(silent_weeks)
    is_new = _find_new(series, since_first)
    shape = counts.shape
    states = np.zeros(shape, np.int8)
    p = np.ones(shape)
    found: list[float] = []
    sums = np.full((len(RISES), len(counts)), -np.inf)
    weights = np.log([weight for _, weight in RISES])[:, None]
    is_rising = np.zeros(len(counts), bool)
    usual_weeks = np.zeros(len(counts))
    was_quiet = np.zeros(len(counts), bool)
    weeks_back = np.zeros(len(counts))
    for week in range(shape[1]):
        watched = is_watched[:, week]
        for n, ratio in enumerate(ratios):
            sums[n] = np.where(watched, np.logaddexp(0.0, sums[n]) + ratio[:, week], -np.inf)
        evidence = np.logaddexp.reduce(sums + weights, axis=0)
        p[:, week] = p_values(evidence, baseline.mean[:, week], baseline.dispersion[:, week])
        p[~watched, week] = 1.0
        limit = cutoffs[week] if cutoffs is not None else cutoff(p[watched, week])
        found.append(limit)

        rises = (p[:, week] <= limit) & (four_weeks[:, week] >= LEAST_RISE)
        usual_weeks = np.where(is_usual[:, week], usual_weeks + 1, 0)
        ends = is_rising & (usual_weeks >= 4)
        is_rising = (is_rising | rises) & ~ends & watched
        sums[:, ends] = -np.inf

        returns = was_quiet & (four_weeks[:, week] >= 2)
        weeks_back = np.where(returns, BACK_WEEKS, np.maximum(weeks_back - 1, 0))
        was_quiet = (was_quiet | is_quiet[:, week]) & ~returns
        states[:, week] = np.select(
            [~watched, is_rising, is_new[:, week], weeks_back > 0, was_quiet],
            range(len(_STATES) - 1),
            len(_STATES) - 1,
        )
    return Judgement(states, p, baseline.mean, baseline.weekly, found)


def _sum_last(values: Counts | Flags, weeks: int) -> Counts:
    """Return for each week the sum over the last weeks, this one included."""
    total = np.cumsum(values, axis=1, dtype=float)
    total[:, weeks:] -= total[:, :-weeks].copy()
    return total


def _weeks_since(holds: Flags) -> Counts:
    """Return for each week how many weeks ago `holds` was True last; infinite before it ever was."""
    week = np.arange(holds.shape[1], dtype=float)
    last = np.maximum.accumulate(np.where(holds, week, -np.inf), axis=1)
    return week - last


def _weeks_until_quiet(weekly: Counts, dispersion: Counts) -> Counts:
    """Return after how many weeks without a complaint a theme is quiet."""
    improbable = _CHANCE_1_PERCENT * dispersion / np.maximum(weekly, LEAST_MEAN)
    return np.clip(improbable, QUIET_WEEKS, BASELINE_WEEKS)


def _find_new(series: ThemeSeries, since_first: NDArray[np.int_]) -> Flags:
    """Return where a theme was first seen lately, in a product that was watched before."""
    seen = np.cumsum(series.counts, axis=1)
    weeks_seen = np.cumsum(seen > 0, axis=1)
    is_recent = (weeks_seen > 0) & (weeks_seen <= NEWEST_WEEKS)
    was_watched = since_first - weeks_seen >= WATCHED_WEEKS
    has_enough = (seen >= NEW_COMPLAINTS) & (series.pages[:, None] >= NEW_PAGES)
    return is_recent & was_watched & has_enough
