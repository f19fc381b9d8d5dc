"""Find series of weekly counts that rise: a Shiryaev-Roberts sum of each, corrected for their number.

A series is the complaints of a product about one theme, a count for each week. Its exposure is the number of the
product's other reviews of the week: a crawl that finds twice as many pages doubles both, and nothing rises.
The arrays have a row for each series and a column for each week.

Sources: Pollak, Optimal detection of a change in distribution, Annals of Statistics 13 (1985), for the sum;
Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995), for the correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]

RISES = ((2.0, 0.8), (4.0, 0.2))
"""The rises that are looked for, as factors of what is expected, each with its weight."""
BASELINE_WEEKS = 156
NEWEST_WEEKS = 8
"""The newest weeks, which are no part of the baseline: a rise must not hide itself."""
PRIOR_DISPERSION = 1.15
PRIOR_WEEKS = 30
"""Number of weeks for which the prior dispersion counts."""
LEAST_DISPERSION = 1.01
PRIOR_COUNT = 0.5
"""Complaints added to a baseline, since few weeks without any prove no rate of zero."""
PRIOR_EXPOSURE = 0.5
"""Reviews added to the exposure of each week: a week with none expects few complaints, not none at all."""
LEAST_MEAN = 1e-9
MOST_NU = 12.0
"""Limit of nu. The sum of a rare theme has no time to reach its limit (`bench states` shows the false alarms)."""
FALSE_DISCOVERIES = 0.05
"""Share of the rises of a week that may be false ones."""
LEAST_SERIES = 300
"""Number of series that a week is corrected for at least: one product alone would have an alarm a year."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What each series lets expect for each week, judged from the weeks before.

    Attributes:
        mean: complaints expected, for the exposure of the week.
        dispersion: variance divided by mean; at least `LEAST_DISPERSION`.
        weekly: complaints a week, whatever the exposure.
        weeks: number of weeks that the baseline has.
    """

    mean: Counts
    dispersion: Counts
    weekly: Counts
    weeks: Counts


def _window_sums(values: Counts) -> Counts:
    """Return for each week the sum over the weeks of its baseline."""
    total = np.cumsum(values, axis=1)
    total = np.concatenate([np.zeros((len(values), 1)), total], axis=1)
    week = np.arange(values.shape[1])
    end = np.maximum(week + 1 - NEWEST_WEEKS, 0)
    begin = np.maximum(week + 1 - BASELINE_WEEKS, 0)
    return total[:, end] - total[:, begin]


def measure_baseline(counts: Counts, others: Counts, is_watched: NDArray[np.bool_]) -> Expectation:
    """Return what each week could expect.

    Args:
        others: number of the product's other reviews of the week on the same sites.
        is_watched: False for weeks before the product's first review.
    """
    exposure = np.where(is_watched, others + PRIOR_EXPOSURE, 0.0)
    weeks = _window_sums(is_watched.astype(float))
    complaints = _window_sums(counts)
    exposed = _window_sums(exposure)
    squares = _window_sums(counts**2 / np.where(is_watched, exposure, 1.0))
    rate = (complaints + PRIOR_COUNT) / np.maximum(exposed, 1.0)
    chi_square = squares / rate - 2 * complaints + rate * exposed
    dispersion = (chi_square + PRIOR_WEEKS * PRIOR_DISPERSION) / (np.maximum(weeks - 1, 0) + PRIOR_WEEKS)
    return Expectation(
        mean=np.maximum(rate * exposure, LEAST_MEAN),
        dispersion=np.maximum(dispersion, LEAST_DISPERSION),
        weekly=complaints / np.maximum(weeks, 1),
        weeks=weeks,
    )


def log_likelihood_ratio(counts: Counts, baseline: Expectation, factor: float) -> Counts:
    """Return the logarithm of how much likelier each count is after a rise by a factor; negative binomial."""
    size = baseline.mean / (baseline.dispersion - 1)
    shrunk = np.log((size + baseline.mean) / (size + factor * baseline.mean))
    ratio: Counts = counts * np.log(factor) + (counts + size) * shrunk
    return ratio


def measure_nu(baseline: Expectation) -> Counts:
    """Return nu of each week.

    The sum exceeds e^s with a chance of e^-s / I, for large s, where I is the information of a week about a rise
    (Goldie, Annals of Applied Probability 1 (1991)). `MOST_NU` bounds 1 / I for rare themes.
    """
    nu: Counts = np.minimum(baseline.dispersion / (_INFORMATION * baseline.mean), MOST_NU)
    return nu


def p_values(evidence: Counts, nu: Counts) -> Counts:
    """Return the p values of logarithms of the sum, nu e^-s."""
    p: Counts = np.minimum(nu * np.exp(-np.maximum(evidence, 0.0)), 1.0)
    return p


_INFORMATION = 2 * np.log(2) - 1
"""Kullback-Leibler divergence of a doubled Poisson rate, for one complaint expected."""


def cutoff(p: Counts, series: int) -> float:
    """Return the p value up to which series of one week rise (Benjamini and Hochberg); 0 if none does.

    Args:
        p: at least those that are not above `FALSE_DISCOVERIES`.
        series: number of series that are watched in the week.
    """
    allowed = FALSE_DISCOVERIES * np.arange(1, p.size + 1) / max(series, LEAST_SERIES)
    passed = np.flatnonzero(np.sort(p) <= allowed)
    return float(allowed[passed[-1]]) if passed.size else 0.0
