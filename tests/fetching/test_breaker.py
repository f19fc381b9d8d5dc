"""Rests grow with refusals in a row and keep what the host asked for; waits before another try are spread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.breaker import (
    LONGEST_ASKED_S,
    BackoffSettings,
    BreakerState,
    RestSettings,
    backoff_s,
    rest_s,
    state_of,
)
from tasks.domain.failures import ErrorClass

EXACT = RestSettings(jitter=0.0)
BLOCKS = [error for error in ErrorClass if error.blocks]


@pytest.mark.parametrize(
    ("cause", "times", "asked_s", "expected_s"),
    [
        (ErrorClass.RATE_LIMITED, 1, None, 60),
        (ErrorClass.RATE_LIMITED, 2, None, 120),
        (ErrorClass.RATE_LIMITED, 1, 30.0, 60),
        (ErrorClass.RATE_LIMITED, 1, 90.0, 90),
        (ErrorClass.RATE_LIMITED, 3, 90.0, 240),
        (ErrorClass.FORBIDDEN, 1, None, 300),
        (ErrorClass.CAPTCHA, 1, None, 600),
        (ErrorClass.LOGIN_WALL, 4, None, 7200),
        (ErrorClass.CAPTCHA, 10_000, None, 6 * 3600),
        (ErrorClass.CAPTCHA, 1, 1e12, LONGEST_ASKED_S),
    ],
)
def test_a_rest_by_cause_refusals_and_what_was_asked(cause, times, asked_s, expected_s):
    assert rest_s(cause, times, asked_s, EXACT, Random(1)) == expected_s


def test_every_refusal_has_a_rest_and_nothing_else_has():
    assert all(rest_s(cause, 1, None, EXACT, Random(1)) > 0 for cause in BLOCKS)
    with pytest.raises(KeyError):
        rest_s(ErrorClass.NOT_FOUND, 1, None, EXACT, Random(1))


@given(
    st.sampled_from(BLOCKS),
    st.integers(1, 60),
    st.none() | st.floats(0, LONGEST_ASKED_S),
    st.integers(),
    st.integers(),
)
def test_rests_never_end_before_retry_after_and_grow_until_the_cap(cause, times, asked_s, seed, other_seed):
    settings = RestSettings()
    rest = rest_s(cause, times, asked_s, settings, Random(seed))
    again = rest_s(cause, times + 1, asked_s, settings, Random(other_seed))
    assert rest >= (asked_s or 0.0)
    assert rest <= max(settings.longest_s, asked_s or 0.0) * (1 + settings.jitter)
    grows = settings.first_s[cause] * 2**times <= settings.longest_s and not asked_s
    assert again > rest if grows else again >= rest / (1 + settings.jitter)


@given(st.integers(1, 10_000), st.integers())
def test_waits_lie_between_nothing_and_the_cap(tries, seed):
    settings = BackoffSettings(base_s=2.0, cap_s=300.0)
    wait = backoff_s(tries, settings, Random(seed))
    assert 0 <= wait <= min(300.0, 2.0 * 2 ** min(tries - 1, 60))


@pytest.mark.parametrize(("tries", "most_s"), [(1, 2), (2, 4), (5, 32), (9, 300), (50, 300)])
def test_waits_are_spread_over_the_whole_time(tries, most_s):
    rng = Random(1)
    waits = [backoff_s(tries, BackoffSettings(base_s=2.0, cap_s=300.0), rng) for _ in range(2000)]
    assert mean(waits) == pytest.approx(most_s / 2, rel=0.05)
    assert min(waits) < 0.02 * most_s
    assert max(waits) > 0.98 * most_s


def test_a_breaker_is_half_open_from_the_end_of_its_rest_on():
    until = datetime(2026, 1, 1, tzinfo=UTC)
    assert state_of(until, until - timedelta(microseconds=1)) is BreakerState.OPEN
    assert state_of(until, until) is BreakerState.HALF_OPEN
