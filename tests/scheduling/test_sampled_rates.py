from itertools import pairwise
from math import exp
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.scheduling.sampled_rates import SampledRates

SITES = [f"s{number}" for number in range(60)]
NODES = [f"n{number}" for number in range(50)]
PAIRS = 3 * len(SITES) * len(NODES)
MEMORY_S = 100.0


def correlation(one, other):
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


@settings(max_examples=25)
@given(
    steps_s=st.lists(st.sampled_from([0.0, 0.1, 5.0, 100.0, 1e4, 1e9]), max_size=12),
    memory_s=st.sampled_from([1e-3, 10.0, 1e6]),
    seed=st.integers(0, 99),
)
def test_scores_are_standard_normal_at_any_time(steps_s, memory_s, seed):
    sampled, rng, now_s = SampledRates(), Random(seed), 0.0
    found = sampled.scores(now_s, SITES, NODES, memory_s, rng)
    for step_s in steps_s:
        now_s += step_s
        found = sampled.scores(now_s, SITES, NODES, memory_s, rng)
    assert found.shape == (3, len(SITES), len(NODES))
    assert abs(found.mean()) < 5 / PAIRS**0.5  # five standard errors
    assert abs(found.var() - 1) < 5 * (2 / PAIRS) ** 0.5
    assert abs((found > 1.6449).mean() - 0.05) < 5 * (0.05 * 0.95 / PAIRS) ** 0.5


def test_one_pair_is_standard_normal_over_time_too():
    sampled, rng = SampledRates(), Random(1)
    seen = [sampled.scores(MEMORY_S * step, ["s"], ["n"], MEMORY_S, rng) for step in range(4000)]
    # neighbours correlate by 1 / e, so n of them say as much as n (1 - 1/e) / (1 + 1/e)
    assert np.mean(seen, axis=0).ravel() == pytest.approx([0, 0, 0], abs=0.12)
    assert np.var(seen, axis=0).ravel() == pytest.approx([1, 1, 1], abs=0.15)


@pytest.mark.parametrize("later_s", [0.0, 10.0, 50.0, 100.0, 300.0])
def test_scores_forget_themselves_exponentially(later_s):
    sampled, rng = SampledRates(), Random(2)
    first = sampled.scores(1000.0, SITES, NODES, MEMORY_S, rng)
    later = sampled.scores(1000.0 + later_s, SITES, NODES, MEMORY_S, rng)
    assert correlation(first, later) == pytest.approx(exp(-later_s / MEMORY_S), abs=0.04)


def test_it_does_not_matter_in_how_many_steps_time_passes():
    sampled, rng = SampledRates(), Random(3)
    seen = [sampled.scores(float(now_s), SITES, NODES, MEMORY_S, rng) for now_s in range(0, 101, 5)]
    assert correlation(seen[0], seen[-1]) == pytest.approx(exp(-1), abs=0.04)
    assert all(correlation(*two) == pytest.approx(exp(-0.05), abs=0.02) for two in pairwise(seen))


def test_scores_of_different_pairs_and_of_different_unknowns_are_independent():
    found = SampledRates().scores(0.0, SITES, NODES, MEMORY_S, Random(4))
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        assert abs(correlation(found[one], found[other])) < 0.1
    assert abs(correlation(found[:, 1:], found[:, :-1])) < 0.06
    assert abs(correlation(found[:, :, 1:], found[:, :, :-1])) < 0.06


def test_new_names_get_scores_and_old_ones_keep_theirs():
    sampled, rng = SampledRates(), Random(5)
    before = sampled.scores(7.0, SITES[:30], NODES[:20], MEMORY_S, rng)
    after = sampled.scores(7.0, SITES, NODES, MEMORY_S, rng)
    assert np.array_equal(after[:, :30, :20], before)
    for new in (after[:, 30:], after[:, :30, 20:]):
        assert new.var() == pytest.approx(1, abs=0.1)
        assert new.mean() == pytest.approx(0, abs=0.1)


def test_a_name_that_was_away_keeps_what_time_left_of_its_score():
    sampled, rng = SampledRates(), Random(6)
    before = sampled.scores(0.0, SITES, NODES, MEMORY_S, rng)
    assert sampled.scores(50.0, SITES[:1], NODES[:1], MEMORY_S, rng).shape == (3, 1, 1)
    assert correlation(before, sampled.scores(100.0, SITES, NODES, MEMORY_S, rng)) == pytest.approx(
        exp(-1), abs=0.04
    )


def test_a_score_belongs_to_its_names_in_whatever_order_they_are_asked_for():
    sampled, rng = SampledRates(), Random(7)
    whole = sampled.scores(0.0, "abcd", "wxyz", MEMORY_S, rng)
    part = sampled.scores(0.0, "db", "yw", MEMORY_S, rng)
    assert np.array_equal(part, whole[np.ix_(range(3), [3, 1], [2, 0])])
    assert sampled.scores(0.0, "", "wx", MEMORY_S, rng).shape == (3, 0, 2)


def test_a_clock_that_goes_back_changes_nothing():
    sampled, rng = SampledRates(), Random(8)
    before = sampled.scores(100.0, "ab", "xy", MEMORY_S, rng)
    assert np.array_equal(sampled.scores(40.0, "ab", "xy", MEMORY_S, rng), before)


def test_equal_seeds_give_equal_scores_and_others_do_not():
    def run(seed):
        sampled, rng = SampledRates(), Random(seed)
        return [sampled.scores(now_s, SITES, NODES, MEMORY_S, rng) for now_s in (0.0, 20.0, 40.0)]

    first, second, other = run(9), run(9), run(10)
    assert np.array_equal(first, second)
    assert abs(correlation(first[-1], other[-1])) < 0.06
