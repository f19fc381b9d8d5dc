"""The delay of a pair moves slowly, down sooner than up."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.proximity.moving import MEMORY, RoundTrip, moved

TRIPS = st.builds(RoundTrip, st.floats(0.1, 1e5), st.integers(1, 50))


@given(TRIPS, TRIPS)
def test_it_stays_between_what_was_known_and_what_is_measured(known, measured):
    told = moved(known, measured)
    low, high = sorted((known.ms, measured.ms))
    assert low * (1 - 1e-12) <= told.ms <= high * (1 + 1e-12)
    assert told.n == known.n + measured.n


def test_the_first_measurement_is_believed():
    assert moved(None, RoundTrip(40.0, 3)) == RoundTrip(40.0, 3)


def test_a_slower_one_counts_a_quarter_of_a_faster_one():
    known = RoundTrip(100.0, 10)
    assert moved(known, RoundTrip(50.0, 10)).ms == pytest.approx(75.0)
    assert moved(known, RoundTrip(150.0, 10)).ms == pytest.approx(110.0)


def test_a_host_that_moved_away_is_seen_however_much_was_known():
    known = RoundTrip(20.0, 100_000)
    told = reduce(moved, [RoundTrip(200.0, MEMORY)] * 12, known)
    assert told.ms > 180.0
