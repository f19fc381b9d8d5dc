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


def test_delays_of_one_way_are_enough_and_too_few_give_no_place():
    landmarks = points(5, 6, 2)
    among = distances_ms(landmarks, landmarks)
    one_way = among.copy()
    one_way[np.tril_indices(6)] = np.nan
    placed = embed_landmarks(one_way, 2, 0)
    assert distances_ms(placed, placed) == pytest.approx(among, rel=2e-3, abs=2e-3)
    measured = distances_ms(points(7, 2, 2), landmarks)
    measured[0, 2:] = np.nan
    placed = place_many(landmarks, measured, 0)
    assert np.isnan(placed[0]).all()
    assert np.isfinite(placed[1]).all()


def test_wrong_delays_are_refused():
    good = distances_ms(points(1, 5, 2), points(1, 5, 2))
    for wrong, dimensions in ((good, 1), (good[:, :4], 2), (good[:2, :2], 2), (-good, 2)):
        with pytest.raises(InputError):
            embed_landmarks(wrong, dimensions, 0)
    with pytest.raises(InputError, match="landmarks"):
        k_centre(np.ones((3, 3)), 4, Random(0))


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
