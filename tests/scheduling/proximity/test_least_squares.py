"""The minimiser of many small problems at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.scheduling.proximity.least_squares import least_squares


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 4))
def test_the_minimiser_never_climbs(seed, problems, parameters):
    chance = np.random.default_rng(seed)
    goal = chance.standard_normal((problems, 5))
    mix = chance.standard_normal((problems, 5, parameters))

    def residuals(at, which):
        inner = (mix[which] @ at[:, :, None])[:, :, 0]
        slope = (1.0 - np.tanh(inner) ** 2)[:, :, None] * mix[which]
        return np.tanh(inner) - goal[which], slope

    start = chance.standard_normal((problems, parameters))
    before = (residuals(start, np.arange(problems))[0] ** 2).sum(1)
    found, sums = least_squares(residuals, start)
    assert (sums <= before).all()
    assert (residuals(found, np.arange(problems))[0] ** 2).sum(1) == pytest.approx(sums)
