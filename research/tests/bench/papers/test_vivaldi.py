"""Vivaldi: the springs come to rest where the delays say."""

from __future__ import annotations

import numpy as np

from research.papers import vivaldi


def test_delays_with_heights_are_found_again():
    chance = np.random.default_rng(1)
    at = np.column_stack([chance.uniform(0.0, 200.0, (25, 2)), chance.uniform(2.0, 30.0, 25)])
    truth = vivaldi.distances_ms(at, at)
    order = chance.random((25, 25))
    np.fill_diagonal(order, 2.0)
    neighbours = np.argsort(order, axis=1)[:, :12]
    placed = vivaldi.embed(np.take_along_axis(truth, neighbours, 1), neighbours, 2, 0)
    off = ~np.eye(25, dtype=bool)
    error = np.abs(vivaldi.distances_ms(placed, placed) / truth - 1.0)[off]
    assert np.median(error) < 0.05
    again = vivaldi.embed(np.take_along_axis(truth, neighbours, 1), neighbours, 2, 0)
    assert (again == placed).all()


def test_a_neighbour_not_measured_is_not_asked():
    delays = np.array([[np.nan, 10.0], [10.0, np.nan]])
    placed = vivaldi.embed(delays, np.array([[0, 1], [0, 1]]), 2, 0)
    assert np.isfinite(placed).all()
    assert abs(vivaldi.distances_ms(placed[:1], placed[1:])[0, 0] - 10.0) < 1.0
