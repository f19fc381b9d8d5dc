import json
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.balance.curves import Curves
from tasks.scheduling.balance.learned import LEAST_RUNS, Trained, TrainingError, train
from tasks.scheduling.balance.network import HIDDEN, WEIGHTS, Scaling, drawn
from tasks.scheduling.balance.parameters import NodeParameters, Sample

pytestmark = pytest.mark.slow

values = st.floats(0.1, 100)
parameters = st.builds(NodeParameters, *[values | st.none()] * 5)


@cache
def runs(count=300, noise=0.1, nodes=20):
    rng = np.random.default_rng(4)
    fleet = [
        NodeParameters(float(rng.choice((1, 2, 4))), 2.4, float(rng.uniform(0.5, 3)), float(rng.uniform(2, 30)), None)
        for _ in range(nodes)
    ]  # fmt: skip
    made = []
    for place in range(count):
        node, n = fleet[place % nodes], int(rng.integers(1, 151))
        seconds = (4 + n * (0.1 * node.cpu_cores + 1.6 / node.net_mbps)) * rng.lognormal(0, noise)
        made.append(Sample(node, n, float(seconds)))
    return tuple(made)


@cache
def trained(seed=1):
    return train(runs(), seed)


@pytest.mark.parametrize("count", [0, LEAST_RUNS - 1])
def test_nothing_is_learned_from_too_few_runs(count):
    with pytest.raises(TrainingError, match=rf"{count} recorded runs .* it takes {LEAST_RUNS}"):
        train(runs()[:count], 1)


def test_runs_not_seen_are_predicted_nearly_as_well_as_their_noise_allows():
    held_out = trained().held_out
    assert held_out.runs == 60
    assert held_out.r_squared > 0.95
    # The median of |factor - 1| of the noise itself is 0.067.
    assert held_out.median_relative_error < 0.1


def test_a_seed_decides_everything():
    few = runs()[:LEAST_RUNS]
    first, again, other = (train(few, seed) for seed in (1, 1, 2))
    assert again.weights.flat().tolist() == first.weights.flat().tolist()
    assert again.held_out == first.held_out != other.held_out


@given(parameters)
def test_learned_curves_never_fall_whatever_the_node(node):
    curve = trained().curve(node)
    seconds = Curves([curve]).seconds(np.arange(0, 1000)[:, None])
    assert seconds[0] == 0
    assert (seconds[1:] > 0).all()
    assert (np.diff(seconds, axis=0) >= 0).all()
    assert curve.seconds_per_url > 0


def test_what_is_stored_of_a_network_is_the_network():
    again = Trained.read_json(json.loads(json.dumps(trained().as_json())))
    node = NodeParameters(2, 2.4, 1.5, 10, None)
    assert again.curve(node) == trained().curve(node)
    assert again.as_json() == trained().as_json()


def test_a_parameter_that_is_not_known_is_the_usual_one():
    usual = trained().features.usual
    assert usual[1] == 2.4
    assert usual[4] == 1.0  # known of none
    some = NodeParameters(2, None, 1.5, 10, None)
    assert trained().curve(some) == trained().curve(NodeParameters(2, 2.4, 1.5, 10, 1.0))


@pytest.mark.parametrize(("seconds", "memory"), [(0, 1), (math.nan, 1), (1, -1), (1, math.inf)])
def test_numbers_that_nothing_can_be_learned_from(seconds, memory):
    with pytest.raises(TrainingError, match=r"run 0: .* above 0"):
        train([Sample(NodeParameters(1, 1, memory, 1, 1), 1, seconds)], 1)


def test_the_weights():
    start = drawn(np.random.default_rng(0), 0.3)
    assert HIDDEN == 13
    assert start.flat().size == WEIGHTS == 105
    assert start.unflatten(start.flat()).flat().tolist() == start.flat().tolist()


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2), min_size=1, max_size=9))
def test_scaling_is_to_0_and_1_and_back(rows):
    values = np.array(rows)
    scaling = Scaling.fit(values)
    scaled = scaling.scale(values)
    assert (scaled >= 0).all()
    assert (scaled <= 1 + 1e-12).all()
    assert scaling.back(scaled) == pytest.approx(values, rel=1e-9, abs=1e-6)
