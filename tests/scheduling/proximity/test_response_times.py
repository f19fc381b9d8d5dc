"""One delay out of repeated measurements, and how a pair's delay moves."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.errors import InputError
from tasks.domain.pair_stats import RESPONSES, RoundTrip
from tasks.scheduling.proximity.response_times import remove_noise

DELAYS = st.lists(st.floats(0.01, 1e5), min_size=1, max_size=30)


def test_mean_of_the_three_fullest_buckets():
    # Median 102, median deviation 1.5, width 0.75: the quotients are 133, 134, 134, 136, 136, 139 and 533.
    values = [100.0, 100.5, 101.0, 102.0, 102.5, 104.5, 400.0]
    assert remove_noise(values) == pytest.approx(fmean([100.5, 101.0, 102.0, 102.5, 100.0]))


def test_of_equally_full_buckets_the_smaller_delays_count():
    assert remove_noise([10.0, 20.0, 30.0, 40.0, 500.0]) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("values", "expected"), [([7.0], 7.0), ([5.0, 5.0, 5.0, 90.0], 5.0), ([4.0, 6.0], 5.0)]
)
def test_without_a_spread_the_common_value_is_the_answer(values, expected):
    assert remove_noise(values) == pytest.approx(expected)


@given(DELAYS)
def test_answer_is_within_the_values_whatever_their_order(values):
    told = remove_noise(values)
    assert min(values) <= told <= max(values)
    assert remove_noise(values[::-1]) == told


@given(st.lists(st.floats(99.0, 101.0), min_size=7, max_size=7, unique=True), st.floats(1e3, 1e6))
def test_an_outlier_among_distinct_values_does_not_pull(values, outlier):
    # Four buckets or more hold the seven; a lone far one never is among the fullest three, being the last of equals.
    told = remove_noise([*values, outlier])
    assert told <= 101.0 or _buckets_of([*values, outlier]) <= 3


def _buckets_of(values: list[float]) -> int:
    ascending = sorted(values)
    middle = (ascending[3] + ascending[4]) / 2
    deviations = sorted(abs(value - middle) for value in values)
    width = 0.5 * (deviations[3] + deviations[4]) / 2
    return len({value // width for value in values})


@pytest.mark.parametrize("values", [[], [0.0], [-1.0, 2.0], [float("nan")], [float("inf")]])
def test_what_is_no_delay_is_refused(values):
    with pytest.raises(InputError, match=r"delay"):
        remove_noise(values)


TRIPS = st.builds(RoundTrip, st.floats(0.1, 1e5), st.integers(1, 50))


@given(TRIPS, TRIPS)
def test_it_stays_between_what_was_known_and_what_is_measured(known, measured):
    told = known + measured
    low, high = sorted((known.ms, measured.ms))
    assert low * (1 - 1e-12) <= told.ms <= high * (1 + 1e-12)
    assert told.n == known.n + measured.n


def test_a_host_that_moved_away_is_seen_however_much_was_known():
    known = RoundTrip(20.0, 100_000)
    told = sum([RoundTrip(200.0, RESPONSES)] * 12, known)
    assert told.ms > 180.0
