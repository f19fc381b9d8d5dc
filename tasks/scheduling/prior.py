"""The distance prior: expected seconds per page of a (site, node) without data, from its estimated distance.

Model: seconds per page = alpha + beta x delay, alpha the work of a page and beta its round trips; fitted to the pairs
that have data by weighted least squares. Page times spread in proportion to their mean (they are taken as exponential,
`tasks.scheduling.posterior`), so a pair's weight is its number of pages / expected seconds ** 2, found by refitting a
few times (iteratively reweighted least squares).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.scheduling.decision import Distances
from tasks.scheduling.posterior import PRIOR_PAGES, posterior
from tasks.scheduling.proximity.least_squares import Matrix
from tasks.scheduling.statistics import Knowledge

FEWEST_PAIRS = 8
"""Minimum number of pairs for estimating two parameters and their spread."""
_LEAST_ALPHA_S = 1e-3
_REFITS = 5
_SIGNIFICANT = 3.0  # beta in its standard errors; below, distance explains nothing


@dataclass(frozen=True, slots=True)
class DistancePrior:
    """Expected seconds per page by distance.

    Attributes:
        alpha_s: seconds of a page at no distance, above 0.
        beta: round trips a page, at least 0.
    """

    alpha_s: float
    beta: float

    def seconds(self, distance_ms: Matrix) -> Matrix:
        """Return the expected seconds per page at these estimated delays (any shape)."""
        expected: Matrix = self.alpha_s + self.beta * distance_ms / 1000.0
        return expected


def fit(distance_ms: Matrix, seconds: Matrix, weight: Matrix) -> DistancePrior | None:
    """Fit the line to the pairs with data.

    Args:
        distance_ms: (n,) estimated delays; pairs with NaN are left out.
        seconds: (n,) observed seconds per page.
        weight: (n,) number of independent pages of each pair; pairs without any are left out.

    Returns:
        The prior; `None` if distance explains nothing: fewer than 8 pairs, or a slope below three of its standard
        errors.
    """
    usable = np.isfinite(distance_ms) & np.isfinite(seconds) & (weight > 0.0) & (seconds > 0.0)
    delay_s, took_s, pages = distance_ms[usable] / 1000.0, seconds[usable], weight[usable]
    if len(delay_s) < FEWEST_PAIRS:
        return None
    expected = np.full(len(took_s), np.average(took_s, weights=pages))
    for _ in range(_REFITS):
        weights = pages / expected**2
        alpha_s, beta = _line(delay_s, took_s, weights)
        expected = np.maximum(alpha_s + beta * delay_s, _LEAST_ALPHA_S)
    if beta <= _SIGNIFICANT * _error_of_slope(delay_s, took_s - expected, weights):
        return None
    return DistancePrior(float(alpha_s), float(beta))


def _line(delay_s: Matrix, took_s: Matrix, weights: Matrix) -> tuple[float, float]:
    """Return alpha and beta by weighted least squares, with alpha at least 1 ms and beta at least 0."""
    mean_delay, mean_took = np.average(delay_s, weights=weights), np.average(took_s, weights=weights)
    spread = weights @ (delay_s - mean_delay) ** 2
    if spread <= 1e-12 * weights.sum() * mean_delay**2:
        return float(mean_took), 0.0
    beta = max(0.0, float(weights @ ((delay_s - mean_delay) * (took_s - mean_took)) / spread))
    alpha_s = float(mean_took - beta * mean_delay)
    if alpha_s < _LEAST_ALPHA_S:
        alpha_s = _LEAST_ALPHA_S
        beta = max(0.0, float(weights @ (delay_s * (took_s - alpha_s)) / (weights @ delay_s**2)))
    return alpha_s, beta


def _error_of_slope(delay_s: Matrix, left_s: Matrix, weights: Matrix) -> float:
    """Return the standard error of the slope, from the residuals."""
    mean_delay = np.average(delay_s, weights=weights)
    variance = (weights @ left_s**2) / (len(left_s) - 2)
    spread = weights @ (delay_s - mean_delay) ** 2
    return float(np.sqrt(variance / spread)) if spread > 0.0 else float("inf")


def distance_prior(
    distances: Distances, knowledge: Knowledge, now_s: float, sites: Sequence[str], nodes: Sequence[str]
) -> Matrix | None:
    """Return the expected seconds per page of pairs without data, from the distance of site and node (2010 paper).

    They lie on the line through the pairs that have data (`fit`).

    Returns:
        Array of (sites, nodes) for `posterior`: NaN for pairs with data or with an unknown distance. `None` if distance
        explains nothing.
    """
    seen_sites, seen_nodes = list(knowledge.sites), list(knowledge.nodes)
    if not seen_sites:
        return None
    pages, seconds = _observe_pairs(knowledge, now_s, seen_sites, seen_nodes)
    line = fit(distances.ms(seen_sites, seen_nodes).ravel(), seconds.ravel(), pages.ravel())
    if line is None:
        return None
    own, _ = _observe_pairs(knowledge, now_s, sites, nodes)
    return np.where(own > 0, np.nan, line.seconds(distances.ms(sites, nodes)))


def _observe_pairs(
    knowledge: Knowledge, now_s: float, sites: Sequence[str], nodes: Sequence[str]
) -> tuple[Matrix, Matrix]:
    """Return each pair's independent pages, and its seconds per tried page without the overhead; 0 without data."""
    # With a prior of 0 s the posterior has only the pair's own data, in its own weights.
    nothing = np.zeros((len(sites), len(nodes)))
    found = posterior(knowledge, now_s, sites, nodes, nothing)
    pages = np.maximum(0.0, found.seconds_shape - PRIOR_PAGES)
    pages = np.where(pages < 1e-6, 0.0, pages)
    return pages, found.seconds_total / np.maximum(pages, 1e-6)
