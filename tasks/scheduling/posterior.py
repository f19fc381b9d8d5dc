"""Expected results of an attempt at a site by a node: posteriors. Priors count more if there are few data.

Three unknowns of a (site, node), each with a conjugate prior:

- page chance q: a tried page is stored. Beta(a, b) on tried pages.
- bad share f: an attempt fails or goes silent. Beta on attempts. Of bad attempts a share z is silent (mean
  only).
- seconds per tried page s. Page times taken as exponential, so 1/s is Gamma(shape, scale 1/total): total is
  the observed seconds, shape the observed pages.

Prior mean of a pair = main effects of its site and of its node around the overall mean, added on the
log-odds scale (on the log scale for s): a new node at a good site, or a good node at a new site, starts
with these effects. The prior has a weight of at most `PRIOR_PAGES` pages (fewer if pairs differ much from their
main effects, see `_weight`) and `PRIOR_ATTEMPTS` attempts, so a few attempts of the pair itself outweigh it.
Site, node and overall means are themselves shrunk to the level above and at last to the constants,
`POOL_WEIGHT` times as hard: a node is not condemned by its first attempt somewhere.

Pages of one attempt resemble each other, so m of them count as m / (1 + (m - 1) * ALIKE) independent ones
(the design effect of cluster samples; Kish, Survey Sampling, 1965).

Time of an attempt: overhead + pages tried * s. The sums don't hold the two apart, so the overhead is the
constant, but at most half of the active seconds an attempt of the site takes. Failed attempts may or may not
have known their hits (offered); so the share of its pages an attempt gets to is
reach = min(1 - f, tried / offered). Expected pages per second of a slot for an attempt of n targets:

    rate(n) = q * reach * n / (overhead + reach * n * s + f * z * recall_after)

The draw (Thompson sampling) takes q, f and s from their posteriors instead of their means: a pair is chosen
as often as it may be the best one, so exploration stops when it no longer pays, and starts again as old data fade.
All pairs are computed together, as arrays of (sites, nodes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.domain.change_point import ALIKE
from tasks.domain.pair_stats import SUMS
from tasks.scheduling.statistics import Knowledge

Array = NDArray[np.float64]


PAGE_CHANCE, BAD_SHARE, SILENT_OF_BAD = 0.8, 0.05, 0.3
"""Prior means without any data: a tried page is stored; an attempt is bad; a bad attempt is silent."""

SECONDS_PER_PAGE, OVERHEAD_S = 1.0, 1.0
"""Prior means without any data in seconds: per tried page; per attempt beyond its pages (connecting, result page)."""

PRIOR_PAGES, PRIOR_ATTEMPTS = 4.0, 2.0
"""Weights of a prior, as a number of a pair's (independent) pages, and of its attempts."""

LEAST_WEIGHT = 1.0
"""Weight of a prior in pages if pairs hardly depend on their site and node."""

_PRIOR_PAIRS = 30.0
"""Number of pairs with 2 pages each that have the weight of `PRIOR_PAGES`."""

POOL_WEIGHT = 5.0
"""Weight of the level above against the data of a site, of a node or of all pairs, in weights of a prior."""

RECALL_AFTER_S = 60.0
"""Seconds that a silent attempt costs."""

_CELLS = 24
"""Number of cells over which the density of a Beta is integrated."""

_AT_ONCE = 4096
"""Number of pairs whose quantiles are computed together: bounds the memory."""

_erf = np.vectorize(math.erf, otypes=[np.float64])

_FADED = 1e-9
"""Fewer pages than this count as no data, because sums that faded so far have no valid digits."""


class Belief(NamedTuple):
    """One value of each unknown for every pair: posterior means, or a draw. Arrays of (sites, nodes).

    Attributes:
        page_chance: q; a tried page is stored.
        reach: share of its targets that an attempt tries.
        silent: chance that an attempt goes silent.
        seconds_per_page: s, per tried page.
        overhead_s: seconds of an attempt beyond its pages.
        recall_after_s: seconds that a silent attempt costs.
    """

    page_chance: Array
    reach: Array
    silent: Array
    seconds_per_page: Array
    overhead_s: Array
    recall_after_s: float

    def rates(self, pages: Array | float) -> Array:
        """Return the expected pages per second of a slot for attempts of `pages` targets (formula above).

        Args:
            pages: one number, or one per site as an array of (sites, 1).
        """
        tried = self.reach * pages
        seconds = self.overhead_s + tried * self.seconds_per_page + self.silent * self.recall_after_s
        return self.page_chance * tried / seconds

    def rate(self, site: int, node: int, pages: float) -> float:
        """Return the rate of one pair, given by its places on both axes."""
        tried = float(self.reach[site, node]) * pages
        return float(self.page_chance[site, node]) * tried / self.seconds(site, node, pages)

    def seconds(self, site: int, node: int, pages: float) -> float:
        """Return the expected seconds of a slot for an attempt of `pages` targets on one pair."""
        return (
            float(self.overhead_s[site, 0])
            + float(self.reach[site, node]) * pages * float(self.seconds_per_page[site, node])
            + float(self.silent[site, node]) * self.recall_after_s
        )


