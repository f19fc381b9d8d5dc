"""The published training of the 2019 paper's network goes down its gradient, and ours goes lower."""

from __future__ import annotations

import numpy as np
import pytest

from research.papers.learned_curves import descend
from tasks.scheduling.balance.network import INPUTS, drawn, fit


def squared_error(weights, inputs, outputs):
    """E = (Y - O)^2 / 2 (4), mean over the rows."""
    return float(np.mean((outputs - weights.output(inputs)) ** 2) / 2)


def small_task():
    rng = np.random.default_rng(0)
    inputs = rng.random((60, INPUTS))
    return inputs, 0.2 + 0.5 * inputs[:, 0] * inputs[:, 5], drawn(rng, 0.3), rng


def test_one_tiny_step_is_minus_eta_times_the_numerical_gradient():
    inputs, outputs, start, rng = small_task()
    one, goal, rate = inputs[:1], outputs[:1], 1e-6
    moved = (descend(start, one, goal, rng, epochs=1, rate=rate).flat() - start.flat()) / rate
    flat, gap = start.flat(), 1e-6

    def at(step):
        return squared_error(start.unflatten(flat + step), one, goal)

    slope = [(at(step) - at(-step)) / (2 * gap) for step in gap * np.eye(flat.size)]
    assert moved == pytest.approx(-np.array(slope), abs=1e-5)


def test_both_ways_of_training_learn_and_ours_learns_better():
    inputs, outputs, start, rng = small_task()
    published = squared_error(descend(start, inputs, outputs, rng, epochs=50, rate=0.05), inputs, outputs)
    ours = squared_error(fit(start, inputs, outputs, ridge=1e-3)[0], inputs, outputs)
    assert ours < published < squared_error(start, inputs, outputs) / 5
