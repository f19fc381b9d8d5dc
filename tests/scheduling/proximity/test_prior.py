"""Seconds per page by distance: the line found, and none where it explains nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.prior import DistancePrior, fit

DISTANCES = np.linspace(5.0, 400.0, 40)


@given(st.floats(0.01, 2.0), st.floats(0.5, 20.0), st.integers(8, 40))
def test_an_exact_line_is_found_again(alpha_s, beta, pairs):
    far = DISTANCES[:pairs]
    prior = fit(far, alpha_s + beta * far / 1000.0, np.full(pairs, 30.0))
    assert prior is not None
    assert prior.alpha_s == pytest.approx(alpha_s, rel=1e-6)
    assert prior.beta == pytest.approx(beta, rel=1e-6)
    assert prior.seconds(np.array([[0.0, 1000.0]])) == pytest.approx(np.array([[alpha_s, alpha_s + beta]]))


def observed(seed: int, spread: float, pages: float, pairs: int = 400) -> DistancePrior | None:
    chance = np.random.default_rng(seed)
    far = chance.uniform(5.0, 400.0, pairs)
    true_s = (0.1 + 4.0 * far / 1000.0) * np.exp(spread * chance.standard_normal(pairs) - spread**2 / 2)
    return fit(far, true_s * chance.gamma(pages, 1.0 / pages, pairs), np.full(pairs, pages))


def test_the_line_is_found_through_the_spread_of_pairs_and_of_pages():
    for pages in (5.0, 100.0):
        prior = observed(1, 0.4, pages)
        assert prior is not None
        assert prior.alpha_s == pytest.approx(0.1, abs=0.05)
        assert prior.beta == pytest.approx(4.0, rel=0.15)


def test_nothing_where_distance_explains_nothing():
    chance = np.random.default_rng(3)
    many = np.full(40, 20.0)
    assert fit(DISTANCES, chance.gamma(20.0, 0.05, 40), many) is None
    assert fit(DISTANCES, 2.0 - 4.0 * DISTANCES / 1000.0, many) is None
    assert fit(np.full(40, 80.0), chance.gamma(20.0, 0.05, 40), many) is None
    assert fit(DISTANCES, np.full(40, 0.7), many) is None


def test_too_few_pairs_are_none_and_unusable_ones_do_not_count():
    seconds = 0.1 + 4.0 * DISTANCES / 1000.0
    far, weight = DISTANCES.copy(), np.full(40, 5.0)
    far[:20], weight[20:33] = np.nan, 0.0
    assert fit(far, seconds, weight) is None
    weight[32] = 5.0
    assert fit(far, seconds, weight) is not None
    assert fit(np.array([]), np.array([]), np.array([])) is None


@given(
    st.lists(
        st.tuples(st.floats(0.0, 1e4), st.floats(1e-3, 1e3), st.floats(0.0, 1e5)), min_size=0, max_size=30
    )
)
def test_a_prior_is_always_positive_and_grows_with_distance(pairs):
    columns = np.array(pairs, dtype=float).reshape(-1, 3).T
    prior = fit(columns[0], columns[1], columns[2])
    if prior is not None:
        told = prior.seconds(np.array([0.0, 10.0, 1000.0]))
        assert (told > 0.0).all()
        assert (np.diff(told) >= 0.0).all()
