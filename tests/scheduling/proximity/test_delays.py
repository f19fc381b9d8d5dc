"""Delays by name: measured ones as they are, others from coordinates, NaN for who is not known."""

from __future__ import annotations

import numpy as np

from tasks.scheduling.proximity.delays import FEWEST_PAIRS, Delays

MEASURED = {(f"s{i}", f"n{j}"): 10.0 + abs(10.0 * i - 7.0 * j) for i in range(6) for j in range(5)}


def test_measured_delays_stay_and_the_one_left_out_is_told():
    left_out = ("s3", "n2")
    delays = Delays.of({pair: ms for pair, ms in MEASURED.items() if pair != left_out})
    assert delays is not None
    told = delays.ms(["s3"], ["n0", "n1", "n2"])[0]
    assert told[:2].tolist() == [MEASURED["s3", "n0"], MEASURED["s3", "n1"]]
    assert abs(told[2] / MEASURED[left_out] - 1.0) < 0.5


def test_names_in_any_order_and_unknown_ones():
    delays = Delays.of(MEASURED)
    assert delays is not None
    told = delays.ms(["s1", "elsewhere"], ["n4", "new", "n0"])
    assert told[0, [0, 2]].tolist() == [MEASURED["s1", "n4"], MEASURED["s1", "n0"]]
    assert np.isnan(told[1]).all()
    assert np.isnan(told[0, 1])


def test_a_site_measured_too_seldom_is_known_only_where_it_was():
    delays = Delays.of({**MEASURED, ("s9", "n0"): 33.0})
    assert delays is not None
    told = delays.ms(["s9"], ["n0", "n1"])[0]
    assert told[0] == 33.0
    assert np.isnan(told[1])


def test_too_few_pairs_tell_nothing():
    few = dict(list(MEASURED.items())[: FEWEST_PAIRS - 1])
    assert Delays.of(few) is None
    assert Delays.of({}) is None
