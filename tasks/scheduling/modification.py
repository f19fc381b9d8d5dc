"""Modification: compute the quota (hits) and the budget (seconds) of a subtask's next attempt.

Completion and efficiency are in conflict (2014 paper, modification; it prints no formula). Our objective combines
both.

Model. An attempt of n pages first costs an overhead of o active seconds, then s seconds a page. A spell
that began well turns bad (a block that answers, an overloaded site) at each page with hazard h; from then
on pages still cost their seconds and yield nothing. Pages of a good spell are stored with chance c0. So

    stored(n)  = c0 * G(n),  G(n) = (1 - (1 - h)^n) / h       seconds(n) = o + n * s
    J(n)       = stored(n) / seconds(n)                       pages per active second: to be maximised

The cost of a bad spell beyond (recall, rest) is L * (1 - (1 - h)^n) = L * h * G(n) seconds: it adds the
constant L * h / c0 to the seconds per page and does not move the optimum.

Optimum. G is concave, seconds(n) is a line with a positive intercept, so J rises and then falls, over
integers too. With k = -ln(1 - h) and x = k * n, dJ/dn = 0 reads  e^x = 1 + x + k * o / s:  one positive
root (Brent's method), and the best integer is next to it. More hazard or slower pages: fewer pages; more overhead:
more pages.

Hazard from observations. m = offered / attempts pages were meant per attempt. tried / offered is what
failures, blocks and silence left of them; of the misses among tried pages the part `SPELL_SHARE` (in
logarithms) is laid to bad spells, the rest to single pages: c0 = (collected / tried) ** (1 - SPELL_SHARE).
The hazard solves G(m') / m' = tried / offered * (collected / tried) ** SPELL_SHARE, with m' = max(m,
default quota): single misses that look like short spells must not shorten attempts ever further.

With few data the prior counts more: ln h and ln s are means of the observed values, weighted by the number of
attempts, and of a prior with the weight `PRIOR_ATTEMPTS`. The prior hazard has the default quota as its optimum, the
prior s has the default budget as its budget. Observed values are limited to the range of the quota's bounds.

Budget. Page times are independent with coefficient of variation `PAGE_CV`, their sum taken as lognormal
with the same mean and variance (Fenton 1960). The budget is the time within which the quota gets done with
probability 0.9. If even the longest budget is too short for that, the quota is reduced to fit. Both stay within the
site's bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from splitter.catalog.model import Bounds

from tasks.domain.pair_stats import PairStats
from tasks.domain.reasons import Reason

_NORMAL_90 = 1.2815515655446004
"""The standard normal distribution's 0.9 quantile."""


_FADED = 1e-9
"""Sums below this count as no data, because they have faded too far to have valid digits."""


OVERHEAD_S = 1.0
"""Overhead of an attempt in active seconds; at most half of the observed time of attempts."""

SPELL_SHARE = 0.5
"""Share (0 to 1) of misses among tried pages that come in spells."""

PAGE_CV = 1.0
"""Standard deviation of a page's seconds over their mean."""

PRIOR_ATTEMPTS = 4.0
"""Weight of the defaults, as a number of attempts."""


@dataclass(frozen=True, slots=True)
class Modification:
    """Limits of the next attempt.

    Attributes:
        quota: maximum number of hits.
        budget_s: maximum active seconds.
        objective: J of the quota: expected pages per active second in a spell that starts well; `None` without an
            estimate.
        reason: reason for the quota.
        figures: parameters of the reason.
    """

    quota: int
    budget_s: float
    objective: float | None
    reason: Reason
    figures: Mapping[str, float] = field(default_factory=dict)

    def set_by_person(self, quota: int) -> Modification:
        """Return this modification with a quota set by a person."""
        return replace(self, quota=quota, reason=Reason.PERSON_SET_QUOTA, figures={})

    def as_detail(self) -> dict[str, object]:
        """Return the fields as JSON values for the event log."""
        return {
            "quota": self.quota,
            "budget_s": self.budget_s,
            "objective": self.objective,
            "because": {"reason": self.reason.value, "parameters": self.figures},
        }


