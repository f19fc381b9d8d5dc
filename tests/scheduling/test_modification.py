import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from splitter.catalog.model import Bounds
from tasks.domain.pair_stats import PairStats
from tasks.scheduling.modification import (
    Spell,
    default_budget_s,
    default_quota,
    defaults,
    estimate_spell,
    modify,
)

QUOTA, BUDGET = Bounds(min=5, max=200), Bounds(min=10, max=300)
shares = st.floats(0, 1)


def seen(*, attempts=50.0, pages=20.0, reach=1.0, chance=0.9, seconds=1.0, overhead=1.0):
    offered = attempts * pages
    tried = offered * reach
    active = attempts * overhead + tried * seconds
    return PairStats(
        attempts=attempts, offered=offered, tried=tried, collected=tried * chance, active_s=active
    )


def limits(stats, left=10_000, quota=QUOTA, budget=BUDGET):
    return modify(stats, left, quota, budget)


observed = st.builds(
    seen,
    attempts=st.floats(0, 500),
    pages=st.floats(1, 100),
    reach=shares,
    chance=shares,
    seconds=st.floats(0.05, 20),
    overhead=st.floats(0.1, 3),
)
quotas = st.tuples(st.integers(1, 50), st.integers(1, 300)).map(
    lambda ends: Bounds(min=ends[0], max=sum(ends))
)
budgets = st.tuples(st.floats(1, 60), st.floats(1, 600)).map(lambda ends: Bounds(min=ends[0], max=sum(ends)))


def test_nothing_known_gives_the_defaults():
    decided, usual = limits(PairStats()), defaults(QUOTA, BUDGET)
    assert decided.quota == usual.quota == default_quota(QUOTA) == 32
    assert decided.budget_s == pytest.approx(usual.budget_s)
    assert usual.budget_s == default_budget_s(BUDGET) == pytest.approx(math.sqrt(3000))


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_one_attempt_however_it_went_stays_near_the_default(chance):
    assert 32 / 2 < limits(seen(attempts=1, chance=chance)).quota < 32 * 2


def test_low_completion_means_fewer_pages_high_completion_more():
    low, middle, high = (limits(seen(chance=chance)).quota for chance in (0.3, 0.8, 1.0))
    assert low < middle < high
    assert low < default_quota(QUOTA) < high


def test_spells_cut_short_mean_fewer_pages_too():
    assert limits(seen(reach=0.4)).quota < limits(seen(reach=0.9)).quota


def test_very_good_efficiency_means_less_time_a_page_poor_efficiency_more():
    per_page = [(one := limits(seen(seconds=s))).budget_s / one.quota for s in (0.2, 1.0, 5.0)]
    assert per_page == sorted(per_page)
    assert per_page[2] > 5 * per_page[0]


def test_single_misses_do_not_shorten_attempts_ever_further():
    quota = 32
    for _ in range(10):
        quota = limits(seen(chance=0.6, pages=quota)).quota
    assert quota == limits(seen(chance=0.6, pages=32)).quota


@given(observed, st.integers(0, 2000), quotas, budgets)
def test_both_stay_within_the_sites_bounds(stats, left, quota, budget):
    decided = modify(stats, left, quota, budget)
    assert quota.min <= decided.quota <= quota.max
    assert budget.min <= decided.budget_s <= budget.max
    assert decided.objective > 0


@given(observed, shares, shares, st.integers(1, 2000), quotas)
def test_more_completion_never_lowers_the_quota(stats, one, other, left, quota):
    worse, better = (replace(stats, collected=stats.tried * share) for share in sorted((one, other)))
    assert limits(worse, left, quota).quota <= limits(better, left, quota).quota


@given(observed, st.floats(1, 20), st.integers(1, 2000))
def test_slower_pages_never_lower_the_budget_for_the_same_quota(stats, factor, left):
    slower = replace(stats, active_s=stats.active_s * factor)
    same = Bounds(min=20, max=20)
    assert limits(slower, left, same).budget_s >= limits(stats, left, same).budget_s - 1e-9


@given(
    st.floats(1e-4, 0.9),
    st.floats(0.05, 20),
    st.floats(0.01, 50),
    st.integers(1, 60),
    st.integers(0, 300),
)
def test_the_integer_optimum_is_that_of_trying_all(hazard, seconds, overhead, lowest, more):
    spell = Spell(hazard, 0.8, seconds, overhead)
    best = spell.best_pages(lowest, lowest + more)
    tried = [spell.objective(pages) for pages in range(lowest, lowest + more + 1)]
    assert lowest <= best <= lowest + more
    assert spell.objective(best) == pytest.approx(max(tried), rel=1e-9)


@given(observed)
def test_the_quota_is_the_best_of_those_that_fit_the_longest_budget(stats):
    spell = estimate_spell(stats, QUOTA, BUDGET)
    fits = [pages for pages in range(5, 201) if spell.budget_s(pages) <= BUDGET.max]
    assume(fits)
    best = max(spell.objective(pages) for pages in fits)
    left = 10_000_000  # dividing it evenly over whole attempts shortens none of them
    assert spell.objective(limits(stats, left).quota) == pytest.approx(best, rel=1e-9)


def test_what_is_left_is_divided_evenly_over_as_many_attempts_as_the_optimum_needs():
    stats = seen(attempts=500, chance=0.8)
    best = limits(stats).quota
    assert limits(stats, left=best + 2).quota == math.ceil((best + 2) / 2)
    assert limits(stats, left=best).quota == best


def test_the_budget_is_met_with_probability_nine_tenths_by_lognormal_pages():
    from random import Random

    rng, spell = Random(5), Spell(0.01, 1.0, 2.0, 1.0)
    sigma = math.sqrt(math.log(2.0))  # coefficient of variation 1
    times = [
        1.0 + sum(rng.lognormvariate(math.log(2.0) - sigma**2 / 2, sigma) for _ in range(20))
        for _ in range(4000)
    ]
    within = sum(time <= spell.budget_s(20) for time in times) / len(times)
    assert within == pytest.approx(0.9, abs=0.02)


@given(
    st.floats(1e-3, 1e4),
    st.floats(0.0, 50.0),
    st.floats(0.1, 1e5),
    st.integers(1, 50),
    st.integers(1, 10**6),
)
def test_one_page_more_than_the_most_would_not_fit_the_budget(seconds, overhead_s, budget_s, lowest, more):
    spell, highest = Spell(0.01, 1.0, seconds, overhead_s), lowest + more - 1
    most = spell.max_pages(budget_s, lowest, highest)
    assert lowest <= most <= highest
    assert most == lowest or spell.budget_s(most) <= budget_s
    assert most == highest or spell.budget_s(most + 1) > budget_s