class Posterior(NamedTuple):
    """Parameters of the three distributions of every pair, and values that are used by their mean only.

    Arrays of (sites, nodes); the overhead has the shape (sites, 1).
    """

    page_a: Array
    page_b: Array
    bad_a: Array
    bad_b: Array
    seconds_shape: Array
    seconds_total: Array
    tried_share: Array
    silent_of_bad: Array
    overhead_s: Array
    recall_after_s: float

    def mean(self) -> Belief:
        """Return the expected values."""
        return self._belief(
            self.page_a / (self.page_a + self.page_b),
            self.bad_a / (self.bad_a + self.bad_b),
            self.seconds_total / self.seconds_shape,
        )

    def draw(self, scores: Array) -> Belief:
        """Return values drawn from the posteriors (Thompson sampling): the quantiles of standard scores.

        The logarithm of a Gamma(k) has mean psi(k) and variance psi'(k); it is taken as normal.

        Args:
            scores: standard normal numbers; array of (3, sites, nodes).
        """
        mean, variance = _log_gamma_moments(self.seconds_shape)
        seconds = self.seconds_total * np.exp(scores[2] * np.sqrt(variance) - mean)
        return self._belief(
            beta_quantile(self.page_a, self.page_b, scores[0]),
            beta_quantile(self.bad_a, self.bad_b, scores[1]),
            np.maximum(seconds, 1e-9),
        )

    def _belief(self, page_chance: Array, bad: Array, seconds: Array) -> Belief:
        return Belief(
            page_chance=page_chance,
            reach=np.minimum(1.0 - bad, self.tried_share),
            silent=bad * self.silent_of_bad,
            seconds_per_page=seconds,
            overhead_s=self.overhead_s,
            recall_after_s=self.recall_after_s,
        )


def beta_quantile(a: Array, b: Array, score: Array) -> Array:
    """Return the quantiles of Beta(a, b) at standard scores, within 0.006 for a and b from 0.05 to 1000.

    The density of the log-odds is integrated by Simpson's rule, over cells that end where it is negligible, and taken
    as exponential within a cell. (scipy has an exact quantile; loading it takes 0.6 s and 27 MB.)

    Args:
        a, b: positive parameters; arrays.
        score: standard normal numbers; array that broadcasts with a and b to the shape of the result.
    """
    every = np.broadcast_arrays(a, b, 0.5 + 0.5 * _erf(score / math.sqrt(2.0)))
    flat = [values.reshape(-1, 1) for values in every]
    parts = [
        _beta_quantile(*(values[at : at + _AT_ONCE] for values in flat))
        for at in range(0, max(1, flat[0].size), _AT_ONCE)
    ]
    return np.concatenate(parts).reshape(every[0].shape)


def _beta_quantile(a: Array, b: Array, chance: Array) -> Array:
    """Return the quantiles of Beta(a, b) at chances from 0 to 1; arrays of (pairs, 1)."""
    # On each side of its peak, the density first falls as that of a normal or Gumbel distribution, then exponentially.
    steps = np.linspace(-1.0, 1.0, 2 * _CELLS + 1)
    near, far = np.where(steps < 0, b, a), np.where(steps < 0, a, b)
    span = np.minimum(4.0 * np.sqrt(1.0 / a + 1.0 / b), 2.0 + np.log1p(16.0 / near)) + 8.0 / far
    odds = np.log(a / b) + steps * span
    height = a * odds - (a + b) * np.logaddexp(0.0, odds)
    height -= height[:, _CELLS, None]
    density = np.exp(height)
    odds, height, ends = odds[:, ::2], height[:, ::2], density[:, ::2]
    length = np.diff(odds)
    mass = length * (ends[:, :-1] + 4.0 * density[:, 1::2] + ends[:, 1:]) / 6.0
    below = np.cumsum(mass, axis=1)
    wanted = chance * below[:, -1:]
    cell = np.minimum((below < wanted).sum(axis=1, keepdims=True), _CELLS - 1)
    share = 1.0 - (np.take_along_axis(below, cell, 1) - wanted) / np.take_along_axis(mass, cell, 1)
    rise = np.take_along_axis(np.diff(height), cell, 1)
    rise = np.where(np.abs(rise) < 1e-6, 1e-6, rise)
    moved = np.log1p(share * np.expm1(rise)) / rise
    found = np.take_along_axis(odds, cell, 1) + moved * np.take_along_axis(length, cell, 1)
    return np.asarray(np.exp(-np.logaddexp(0.0, -found)), np.float64)


