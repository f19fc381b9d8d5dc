"""Coordinates on measured round-trip times: a floor under what the bench reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.bench.proximity import accuracy, by_gnp, by_vivaldi, choice, delays, drawn, with_measured
from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import embed

SHARED = Path(__file__).parents[5] / "shared" / "data"


@pytest.fixture(scope="module")
def draw():
    if not (SHARED / "rtt").is_dir():
        pytest.skip("the shared round-trip times are not beside the repository")
    return drawn(delays(SHARED), 0, 9)


@pytest.mark.parametrize("estimator", [by_gnp(6), by_vivaldi(6)], ids=["gnp", "vivaldi"])
def test_most_estimates_are_right_and_the_closest_node_is_often_found(draw, estimator):
    estimate = estimator(draw)
    unmeasured = np.ones(draw.truth.shape, dtype=bool)
    unmeasured[:, draw.landmarks] = False
    assert (estimate[~unmeasured] == draw.truth[~unmeasured]).all()
    assert accuracy(estimate, draw.truth, unmeasured)["right_within_30"] > 0.65
    assert choice(estimate, draw.truth)["top3_hit"] > 0.5


def test_the_truth_is_a_perfect_estimate(draw):
    everything = np.ones(draw.truth.shape, dtype=bool)
    perfect = accuracy(draw.truth, draw.truth, everything) | choice(draw.truth, draw.truth)
    shares = ("right_within_20", "right_within_20_measured_too", "right_order", "top1_hit", "top3_hit")
    assert all(perfect[name] == 1.0 for name in shares)
    assert perfect["stretch_median"] == perfect["stretch_p90"] == 1.0


def test_landmarks_are_used_as_they_are_measured(draw):
    told = with_measured(draw, np.zeros(draw.truth.shape))
    assert (told[:, draw.landmarks] == draw.sites).all()


def test_a_missing_matrix_is_told_of(tmp_path):
    with pytest.raises(InputError, match="round-trip"):
        delays(tmp_path)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_the_crawls_own_pairs_tell_as_much_as_landmarks(draw, share):
    measured = np.random.default_rng(1).random(draw.truth.shape) < share
    told = embed(np.where(measured, draw.truth, np.nan)).distances_ms()
    estimate = np.where(measured, draw.truth, told)
    assert accuracy(estimate, draw.truth, ~measured)["relative_error_median"] < 0.14
    assert choice(estimate, draw.truth)["top3_hit"] > 0.5
