"""Coordinates by landmarks: exact where the delays are Euclidean, best of all starts where not; and k-centre."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.papers.gnp import embed_landmarks, k_centre, place_many
from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import distances_ms


def points(seed: int, count: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.0, 200.0, (count, dimensions))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_delays_of_a_euclidean_space_are_found_again(seed, dimensions):
    landmarks, hosts = points(seed, 9, dimensions), points(seed + 1, 6, dimensions)
    placed = embed_landmarks(distances_ms(landmarks, landmarks), dimensions, seed)
    assert distances_ms(placed, placed) == pytest.approx(
        distances_ms(landmarks, landmarks), rel=2e-3, abs=2e-3
    )
    found = place_many(placed, distances_ms(hosts, landmarks), seed)
    errors = np.abs(distances_ms(found, placed) / distances_ms(hosts, landmarks) - 1.0).max(1)
    # A start may end in a valley of its own; hardly ever all of them.
    assert np.median(errors) < 2e-3


def test_same_seed_same_coordinates_and_one_host_is_one_of_many():
    landmarks = points(3, 7, 4)
    delays = distances_ms(points(4, 5, 4), landmarks)
    among = distances_ms(landmarks, landmarks)
    assert (embed_landmarks(among, 4, 1) == embed_landmarks(among, 4, 1)).all()
    assert (place_many(landmarks, delays, 1) == place_many(landmarks, delays, 1)).all()
    alone = place_many(landmarks, delays[:1], 1)
    assert distances_ms(alone, landmarks)[0] == pytest.approx(delays[0], rel=1e-3)


def test_both_ways_count_and_one_is_enough():
    landmarks = points(5, 6, 2)
    one_way = distances_ms(landmarks, landmarks)
    one_way[np.tril_indices(6)] = np.nan
    placed = embed_landmarks(one_way, 2, 0)
    assert distances_ms(placed, placed) == pytest.approx(
        distances_ms(landmarks, landmarks), rel=2e-3, abs=2e-3
    )
    skewed = distances_ms(landmarks, landmarks) * np.where(np.tri(6) > 0, 1.1, 0.9)
    placed = embed_landmarks(skewed, 2, 0)
    assert distances_ms(placed, placed) == pytest.approx(
        distances_ms(landmarks, landmarks), rel=2e-3, abs=2e-3
    )


def test_a_delay_not_measured_is_left_out_and_too_few_give_no_place():
    landmarks, hosts = points(6, 6, 2), points(7, 3, 2)
    delays = distances_ms(hosts, landmarks)
    delays[0, 2] = np.nan
    delays[1, 2:] = np.nan
    placed = place_many(landmarks, delays, 0)
    assert distances_ms(placed[:1], landmarks) == pytest.approx(distances_ms(hosts[:1], landmarks), rel=1e-3)
    assert np.isnan(placed[1]).all()
    assert np.isfinite(placed[2]).all()
    assert np.isnan(place_many(landmarks, np.full((2, 6), np.nan), 0)).all()


def test_more_dimensions_than_landmarks_fix_is_no_trouble():
    landmarks = points(8, 5, 3)
    placed = embed_landmarks(distances_ms(landmarks, landmarks), 8, 0)
    assert placed.shape == (5, 8)
    assert np.isfinite(place_many(placed, distances_ms(points(9, 4, 3), landmarks), 0)).all()


def test_delays_that_no_space_has_end_no_higher_than_they_start():
    delays = np.random.default_rng(0).uniform(1.0, 300.0, (9, 9))
    placed = embed_landmarks(delays, 2, 0)
    mean = (delays + delays.T) / 2
    pairs = np.triu_indices(9, 1)
    # All in one place would leave 1 for each pair.
    assert ((distances_ms(placed, placed)[pairs] / mean[pairs] - 1.0) ** 2).sum() < 0.5 * len(pairs[0])


def test_wrong_delays_are_refused():
    good = distances_ms(points(1, 5, 2), points(1, 5, 2))
    for wrong, said in (
        ((good, 1), "dimensions"),
        ((good, 9), "dimensions"),
        ((good[:, :4], 2), "square"),
        ((good[:2, :2], 2), "3 x 3"),
        ((-good, 2), "positive"),
        (
            (np.where(np.eye(5)[0] > 0, np.nan, good) * np.where(np.eye(5)[:, :1] > 0, np.nan, 1.0), 2),
            "landmark",
        ),
    ):
        with pytest.raises(InputError, match=said):
            embed_landmarks(*wrong, 0)
    for delays, said in ((good[:, :4], "column"), (good[0], "column"), (np.zeros((1, 5)), "positive")):
        with pytest.raises(InputError, match=said):
            place_many(points(1, 5, 2), delays, 0)


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