@dataclass(frozen=True, slots=True)
class Spell:
    """The model's four parameters (module docstring).

    Attributes:
        hazard: h, in (0, 1).
        page_chance: c0.
        seconds_per_page: s.
        overhead_s: o.
    """

    hazard: float
    page_chance: float
    seconds_per_page: float
    overhead_s: float

    def objective(self, pages: int) -> float:
        """Return J: pages stored per active second by attempts of `pages` pages."""
        stored = self.page_chance * _good_pages(_rate(self.hazard), pages)
        return stored / (self.overhead_s + pages * self.seconds_per_page)

    def best_pages(self, lowest: int, highest: int) -> int:
        """Return the number of pages in [lowest, highest] that maximises J."""
        root = _best_length(_rate(self.hazard), self.overhead_s / self.seconds_per_page)
        below = min(max(math.floor(root), lowest), highest)
        above = min(below + 1, highest)
        return above if self.objective(above) > self.objective(below) else below

    def budget_s(self, pages: int) -> float:
        """Return the active seconds that are enough for `pages` pages with probability 0.9 (lognormal sum)."""
        return self.overhead_s + _pages_90(pages) * self.seconds_per_page

    def max_pages(self, budget_s: float, lowest: int, highest: int) -> int:
        """Return the largest number of pages in [lowest, highest] with a budget up to `budget_s`, else `lowest`."""

        counts = range(lowest, highest + 1)
        return max(lowest, lowest - 1 + bisect_right(counts, budget_s, key=self.budget_s))


def default_quota(quota: Bounds) -> int:
    """Return the quota of an attempt without data: the middle of the bounds on a logarithmic scale."""
    return max(1, round(math.sqrt(max(quota.min, 1.0) * max(quota.max, 1.0))))


def default_budget_s(budget_s: Bounds) -> float:
    """Return the budget of an attempt without data: the middle of the bounds on a logarithmic scale."""
    return math.sqrt(max(budget_s.min, 1e-3) * max(budget_s.max, 1e-3))


def defaults(quota: Bounds, budget_s: Bounds) -> Modification:
    """Return the defaults, for a first attempt, and for all attempts if modification is switched off."""
    return Modification(default_quota(quota), default_budget_s(budget_s), None, Reason.SITE_DEFAULTS)


def modify(stats: PairStats, left: int, quota: Bounds, budget_s: Bounds) -> Modification:
    """Return quota and budget of the next attempt of a subtask.

    Args:
        stats: statistics of the pair that will run it or, if the node isn't known yet, of the site over its nodes.
        left: number of open targets. They are divided evenly over as many attempts as the optimum needs.
        quota: the site's bounds, in hits.
        budget_s: the site's bounds, in seconds.
    """
    spell, fits, best = _optimum(stats, quota, budget_s)
    lowest, _ = _whole(quota)
    shared = math.ceil(left / math.ceil(left / best)) if left > 0 else best
    pages = min(max(shared, lowest), fits)
    seconds = spell.budget_s(min(pages, max(left, 1)))
    figures = {
        "hits": best,
        "page_s": spell.seconds_per_page,
        "hazard": spell.hazard,
        "attempts": stats.attempts,
    }
    seconds = min(max(seconds, budget_s.min), budget_s.max)
    return Modification(pages, seconds, spell.objective(pages), Reason.BEST_QUOTA, figures)


@lru_cache(maxsize=4096)
def _optimum(stats: PairStats, quota: Bounds, budget_s: Bounds) -> tuple[Spell, int, int]:
    """Return the model, the number of pages that fit into the longest budget, and the best number of pages up to it.

    The result is cached, since a turn of the scheduler gives several leases of a pair at the same moment.
    """
    spell = estimate_spell(stats, quota, budget_s)
    lowest, highest = _whole(quota)
    fits = spell.max_pages(budget_s.max, lowest, highest)
    return spell, fits, spell.best_pages(lowest, fits)


