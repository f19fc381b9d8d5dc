"""Coordinates of the 2010 paper's methods: exact if the delays are Euclidean, and a floor on measured round trips."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.papers import vivaldi
from research.papers.gnp import embed_landmarks, k_centre, place_many
from research.papers.proximity import accuracy, by_gnp, by_vivaldi, delays, drawn
from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import distances_ms

SHARED = Path(__file__).parents[4] / "shared" / "data"


def points(seed, count, dimensions):
    return np.random.default_rng(seed).uniform(0.0, 200.0, (count, dimensions))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_delays_of_a_euclidean_space_are_found_again(seed, dimensions):
    landmarks, hosts = points(seed, 9, dimensions), points(seed + 1, 6, dimensions)
    among = distances_ms(landmarks, landmarks)
    placed = embed_landmarks(among, dimensions, seed)
    assert distances_ms(placed, placed) == pytest.approx(among, rel=2e-3, abs=2e-3)
    found = place_many(placed, distances_ms(hosts, landmarks), seed)
    errors = np.abs(distances_ms(found, placed) / distances_ms(hosts, landmarks) - 1.0).max(1)
    # A start may end in a valley of its own; hardly ever all of them.
    assert np.median(errors) < 2e-3


@given(st.integers(0, 1000), st.integers(1, 12), st.data())
def test_each_next_landmark_is_the_farthest_from_those_before(seed, count, data):
    at = points(seed, count, 2)
    rtt = distances_ms(at, at)
    chosen = k_centre(rtt, data.draw(st.integers(1, count)), Random(seed))
    assert len(set(chosen)) == len(chosen)
    for place in range(1, len(chosen)):
        nearest = rtt[:, chosen[:place]].min(1)
        nearest[chosen[:place]] = -1.0
        assert nearest[chosen[place]] == nearest.max()


def test_vivaldi_finds_delays_with_heights_again():
    chance = np.random.default_rng(1)
    at = np.column_stack([chance.uniform(0.0, 200.0, (25, 2)), chance.uniform(2.0, 30.0, 25)])
    truth = vivaldi.distances_ms(at, at)
    order = chance.random((25, 25))
    np.fill_diagonal(order, 2.0)
    neighbours = np.argsort(order, axis=1)[:, :12]
    measured = np.take_along_axis(truth, neighbours, 1)
    placed = vivaldi.embed(measured, neighbours, 2, 0)
    off = ~np.eye(25, dtype=bool)
    assert np.median(np.abs(vivaldi.distances_ms(placed, placed) / truth - 1.0)[off]) < 0.05
    assert (vivaldi.embed(measured, neighbours, 2, 0) == placed).all()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are missing")
@pytest.mark.parametrize("estimator", [by_gnp(6), by_vivaldi(6)], ids=["gnp", "vivaldi"])
def test_most_measured_delays_are_estimated_right(estimator):
    draw = drawn(delays(SHARED), 0, 9)
    estimate, unmeasured = estimator(draw)
    assert (estimate[~unmeasured] == draw.truth[~unmeasured]).all()
    scores = accuracy(estimate, draw.truth, unmeasured)
    assert scores["right_within_30"] > 0.65
    assert scores["top3_hit"] > 0.5
    perfect = accuracy(draw.truth, draw.truth, unmeasured)
    assert (perfect["right_within_20"], perfect["top1_hit"], perfect["stretch_p90"]) == (1.0, 1.0, 1.0)


def test_a_missing_matrix_is_reported(tmp_path):
    with pytest.raises(InputError, match="PlanetLabData_1"):
        delays(tmp_path)
