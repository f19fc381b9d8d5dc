"""The nearest nodes of a site and the choice among them."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.errors import InputError
from tasks.strategies.proximity.ranking import nearest, pick

SITE = np.zeros(2)
NODES = {name: np.array([float(x), 0.0]) for name, x in (("far", 90), ("near", 10), ("b", 50), ("a", 50))}


def test_nearest_first_and_names_between_equals():
    assert nearest(SITE, NODES, 3) == ["near", "a", "b"]
    assert nearest(SITE, NODES, 99) == ["near", "a", "b", "far"]


def test_what_was_measured_is_used_as_it_is():
    assert nearest(SITE, NODES, 2, {"far": 1.0, "near": 60.0, "gone": 0.1}) == ["far", "a"]


def test_a_node_without_a_place_comes_last_unless_it_was_measured():
    nodes = NODES | {"lost": np.full(2, np.nan)}
    assert nearest(SITE, nodes, 5)[-1] == "lost"
    assert nearest(SITE, nodes, 1, {"lost": 2.0}) == ["lost"]


def test_nobody_there_and_nobody_wanted():
    assert nearest(SITE, {}, 3) == []
    with pytest.raises(InputError, match="at least 1"):
        nearest(SITE, NODES, 0)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(-500, 500), min_size=1), st.integers(1, 8))
def test_nobody_left_out_is_nearer(places, k):
    nodes = {name: np.array([x, 0.0]) for name, x in places.items()}
    chosen = nearest(SITE, nodes, k)
    assert len(chosen) == min(k, len(nodes)) == len(set(chosen))
    worst = max(abs(places[name]) for name in chosen)
    assert all(abs(x) >= worst - 1e-9 for name, x in places.items() if name not in chosen)


def test_one_of_k_all_equally_likely():
    rng = Random(1)
    assert pick(["only"], rng) == "only"
    drawn = Counter(pick(["a", "b", "c"], rng) for _ in range(3000))
    assert set(drawn) == {"a", "b", "c"}
    assert min(drawn.values()) > 900
