"""The judge of the politeness bench: what it counts, from times alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.bench.politeness import Case, fullest, judge
from splitter.catalog.model import Limits


@given(st.lists(st.integers(0, 60), max_size=40))
def test_the_fullest_window_holds_both_of_its_ends(times):
    times.sort()
    counted = [sum(start <= time <= start + 10 for time in times) for start in times]
    assert fullest([float(time) for time in times]) == max(counted, default=0)


def test_a_host_asked_exactly_at_its_limit_is_within_it():
    case = Case("", Limits(per_address_per_s=1, total_per_s=2), 30)
    times = {"n1": [float(t) for t in range(31)], "n2": [t + 0.5 for t in range(30)]}
    judged = judge(case, times)
    assert judged["max_over_limit_10s"] == 1.0
    assert judged["most_in_10s"] == {"total": 21, "address": 11}
    assert judged["used_of_limit"] == pytest.approx(60 / (2 * 29.5), abs=1e-3)


def test_one_address_over_its_own_limit_shows():
    case = Case("", Limits(per_address_per_s=1, total_per_s=100), 30)
    judged = judge(case, {"n1": [t / 2 for t in range(61)]})
    assert judged["over_limit_10s"]["total"] < 1 < judged["over_limit_10s"]["address"]
    assert judged["max_over_limit_10s"] == judged["over_limit_10s"]["address"]
