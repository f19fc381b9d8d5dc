"""Change points: what was known of a pair is forgotten as far as an attempt contradicts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.change_point import CHANGES, design_effect, still_counts
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult, PairStats


def ended(tried: int, collected: int, active_s: float) -> AttemptResult:
    return AttemptResult(
        site="s",
        node="n",
        outcome=AttemptOutcome.SUCCEEDED,
        offered=tried,
        tried=tried,
        collected=collected,
        active_s=active_s,
    )


def after(stats: PairStats, *attempts: AttemptResult) -> PairStats:
    for one in attempts:
        stats = stats.with_attempt(one, 60)
    return stats


GOOD = after(PairStats(), *[ended(20, 19, 20.0)] * 12)
"""Of a pair that stores 95 % at a second a page."""


def kept(tried: int, collected: int, active_s: float) -> float:
    return still_counts(
        attempts=GOOD.attempts,
        tried=GOOD.tried,
        collected=GOOD.collected,
        active_s=GOOD.active_s,
        now=(tried, collected, active_s),
    )


def test_an_attempt_that_goes_as_usual_leaves_what_was_known():
    assert kept(20, 19, 20.0) > 1 - CHANGES
    assert kept(20, 19, 26.0) > 1 - 2 * CHANGES


@pytest.mark.parametrize(("collected", "active_s"), [(4, 20.0), (19, 200.0), (19, 1.0)])
def test_one_that_does_not_leaves_little_of_it(collected, active_s):
    assert kept(20, collected, active_s) < 0.5


def test_after_a_change_the_new_rate_is_known_within_three_attempts():
    changed = after(GOOD, *[ended(20, 4, 20.0)] * 3)
    assert changed.completion == pytest.approx(0.2, abs=0.1)
    assert (
        GOOD.with_attempt(ended(20, 4, 20.0)).completion > 0.88
    )  # nothing is forgotten where all is to be summed


def test_the_worse_an_attempt_the_less_it_leaves():
    shares = [kept(20, collected, 20.0) for collected in range(19, -1, -1)]
    assert shares == sorted(shares, reverse=True)
    slower = [kept(20, 19, seconds) for seconds in (20.0, 30.0, 60.0, 120.0, 1200.0)]
    assert slower == sorted(slower, reverse=True)


def test_what_tries_nothing_or_meets_nothing_known_changes_nothing():
    assert kept(0, 0, 5.0) == 1.0
    assert still_counts(attempts=3, tried=0, collected=0, active_s=9, now=(20, 1, 90.0)) == 1.0


@given(st.integers(1, 500), st.integers(1, 500))
def test_more_pages_of_an_attempt_say_more_but_never_as_much_as_so_many_attempts(fewer, more):
    assert 1.0 <= fewer / design_effect(fewer) <= min(fewer, 1 / 0.1)
    assert fewer / design_effect(fewer) <= (fewer + more) / design_effect(fewer + more)


@given(st.floats(0, 1e6), st.integers(0, 1000), st.integers(0, 1000), st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_share_is_always_one(tried, now_tried, now_collected, seconds, now_s):
    share = still_counts(
        attempts=max(1.0, tried / 9),
        tried=tried,
        collected=tried * 0.7,
        active_s=seconds,
        now=(now_tried, min(now_tried, now_collected), now_s),
    )
    assert 0.0 < share <= 1.0
