"""Find series of weekly counts that rise, by a Shiryaev-Roberts sum corrected for the number of series.

A series has the weekly counts of complaints about one theme of a product. Its exposure is the number of other reviews
of the product in the week. If a crawl finds twice as many pages, complaints and exposure both double, and the series
does not rise. The arrays have a row for each series and a column for each week.

Sources: Pollak, Optimal detection of a change in distribution, Annals of Statistics 13 (1985), for the sum;
Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995), for the correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]

RISES = ((2.0, 0.8), (4.0, 0.2))
"""Rises to detect: factors relative to the expected count, each with its weight."""
BASELINE_WEEKS = 156
NEWEST_WEEKS = 8
"""Number of newest weeks that the baseline leaves out, so that a rise does not raise it."""
PRIOR_DISPERSION = 1.15
PRIOR_WEEKS = 30
"""Weight of the prior dispersion, in weeks."""
LEAST_DISPERSION = 1.01
PRIOR_COUNT = 0.5
"""Complaints added to a baseline, as a few weeks without complaints do not prove a rate of zero."""
PRIOR_EXPOSURE = 0.5
"""Reviews added to the exposure of each week, so that a week without reviews expects some complaints."""
LEAST_MEAN = 1e-9
MOST_NU = 12.0
"""Maximum of nu, for rare themes, whose sum has not converged (`bench states` measures the false alarms)."""
FALSE_DISCOVERIES = 0.05
"""Accepted share of false rises among those of a week."""
LEAST_SERIES = 300
"""Minimum number of series in the correction. Without it, a single product would have one false alarm a year."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Number of complaints expected of each series in each week, estimated from earlier weeks (the baseline).

    Attributes:
        mean: expected number for the exposure of the week.
        dispersion: variance / mean, at least `LEAST_DISPERSION`.
        weekly: mean number of complaints per week, regardless of exposure.
        weeks: number of weeks in the baseline.
    """

    mean: Counts
    dispersion: Counts
    weekly: Counts
    weeks: Counts


def _window_sums(values: Counts) -> Counts:
    """Return for each week the sum of `values` over the weeks of its baseline."""
    total = np.cumsum(values, axis=1)
    total = np.concatenate([np.zeros((len(values), 1)), total], axis=1)
    week = np.arange(values.shape[1])
    end = np.maximum(week + 1 - NEWEST_WEEKS, 0)
    begin = np.maximum(week + 1 - BASELINE_WEEKS, 0)
    return total[:, end] - total[:, begin]


def measure_baseline(counts: Counts, others: Counts, is_watched: NDArray[np.bool_]) -> Expectation:
    """Return the number of complaints expected in each week.

    Args:
        counts: number of complaints in each week.
        others: number of the product's other reviews in the week at the same sites.
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
    """Return for each count log(its likelihood after a rise by `factor` / its likelihood without a rise).

    The counts are negative binomial.
    """
    size = baseline.mean / (baseline.dispersion - 1)
    shrunk = np.log((size + baseline.mean) / (size + factor * baseline.mean))
    ratio: Counts = counts * np.log(factor) + (counts + size) * shrunk
    return ratio


def measure_nu(baseline: Expectation) -> Counts:
    """Return for each week the factor nu that turns a sum into a p value (`p_values`).

    For large s, the sum exceeds e^s with probability e^-s / I; I is the information of a week about a rise (Goldie,
    Annals of Applied Probability 1 (1991)). `MOST_NU` limits 1 / I for rare themes.
    """
    nu: Counts = np.minimum(baseline.dispersion / (_INFORMATION * baseline.mean), MOST_NU)
    return nu


def p_values(evidence: Counts, nu: Counts) -> Counts:
    """Return the p values nu e^-s.

    Args:
        evidence: logarithms s of the Shiryaev-Roberts sums.
    """
    p: Counts = np.minimum(nu * np.exp(-np.maximum(evidence, 0.0)), 1.0)
    return p


_INFORMATION = 2 * np.log(2) - 1
"""Kullback-Leibler divergence of a doubled Poisson rate, per expected complaint."""


def cutoff(p: Counts, series: int) -> float:
    """Return the largest p value that counts as a rise in a week (Benjamini and Hochberg); 0 if no series rises.

    Args:
        p: p values of the week; those above `FALSE_DISCOVERIES` may be left out.
        series: number of watched series in the week.
    """
    allowed = FALSE_DISCOVERIES * np.arange(1, p.size + 1) / max(series, LEAST_SERIES)
    passed = np.flatnonzero(np.sort(p) <= allowed)
    return float(allowed[passed[-1]]) if passed.size else 0.0
