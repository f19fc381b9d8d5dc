"""Rests grow with refusals in a row and keep what the host asked for."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.backoff import backoff_s
from tasks.domain.breaker import (
    JITTER,
    LONGEST_ASKED_S,
    LONGEST_REST_S,
    rest_s,
)
from tasks.domain.failures import ErrorClass


class Exact(Random):
    """No jitter."""

    def random(self):
        return 0.0


BLOCKS = [error for error in ErrorClass if error.facts.blocks]


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
    assert rest_s(cause, times, asked_s, Exact()) == expected_s


def test_every_refusal_has_a_rest_and_nothing_else_has():
    assert all(rest_s(cause, 1, None, Random(1)) > 0 for cause in BLOCKS)
    for other in set(ErrorClass) - {*BLOCKS, ErrorClass.UNREADABLE}:
        with pytest.raises(ValueError, match=other):
            rest_s(other, 1, None, Random(1))


@given(
    st.sampled_from(BLOCKS),
    st.integers(1, 60),
    st.none() | st.floats(0, LONGEST_ASKED_S),
    st.integers(),
    st.integers(),
)
def test_rests_never_end_before_retry_after_and_grow_until_the_cap(cause, times, asked_s, seed, other_seed):
    rest = rest_s(cause, times, asked_s, Random(seed))
    again = rest_s(cause, times + 1, asked_s, Random(other_seed))
    assert rest >= (asked_s or 0.0)
    assert rest <= max(LONGEST_REST_S, asked_s or 0.0) * (1 + JITTER)
    grows = cause.facts.first_rest_s * 2**times <= LONGEST_REST_S and not asked_s
    assert again > rest if grows else again >= rest / (1 + JITTER)


@pytest.mark.parametrize(
    ("failures", "wait_s"), [(0, 2), (1, 2), (2, 4), (5, 32), (9, 300), (50, 300), (10_000, 300)]
)
def test_a_wait_doubles_with_each_failure_up_to_the_longest(failures, wait_s):
    assert backoff_s(2.0, failures, 300.0) == wait_s