def estimate_spell(stats: PairStats, quota: Bounds, budget_s: Bounds) -> Spell:
    """Return the model's parameters: observed values, shrunk towards those with the defaults as optimum."""
    usual, usual_budget = default_quota(quota), default_budget_s(budget_s)
    usual_overhead = min(OVERHEAD_S, 0.5 * usual_budget)
    usual_s = (usual_budget - usual_overhead) / _pages_90(usual)
    overhead, seconds = usual_overhead, usual_s
    weight = stats.attempts / (stats.attempts + PRIOR_ATTEMPTS)
    if min(stats.attempts, stats.tried, stats.active_s) > _FADED:
        overhead = min(usual_overhead, 0.5 * stats.active_s / stats.attempts)
        seen_s = (stats.active_s - stats.attempts * overhead) / stats.tried
        seconds = _geometric_mean(usual_s, seen_s, weight)
    ratio = usual_overhead / usual_s
    rate, page_chance = _rate_with_optimum(usual, ratio), 1.0
    if min(stats.attempts, stats.offered) > _FADED:
        lowest, highest = _whole(quota)
        span = _rate_with_optimum(highest, ratio), _rate_with_optimum(lowest, ratio)
        rate = _geometric_mean(rate, _spell_rate(stats, usual, span), weight)
        shrunk = (stats.collected + PRIOR_ATTEMPTS) / (stats.tried + PRIOR_ATTEMPTS)
        page_chance = min(1.0, shrunk) ** (1.0 - SPELL_SHARE)
    return Spell(-math.expm1(-rate), page_chance, seconds, overhead)


def _spell_rate(stats: PairStats, usual: int, span: tuple[float, float]) -> float:
    """Return the -ln(1 - h) within `span` that explains the share of offered pages lost in bad spells."""
    chance = min(1.0, stats.collected / stats.tried) if stats.tried > 0 else 1.0
    kept = min(1.0, stats.tried / stats.offered) * chance**SPELL_SHARE
    pages = max(stats.offered / stats.attempts, float(usual))
    return _root(lambda rate: kept - _good_pages(rate, pages) / pages, *span)


@lru_cache(maxsize=1024)
def _rate_with_optimum(pages: int, ratio: float) -> float:
    """Return the -ln(1 - h) with `pages` as optimum: x / pages with (e^x - 1 - x) / x = ratio / pages."""
    goal = ratio / pages
    return _root(lambda x: (math.expm1(x) - x) / x - goal, 1e-9, 2.0 * math.log1p(goal) + 2.0) / pages


def _best_length(rate: float, ratio: float) -> float:
    """Return the real number of pages that maximises J: x / rate with e^x = 1 + x + rate * ratio."""
    goal = rate * ratio
    above = math.sqrt(2.0 * goal) if goal <= 1.0 else 2.0 * math.log1p(goal)
    return _root(lambda x: math.expm1(x) - x - goal, 0.0, above) / rate


def _good_pages(rate: float, pages: float) -> float:
    """Return G, the pages of an attempt in its good spell: (1 - (1 - h)^n) / h with h = 1 - e^-rate."""
    return math.expm1(-rate * pages) / math.expm1(-rate)


def _rate(hazard: float) -> float:
    return -math.log1p(-min(hazard, 1.0 - 1e-12))


def _pages_90(pages: float) -> float:
    """Return the 0.9 quantile of the time of `pages` pages, in mean page times (lognormal with the same moments)."""
    variance = PAGE_CV**2 / pages
    return pages / math.sqrt(1.0 + variance) * math.exp(_NORMAL_90 * math.sqrt(math.log1p(variance)))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return the number in [low, high] at which a rising function crosses 0, or the nearer end if it does not.

    It uses bisection, which takes less time than importing scipy before the first lease.
    """
    middle = 0.5 * (low + high)
    while low < middle < high:
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
        middle = 0.5 * (low + high)
    return middle


def _geometric_mean(prior: float, seen: float, weight: float) -> float:
    """Return the weighted geometric mean of the prior and the observed value."""
    return math.exp((1.0 - weight) * math.log(prior) + weight * math.log(seen))


def _whole(quota: Bounds) -> tuple[int, int]:
    lowest = max(1, math.ceil(quota.min))
    return lowest, max(lowest, math.floor(quota.max))
