"""The pace of a host: falls with trouble, grows back, never leaves (floor, 1]."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.pace import (
    CUT,
    FLOOR,
    FULL,
    NEW_ADDRESS,
    AddressPace,
    AnswerSample,
    Latency,
    Pace,
    address_pace_after,
    gradient,
    host_pace_after,
    latency_after,
    round_length_s,
    stepped,
)

PAGE = AnswerSample(0.1)
SPACING_S = 0.1
ERRORS = st.none() | st.sampled_from(ErrorClass)
ANSWERS = st.builds(AnswerSample, st.floats(0.001, 40), ERRORS, st.none() | st.floats(0, 100))
PACES = st.builds(Pace, st.floats(FLOOR, 1), st.floats(0, 1), st.floats(-1e4, 0), st.floats(-1e4, 0))
LATENCIES = st.builds(Latency, st.integers(0, 8), st.floats(0.001, 20), st.floats(0.001, 20))


def after(
    answers: list[AnswerSample],
    every_s: float = SPACING_S,
    known: AddressPace = NEW_ADDRESS,
    begin_s: float = 0.0,
) -> AddressPace:
    """What is known of an address after these answers, one every so many seconds."""
    for n, answer in enumerate(answers):
        known = address_pace_after(known, answer, begin_s + n * every_s, SPACING_S)
    return known


def host_after(answers: list[AnswerSample], every_s: float = SPACING_S, pace: Pace = FULL) -> Pace:
    for n, answer in enumerate(answers):
        pace = host_pace_after(pace, answer, n * every_s, SPACING_S)
    return pace


def test_a_new_host_is_asked_as_often_as_configured():
    assert NEW_ADDRESS.pace.share == FULL.share == 1.0


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        (PAGE, 1.0),
        (AnswerSample(0.1, ErrorClass.RATE_LIMITED), 0.5),
        (AnswerSample(0.1, ErrorClass.RATE_LIMITED, 7.0), 0.5),
        (AnswerSample(0.1, ErrorClass.SERVER_ERROR, 7.0), 0.5),
        (AnswerSample(0.1, ErrorClass.SERVER_ERROR), 1.0),
        (AnswerSample(0.1, ErrorClass.CAPTCHA), 1.0),  # a breaker's business
        (AnswerSample(0.1, ErrorClass.NOT_FOUND), 1.0),
        (AnswerSample(30.0, ErrorClass.TIMEOUT), 1.0),
    ],
)
def test_what_one_answer_does_to_its_address(answer, share):
    assert after([answer]).pace.share == share


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        (PAGE, 1.0),
        (AnswerSample(0.1, ErrorClass.SERVER_ERROR, 7.0), 0.5),
        (AnswerSample(0.1, ErrorClass.SERVER_ERROR), 1.0),
        (AnswerSample(0.1, ErrorClass.RATE_LIMITED, 7.0), 1.0),  # said to one address
        (AnswerSample(30.0, ErrorClass.TIMEOUT), 1.0),
    ],
)
def test_what_one_answer_does_to_the_whole_host(answer, share):
    assert host_after([answer]).share == share


def test_an_error_tells_its_class_and_what_was_asked():
    error = FetchError(ErrorClass.RATE_LIMITED, "too often", retry_after_s=5.0)
    assert AnswerSample.failed(error, 0.3) == AnswerSample(0.3, ErrorClass.RATE_LIMITED, 5.0)


def test_requests_in_flight_are_one_trouble_and_the_next_round_another():
    refused = AnswerSample(0.1, ErrorClass.RATE_LIMITED)
    assert after([refused] * 10).pace.share == 0.5
    assert after([refused] * 3, every_s=10.0).pace.share == 0.125


def test_server_errors_slow_the_host_once_most_answers_are_errors():
    error = AnswerSample(0.1, ErrorClass.SERVER_ERROR)
    assert host_after([PAGE, PAGE, error] * 30).share == 1.0
    assert host_after([error] * 5).share == 1.0
    assert host_after([error] * 6).share == 0.5
    assert host_after([error] * 2000).share == FLOOR


@pytest.mark.parametrize("error", [ErrorClass.TIMEOUT, ErrorClass.CUT_OFF, ErrorClass.CONNECT])
def test_a_host_that_does_not_answer_an_address_is_asked_less_from_there(error):
    assert after([AnswerSample(0.0, error)] * 6).pace.share == 0.5
    assert host_after([AnswerSample(0.0, error)] * 6).share == 1.0


def test_growing_response_times_slow_the_address():
    fast, slow = [AnswerSample(0.3)] * 50, [AnswerSample(3.0)] * 60
    known = after(fast)
    assert known.pace.share == 1.0
    assert after([*fast, *slow]).pace.share < 0.6


def test_times_that_stay_long_become_the_hosts_own():
    slowed = after([AnswerSample(0.3)] * 50 + [AnswerSample(3.0)] * 600)
    assert slowed.pace.share < 0.2
    assert after([AnswerSample(3.0)] * 60, 10.0, slowed, 70.0).pace.share == 1.0


def test_one_hang_slows_nothing():
    assert after([AnswerSample(0.3)] * 50 + [AnswerSample(29.0)] + [AnswerSample(0.3)] * 50).pace.share == 1.0


def test_a_host_that_was_always_slow_is_asked_at_its_limit():
    assert after([AnswerSample(4.0)] * 200).pace.share == 1.0


def test_uneven_response_times_are_no_trouble():
    rng = Random(1)
    known = NEW_ADDRESS
    for n in range(5000):
        known = address_pace_after(known, AnswerSample(rng.uniform(0.02, 1.5)), n * SPACING_S, SPACING_S)
        assert known.pace.share == 1.0


def test_it_grows_back_step_by_step_to_the_limit():
    pace, shares = Pace(0.5, 0.0, 0.0, 0.0), []
    for second in range(60):
        pace = host_pace_after(pace, PAGE, float(second), SPACING_S)
        shares.append(pace.share)
    assert shares[:5] == pytest.approx([0.5, 0.5, 0.55, 0.55, 0.6])
    assert shares[-1] == 1.0


def test_a_round_is_as_long_as_a_slow_pace_needs():
    assert round_length_s(1.0, 0.1) == 2.0
    assert round_length_s(0.5, 10.0) == 80.0


@given(PACES, LATENCIES, st.lists(ANSWERS, max_size=30), st.floats(0, 100))
def test_the_share_stays_between_the_floor_and_the_limit(pace, latency, answers, every_s):
    known, whole = AddressPace(pace, latency), pace
    for n, answer in enumerate(answers):
        known = address_pace_after(known, answer, n * every_s, SPACING_S)
        whole = host_pace_after(whole, answer, n * every_s, SPACING_S)
        for share in (known.pace.share, whole.share):
            assert FLOOR <= share <= 1.0


@given(PACES, st.floats(0, 1e4), ANSWERS)
def test_no_error_ever_hurries(pace, now, answer):
    in_trouble = answer.error in (
        ErrorClass.RATE_LIMITED,
        ErrorClass.SERVER_ERROR,
        ErrorClass.TIMEOUT,
        ErrorClass.CUT_OFF,
        ErrorClass.CONNECT,
    )
    if in_trouble or answer.retry_after_s is not None:
        assert address_pace_after(AddressPace(pace), answer, now, SPACING_S).pace.share <= pace.share
    if answer.error is ErrorClass.SERVER_ERROR:
        assert host_pace_after(pace, answer, now, SPACING_S).share <= pace.share


@given(PACES, st.floats(0, 1e4), st.floats(0.05, 0.999), st.floats(0.05, 0.999))
def test_a_deeper_trouble_never_leaves_a_higher_share(pace, now, one, other):
    deeper, milder = sorted((one, other))
    assert stepped(pace, deeper, now, 2.0).share <= stepped(pace, milder, now, 2.0).share <= pace.share
    assert stepped(pace, 1.0, now, 2.0).share >= pace.share


@given(LATENCIES, st.floats(0.001, 40), st.floats(0.001, 40))
def test_slower_answers_never_leave_a_higher_gradient(latency, one, other):
    faster, slower = sorted((one, other))
    times = [latency, latency]
    for n in range(3):
        times = [latency_after(times[0], faster, 40.0 + n), latency_after(times[1], slower, 40.0 + n)]
    assert times[0].smooth_s <= times[1].smooth_s + 1e-9
    assert CUT <= gradient(times[1]) <= 1.0


@given(PACES)
def test_whatever_happened_good_answers_bring_the_limit_back(pace):
    spacing_s, now = SPACING_S, 0.0
    for _ in range(40):
        now += round_length_s(pace.share, spacing_s)
        pace = host_pace_after(pace, PAGE, now, spacing_s)
    assert pace.share == 1.0