def _log_gamma_moments(shape: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of the logarithm of a Gamma: psi(k) and psi'(k).

    The asymptotic series is within 2e-6 for shapes of at least `PRIOR_PAGES`, which the posteriors have.
    """
    mean = np.log(shape) - 1.0 / (2.0 * shape) - 1.0 / (12.0 * shape**2) + 1.0 / (120.0 * shape**4)
    variance = 1.0 / shape + 1.0 / (2.0 * shape**2) + 1.0 / (6.0 * shape**3) - 1.0 / (30.0 * shape**5)
    return mean, variance


class _Level(NamedTuple):
    """Means of sites, of nodes, or of all pairs, on the scales on which they are added; arrays that broadcast."""

    page: Array  # log-odds
    bad: Array  # log-odds
    silent: Array  # log-odds
    seconds: Array  # log
    overhead_s: Array


class _Sums:
    """Sums of pairs or of pools of pairs, as attributes by name.

    Args:
        array: sums, with the order of `SUMS` on the last axis. Each attribute has the other axes.
    """

    def __init__(self, array: Array) -> None:
        by_name = dict(zip(SUMS, np.moveaxis(array, -1, 0), strict=True))
        self.attempts, self.silent = by_name["attempts"], by_name["silent"]
        self.bad = by_name["failed"] + by_name["silent"]
        self.offered, self.tried, self.collected = by_name["offered"], by_name["tried"], by_name["collected"]
        self.active_s = by_name["active_s"]


def posterior(
    knowledge: Knowledge,
    now_s: float,
    sites: Iterable[str],
    nodes: Iterable[str],
    prior_s: Array | None = None,
) -> Posterior:
    """Return the posteriors of every (site, node) of these names. Pairs without data depend on their site and node.

    Args:
        knowledge: statistics of closed attempts.
        now_s: time in seconds of the same clock.
        sites, nodes: names in the order of both axes.
        prior_s: expected seconds per page of pairs without data, used instead of the effects of site and node; NaN if
            there is no better prior. Array of (sites, nodes).
    """
    everything = knowledge.sums(now_s)
    first = _Level(
        _logit(np.asarray(PAGE_CHANCE)),
        _logit(np.asarray(BAD_SHARE)),
        _logit(np.asarray(SILENT_OF_BAD)),
        np.log(np.asarray(SECONDS_PER_PAGE)),
        np.asarray(OVERHEAD_S),
    )
    overall = _shrunk(_Sums(everything.sum(axis=(0, 1))), first)
    own = _select_sums(knowledge, everything, list(sites), list(nodes))
    by_site = _Sums(_select_pools(knowledge.sites, everything.sum(axis=1), sites)[:, None])
    by_node = _Sums(_select_pools(knowledge.nodes, everything.sum(axis=0), nodes)[None, :])
    of_site, of_node = _shrunk(by_site, overall), _shrunk(by_node, overall)
    return _combine(own, of_site, of_node, overall, _weight(everything, overall), prior_s)


def _combine(
    own: _Sums,
    of_site: _Level,
    of_node: _Level,
    overall: _Level,
    weight: float,
    prior_s: Array | None,
) -> Posterior:
    """Combine the data of pairs with the main effects."""
    page = _share(of_site.page + of_node.page - overall.page)
    bad = _share(of_site.bad + of_node.bad - overall.bad)
    silent = _share(of_site.silent + of_node.silent - overall.silent)
    seconds = np.exp(of_site.seconds + of_node.seconds - overall.seconds)
    if prior_s is not None:
        seconds = np.where(np.isnan(prior_s), seconds, prior_s)
    pages, stored = _pages(own)
    spent = _page_seconds(own, of_site.overhead_s)
    return Posterior(
        page_a=weight * page + stored,
        page_b=weight * (1.0 - page) + np.maximum(0.0, pages - stored),
        bad_a=PRIOR_ATTEMPTS * bad + own.bad,
        bad_b=PRIOR_ATTEMPTS * (1.0 - bad) + np.maximum(0.0, own.attempts - own.bad),
        seconds_shape=PRIOR_PAGES + pages,
        seconds_total=PRIOR_PAGES * seconds + pages * spent,
        tried_share=(own.tried + PRIOR_PAGES) / (own.offered + PRIOR_PAGES),
        silent_of_bad=(PRIOR_ATTEMPTS * silent + own.silent) / (PRIOR_ATTEMPTS + own.bad),
        overhead_s=of_site.overhead_s,
        recall_after_s=RECALL_AFTER_S,
    )


def _weight(everything: Array, overall: _Level) -> float:
    """Return the weight of a prior page chance, in pages: small if pairs differ much from the values expected from
    their site and node, else large (empirical Bayes, by the method of moments).

    With m the prior mean of a pair, k of its n pages stored, and t the variance of chances between pairs,

        E (k / n - m)^2 = t + (m (1 - m) - t) / n

    Summed over pairs with the weights n this gives t; a Beta with mean m and weight w has t = m (1 - m) / (w + 1).
    `PRIOR_PAGES` counts as much as `_PRIOR_PAIRS` pairs with 2 pages each.

    Args:
        everything: sums of all pairs with attempts; the last axis has the order of `SUMS`.
        overall: means of all pairs.
    """
    of_site = _shrunk(_Sums(everything.sum(axis=1, keepdims=True)), overall)
    of_node = _shrunk(_Sums(everything.sum(axis=0, keepdims=True)), overall)
    m = _share(of_site.page + of_node.page - overall.page)
    n, stored = _pages(_Sums(everything))
    several = n > 1.5
    n, stored, chance = n[several], stored[several], (m * (1.0 - m))[several]
    seen = float((n * (stored / n - m[several]) ** 2 - chance).sum())
    before = _PRIOR_PAIRS * PAGE_CHANCE * (1.0 - PAGE_CHANCE)
    share = (max(0.0, seen) + before / (PRIOR_PAGES + 1.0)) / (float(((n - 1.0) * chance).sum()) + before)
    return min(max(1.0 / share - 1.0, LEAST_WEIGHT), PRIOR_PAGES)


def _shrunk(sums: _Sums, above: _Level) -> _Level:
    """Return the means of pools, shrunk to the level above with the weight of a prior."""
    per_attempt = sums.active_s / np.maximum(sums.attempts, _FADED)
    overhead = np.where(per_attempt > 0, np.minimum(OVERHEAD_S, 0.5 * per_attempt), above.overhead_s)
    pages, stored = _pages(sums)
    spent = pages * _page_seconds(sums, overhead)
    prior_pages = POOL_WEIGHT * PRIOR_PAGES
    prior_attempts = POOL_WEIGHT * PRIOR_ATTEMPTS
    mean_s = (prior_pages * np.exp(above.seconds) + spent) / (prior_pages + pages)
    return _Level(
        _logit((prior_pages * _share(above.page) + stored) / (prior_pages + pages)),
        _logit((prior_attempts * _share(above.bad) + sums.bad) / (prior_attempts + sums.attempts)),
        _logit((prior_attempts * _share(above.silent) + sums.silent) / (prior_attempts + sums.bad)),
        np.log(mean_s),
        overhead,
    )


def _select_pools(known: dict[str, int], pools: Array, names: Iterable[str]) -> Array:
    """Return the pools of these names, in this order; zeros for an unknown name."""
    padded = np.concatenate([pools, np.zeros((1, len(SUMS)))])
    selected: Array = padded[[known.get(name, -1) for name in names]]
    return selected


def _select_sums(knowledge: Knowledge, everything: Array, sites: list[str], nodes: list[str]) -> _Sums:
    """Return the sums of pairs of these names, in this order; zeros without data."""
    if list(knowledge.sites) == sites and list(knowledge.nodes) == nodes:
        return _Sums(everything)
    padded = np.pad(everything, ((0, 1), (0, 1), (0, 0)))
    rows = [knowledge.sites.get(name, -1) for name in sites]
    columns = [knowledge.nodes.get(name, -1) for name in nodes]
    return _Sums(padded[np.ix_(rows, columns)])


def _pages(sums: _Sums) -> tuple[Array, Array]:
    """Return tried and stored pages, counted as independent ones (Kish's design effect)."""
    tried = np.where(sums.tried < _FADED, 0.0, sums.tried)
    per_attempt = np.maximum(1.0, tried / np.maximum(sums.attempts, _FADED))
    weight = 1.0 / (1.0 + (per_attempt - 1.0) * ALIKE)
    return tried * weight, np.minimum(sums.collected, tried) * weight


def _page_seconds(sums: _Sums, overhead_s: Array) -> Array:
    """Return the seconds per tried page without the overhead of attempts; 0 without a tried page.

    At least half of the active seconds count for the pages, and a page takes at least 0.1 ms, so that a rough
    estimate of the overhead does not make a pair look free.
    """
    spent = np.maximum(sums.active_s - sums.attempts * overhead_s, 0.5 * sums.active_s)
    each = np.maximum(spent / np.maximum(sums.tried, _FADED), 1e-4)
    return np.where(sums.tried < _FADED, 0.0, each)


def _logit(share: Array) -> Array:
    inside = np.clip(share, 1e-4, 1.0 - 1e-4)
    return np.log(inside / (1.0 - inside))


def _share(logit: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logit, -9.0, 9.0))))
