"""What to expect of an attempt of a site on a node: posteriors with few data treated as few.

Three unknowns of a (site, node), each with a conjugate prior:

- page chance q: a tried page is stored. Beta(a, b) on tried pages.
- bad share f: an attempt fails or goes silent. Beta on attempts. Of bad attempts a share z is silent (mean
  only).
- seconds per tried page s. Page times taken as exponential, so 1/s is Gamma(shape, scale 1/total): total is
  the seconds seen, shape the pages seen.

Prior mean of a pair = main effects of its site and of its node around the overall mean, added on the
log-odds scale (on the log scale for s): a new node at a good site, or a good node at a new site, starts
with what is known. The prior weighs `prior_pages` pages and `prior_attempts` attempts, so a few attempts of
the pair's own outvote it. Site, node and overall means are themselves shrunk to the level above and at last
to the settings, `pool_weight` times as hard: a node is not condemned by its first attempt somewhere.

Pages of one attempt resemble each other, so m of them count as m / (1 + (m - 1) * alike) independent ones
(the design effect of cluster samples; Kish, Survey Sampling, 1965).

Time of an attempt: overhead + pages tried * s. The sums can't tell the two apart, so the overhead is the
setting, but at most half of the active seconds an attempt of the site takes. Failed attempts may or may not
have known their hits (offered); so the share of its pages an attempt gets to is
reach = min(1 - f, tried / offered). Expected pages per second of a slot for an attempt of n targets:

    rate(n) = q * reach * n / (overhead + reach * n * s + f * z * recall_after)

The draw (Thompson sampling) takes q, f and s from their posteriors instead of their means: a pair is chosen
as often as it may be the best one, so exploration stops where it no longer pays, and starts again as old
data fade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tasks.control import pool
from tasks.model import PairStats


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """First guesses and their weights.

    Attributes:
        page_chance, bad_share, silent_of_bad: guesses (shares in (0, 1)) where nothing at all is known.
        seconds_per_page, overhead_s: the same, in seconds; the overhead covers connecting and the result
            page.
        prior_pages: weight of a prior against a pair's own (independent) pages.
        prior_attempts: weight of a prior against a pair's own attempts.
        pool_weight: weight of the level above against a site's, a node's or all data, in weights of a prior.
        alike: correlation of pages of one attempt, 0 (independent) to 1 (an attempt says as much as one
            page).
        recall_after_s: what a silent attempt costs.
    """

    page_chance: float = 0.8
    bad_share: float = 0.05
    silent_of_bad: float = 0.3
    seconds_per_page: float = 1.0
    overhead_s: float = 1.0
    prior_pages: float = 4.0
    prior_attempts: float = 2.0
    pool_weight: float = 5.0
    alike: float = 0.1
    recall_after_s: float = 60.0


_FADED = 1e-9
"""Fewer pages than this are no data: sums that faded so far carry no digits."""


class Belief(NamedTuple):
    """One set of values for a pair: posterior means, or a draw.

    Attributes:
        page_chance: q; a tried page is stored.
        reach: share of its targets an attempt gets to try.
        silent: chance that an attempt goes silent.
        seconds_per_page: s, per tried page.
        overhead_s: seconds of an attempt that are no page's.
        recall_after_s: seconds a silent attempt costs.
    """

    page_chance: float
    reach: float
    silent: float
    seconds_per_page: float
    overhead_s: float
    recall_after_s: float

    def rate(self, pages: float) -> float:
        """Expected pages per second of a slot, for an attempt of so many targets (formula above)."""
        tried = self.reach * pages
        seconds = self.overhead_s + tried * self.seconds_per_page + self.silent * self.recall_after_s
        return self.page_chance * tried / seconds


class Posterior(NamedTuple):
    """Parameters of a pair's three distributions (module docstring), and what is used by its mean only."""

    page_a: float
    page_b: float
    bad_a: float
    bad_b: float
    seconds_shape: float
    seconds_total: float
    tried_share: float
    silent_of_bad: float
    overhead_s: float
    recall_after_s: float

    def mean(self) -> Belief:
        """The values expected."""
        return self._belief(
            self.page_a / (self.page_a + self.page_b),
            self.bad_a / (self.bad_a + self.bad_b),
            self.seconds_total / self.seconds_shape,
        )

    def draw(self, rng: Random) -> Belief:
        """Values drawn from the posteriors (Thompson sampling)."""
        return self._belief(
            rng.betavariate(self.page_a, self.page_b),
            rng.betavariate(self.bad_a, self.bad_b),
            self.seconds_total / max(rng.gammavariate(self.seconds_shape, 1.0), 1e-9),
        )

    def _belief(self, page_chance: float, bad: float, seconds: float) -> Belief:
        return Belief(
            page_chance,
            min(1.0 - bad, self.tried_share),
            bad * self.silent_of_bad,
            seconds,
            self.overhead_s,
            self.recall_after_s,
        )


@dataclass(frozen=True, slots=True)
class _Level:
    """Means of a site, of a node, or of all, on the scales on which they are added."""

    page: float  # log-odds
    bad: float  # log-odds
    silent: float  # log-odds
    seconds: float  # log
    overhead_s: float


