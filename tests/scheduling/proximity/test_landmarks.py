"""Landmarks by k-centre."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.errors import InputError
from tasks.scheduling.proximity.gnp import distances_ms
from tasks.scheduling.proximity.landmarks import k_centre


def matrix(seed: int, count: int) -> np.ndarray:
    at = np.random.default_rng(seed).uniform(0.0, 100.0, (count, 2))
    return distances_ms(at, at)


@given(st.integers(0, 1000), st.integers(1, 12), st.data())
def test_each_next_one_is_the_farthest_from_those_before(seed, count, data):
    rtt = matrix(seed, count)
    wanted = data.draw(st.integers(1, count))
    chosen = k_centre(rtt, wanted, Random(seed))
    assert len(set(chosen)) == wanted
    for place in range(1, wanted):
        nearest = rtt[:, chosen[:place]].min(1)
        nearest[chosen[:place]] = -1.0
        assert nearest[chosen[place]] == nearest.max()


def test_the_first_is_drawn_and_the_seed_decides():
    rtt = matrix(1, 30)
    assert k_centre(rtt, 9, Random(4)) == k_centre(rtt, 9, Random(4))
    assert len({k_centre(rtt, 1, Random(seed))[0] for seed in range(40)}) > 10


def test_a_node_nobody_could_measure_comes_last():
    rtt = matrix(2, 5)
    rtt[3, :] = rtt[:, 3] = np.nan
    assert k_centre(rtt, 5, Random(2))[-1] == 3 or Random(2).randrange(5) == 3


@pytest.mark.parametrize(("shape", "count"), [((3, 4), 2), ((3, 3), 4), ((3, 3), 0)])
def test_wrong_matrices_are_refused(shape, count):
    with pytest.raises(InputError, match="landmarks"):
        k_centre(np.ones(shape), count, Random(0))
