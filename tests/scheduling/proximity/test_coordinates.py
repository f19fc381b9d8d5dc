"""Delays by name, and the coordinates behind those that were not measured."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.scheduling.proximity.coordinates import DIMENSIONS, FEWEST_PAIRS, Delays, embed

MEASURED = {(f"s{i}", f"n{j}"): 10.0 + abs(10.0 * i - 7.0 * j) for i in range(6) for j in range(5)}


def test_measured_delays_stay_and_the_one_left_out_is_told():
    left_out = ("s3", "n2")
    delays = Delays.estimate({pair: ms for pair, ms in MEASURED.items() if pair != left_out})
    assert delays is not None
    told = delays.ms(["s3"], ["n0", "n1", "n2"])[0]
    assert told[:2].tolist() == [MEASURED["s3", "n0"], MEASURED["s3", "n1"]]
    assert abs(told[2] / MEASURED[left_out] - 1.0) < 0.5


def test_names_in_any_order_and_unknown_ones():
    delays = Delays.estimate(MEASURED)
    assert delays is not None
    told = delays.ms(["s1", "elsewhere"], ["n4", "new", "n0"])
    assert told[0, [0, 2]].tolist() == [MEASURED["s1", "n4"], MEASURED["s1", "n0"]]
    assert np.isnan(told[1]).all()
    assert np.isnan(told[0, 1])


def test_a_site_measured_too_seldom_is_known_only_where_it_was():
    delays = Delays.estimate({**MEASURED, ("s9", "n0"): 33.0})
    assert delays is not None
    told = delays.ms(["s9"], ["n0", "n1"])[0]
    assert told[0] == 33.0
    assert np.isnan(told[1])


def test_too_few_pairs_tell_nothing():
    few = dict(list(MEASURED.items())[: FEWEST_PAIRS - 1])
    assert Delays.estimate(few) is None
    assert Delays.estimate({}) is None


def world(seed: int, sites: int = 60, nodes: int = 20, share: float = 0.4):
    """True delays of hosts in a space, and those of them that were measured."""
    chance = np.random.default_rng(seed)
    here, there = 200.0 * chance.random((sites, DIMENSIONS)), 200.0 * chance.random((nodes, DIMENSIONS))
    truth = np.sqrt(((here[:, None] - there) ** 2).sum(2)) + 1.0
    return truth, np.where(chance.random(truth.shape) < share, truth, np.nan)


def test_the_same_delays_give_the_same_places():
    _, measured = world(0)
    once, again = (embed(measured).distances_ms() for _ in range(2))
    assert np.array_equal(once, again, equal_nan=True)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 0.5))
def test_a_place_is_had_by_three_measured_pairs_with_those_that_have_one(seed, share):
    _, measured = world(seed, sites=12, nodes=6, share=share)
    places = embed(measured, seed)
    sited, noded = np.isfinite(places.sites).all(1), np.isfinite(places.nodes).all(1)
    pairs = np.isfinite(measured) & sited[:, None] & noded
    assert (sited == (pairs.sum(1) >= 3)).all()
    assert (noded == (pairs.sum(0) >= 3)).all()
    # Nobody is left out who has three with those that are in.
    assert ((np.isfinite(measured) & noded).sum(1)[~sited] < 3).all()
    assert ((np.isfinite(measured) & sited[:, None]).sum(0)[~noded] < 3).all()
    assert (np.isfinite(places.distances_ms()) == (sited[:, None] & noded)).all()


def test_nodes_that_share_no_site_are_placed_all_the_same():
    truth, _ = world(1, sites=10, nodes=6)
    apart = np.full_like(truth, np.nan)
    apart[:5, :3], apart[5:, 3:] = truth[:5, :3], truth[5:, 3:]
    assert np.isfinite(embed(apart).distances_ms()).all()
