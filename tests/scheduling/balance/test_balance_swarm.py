import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.balance.curves import Curves, evaluate, even, linear
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.swarm import fitness, repair, swarm

SCENARIO = Path(__file__).parents[3].parent / "shared" / "scenarios" / "paper2019-nodes.json"


def some(seed, iterations=50, total=20):
    curves = Curves([linear(5, 1), linear(2, 2), linear(0, 4)])
    return curves, swarm(curves, total, np.random.default_rng(seed), iterations)


def test_the_fitness_is_the_published_one():
    curves = Curves([linear(0, 1), linear(0, 2)])
    places = np.array([[4.0, 2.0], [5.0, 2.0], [8.0, -2.0]])
    assert fitness(curves, 6, places).tolist() == [0, 0.25 + 1, 16 + 4**2]


def test_a_seed_decides_everything():
    _, one = some(3)
    _, same = some(3)
    assert (one.published, one.fitness) == (same.published, same.fitness)
    assert one.allocation.tolist() == same.allocation.tolist()


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 60))
def test_what_it_hands_back_is_an_allocation(seed, iterations, total):
    curves, found = some(seed, iterations, total)
    assert found.allocation.sum() == total
    assert (found.allocation >= 0).all()
    assert found.feasible == (sum(found.published) == total and min(found.published) >= 0)
    if found.feasible:
        assert tuple(found.allocation) == found.published
    assert evaluate(curves, found.allocation).makespan_s >= evaluate(curves, exact(curves, total)).makespan_s


@given(st.lists(st.integers(-50, 500), min_size=1, max_size=20), st.integers(0, 10**12))
def test_repaired_is_an_allocation(places, total):
    whole = repair(np.array(places), total)
    assert whole.sum() == total
    assert (whole >= 0).all()


@pytest.mark.skipif(not SCENARIO.is_file(), reason="the shared scenarios are not beside the repository")
def test_the_published_experiment():
    nodes = json.loads(SCENARIO.read_text("utf-8"))
    curves = Curves([linear(node["setup_s"], node["seconds_per_url"]) for node in nodes])
    printed = evaluate(curves, np.array([164, 70, 120, 36, 110]))
    assert printed.makespan_s == pytest.approx(134, abs=0.1)
    assert evaluate(curves, even(5, 500)).makespan_s / printed.makespan_s == pytest.approx(1.74, abs=0.005)
    assert tuple(exact(curves, 500)) == printed.allocation
    ends = [
        evaluate(curves, swarm(curves, 500, np.random.default_rng(seed)).allocation).makespan_s
        for seed in range(5)
    ]
    assert printed.makespan_s <= np.median(ends) < 1.05 * printed.makespan_s
