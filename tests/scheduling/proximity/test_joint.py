"""Coordinates from the crawl's own pairs: exact places are found again, what tells too little has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitter.errors import InputError
from tasks.scheduling.proximity.joint import embed


def world(seed: int, sites: int = 60, nodes: int = 20, share: float = 0.4):
    """True delays of hosts in a plane, and those of them that were measured."""
    chance = np.random.default_rng(seed)
    here, there = 200.0 * chance.random((sites, 2)), 200.0 * chance.random((nodes, 2))
    truth = np.sqrt(((here[:, None] - there) ** 2).sum(2)) + 1.0
    return truth, np.where(chance.random(truth.shape) < share, truth, np.nan)


@pytest.mark.parametrize("seed", range(3))
def test_places_in_a_plane_are_found_from_two_pairs_in_five(seed):
    truth, measured = world(seed)
    told = embed(measured, dimensions=2, seed=seed).distances_ms()
    unmeasured = np.isnan(measured)
    error = np.abs(told - truth)[unmeasured] / truth[unmeasured]
    assert np.median(error) < 0.05


def test_the_same_delays_give_the_same_places():
    _, measured = world(0)
    assert (embed(measured).distances_ms() == embed(measured).distances_ms()).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.5))
def test_a_place_is_had_by_three_measured_pairs_with_those_that_have_one(seed, share):
    _, measured = world(seed, sites=12, nodes=6, share=share)
    places = embed(measured, seed=seed)
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


def test_equal_delays_everywhere_are_no_trouble():
    assert np.isfinite(embed(np.full((4, 3), 20.0)).distances_ms()).all()


@pytest.mark.parametrize("wrong", [np.ones(3), np.array([[1.0, 0.0]]), np.array([[np.inf, 1.0]])])
def test_what_is_no_matrix_of_delays_is_refused(wrong):
    with pytest.raises(InputError):
        embed(wrong)