class Estimates:
    """Posteriors of pairs for one decision round, worked out once each and only where asked for.

    Args:
        stats: what is known per (site, node), faded to now; pairs may be missing.
        settings: first guesses and weights.
    """

    def __init__(self, stats: Mapping[tuple[str, str], PairStats], settings: EstimateSettings) -> None:
        self._stats = stats
        self._settings = settings
        pools = pool(stats.values())
        first = _Level(
            _logit(settings.page_chance),
            _logit(settings.bad_share),
            _logit(settings.silent_of_bad),
            math.log(settings.seconds_per_page),
            settings.overhead_s,
        )
        self._all = self._shrunk(pools.total, first)
        self._by_site = _lazily(pools.by_site, self._shrunk, self._all)
        self._by_node = _lazily(pools.by_node, self._shrunk, self._all)
        self._known: dict[tuple[str, str], Posterior] = {}

    def posterior(self, site: str, node: str) -> Posterior:
        """The pair's posterior; that of its prior alone where it has no data."""
        found = self._known.get((site, node))
        if found is None:
            found = self._known[site, node] = self._posterior(site, node)
        return found

    def _posterior(self, site: str, node: str) -> Posterior:
        given, overall = self._settings, self._all
        of_site, of_node = self._by_site(site), self._by_node(node)
        own = self._stats.get((site, node)) or PairStats(site, node)
        page = _share(of_site.page + of_node.page - overall.page)
        bad = _share(of_site.bad + of_node.bad - overall.bad)
        silent = _share(of_site.silent + of_node.silent - overall.silent)
        seconds = math.exp(of_site.seconds + of_node.seconds - overall.seconds)
        pages, stored = _pages(own, given.alike)
        spent = _page_seconds(own, of_site.overhead_s)
        failures = own.failed + own.silent
        return Posterior(
            page_a=given.prior_pages * page + stored,
            page_b=given.prior_pages * (1.0 - page) + max(0.0, pages - stored),
            bad_a=given.prior_attempts * bad + failures,
            bad_b=given.prior_attempts * (1.0 - bad) + max(0.0, own.attempts - failures),
            seconds_shape=given.prior_pages + pages,
            seconds_total=given.prior_pages * seconds + pages * spent,
            tried_share=(own.tried + given.prior_pages) / (own.offered + given.prior_pages),
            silent_of_bad=(given.prior_attempts * silent + own.silent) / (given.prior_attempts + failures),
            overhead_s=of_site.overhead_s,
            recall_after_s=given.recall_after_s,
        )

    def _shrunk(self, sums: PairStats, above: _Level) -> _Level:
        """Means of a pool, shrunk to the level above with the weight of a prior."""
        given = self._settings
        overhead = above.overhead_s
        if sums.attempts > 0 and sums.active_s > 0:
            overhead = min(given.overhead_s, 0.5 * sums.active_s / sums.attempts)
        pages, stored = _pages(sums, given.alike)
        failures = sums.failed + sums.silent
        spent = pages * _page_seconds(sums, overhead)
        prior_pages = given.pool_weight * given.prior_pages
        prior_attempts = given.pool_weight * given.prior_attempts
        mean_s = (prior_pages * math.exp(above.seconds) + spent) / (prior_pages + pages)
        return _Level(
            _logit((prior_pages * _share(above.page) + stored) / (prior_pages + pages)),
            _logit((prior_attempts * _share(above.bad) + failures) / (prior_attempts + sums.attempts)),
            _logit((prior_attempts * _share(above.silent) + sums.silent) / (prior_attempts + failures)),
            math.log(mean_s),
            overhead,
        )


def _lazily(
    sums: Mapping[str, PairStats], level: Callable[[PairStats, _Level], _Level], above: _Level
) -> Callable[[str], _Level]:
    known: dict[str, _Level] = {}

    def of(name: str) -> _Level:
        found = known.get(name)
        if found is None:
            pooled = sums.get(name)
            found = known[name] = above if pooled is None else level(pooled, above)
        return found

    return of


def _pages(stats: PairStats, alike: float) -> tuple[float, float]:
    """Tried and stored pages, counted as independent ones (Kish's design effect)."""
    if stats.tried < _FADED:
        return 0.0, 0.0
    per_attempt = max(1.0, stats.tried / stats.attempts) if stats.attempts > 0 else 1.0
    weight = 1.0 / (1.0 + (per_attempt - 1.0) * alike)
    return stats.tried * weight, min(stats.collected, stats.tried) * weight


def _page_seconds(stats: PairStats, overhead_s: float) -> float:
    """Seconds per tried page once the overhead of every attempt is taken off; 0 without a tried page.

    At least half of the active seconds are the pages', and a page takes at least 0.1 ms: a rough overhead must not
    make a pair look free.
    """
    if stats.tried < _FADED:
        return 0.0
    spent = max(stats.active_s - stats.attempts * overhead_s, 0.5 * stats.active_s)
    return max(spent / stats.tried, 1e-4)


def _logit(share: float) -> float:
    inside = min(max(share, 1e-4), 1.0 - 1e-4)
    return math.log(inside / (1.0 - inside))


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(logit, -9.0), 9.0)))
