"""The pace of a host: falls with trouble, grows back, never leaves (floor, 1]."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.pace import (
    ALONE,
    CUT,
    FULL,
    HEARD_WELL,
    NEW_ADDRESS,
    RECENT_S,
    AddressPace,
    AnswerSample,
    Latency,
    Pace,
    address_pace_after,
    gradient,
    host_share,
    latency_after,
    step_pace,
)
from tasks.fetching.thresholds import (
    BELOW,
    FLOOR,
    LEAST_BORNE,
    LONGEST_WINDOW_S,
    NEVER_REFUSED,
    round_length_s,
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


def host_after(answers: list[AnswerSample], every_s: float = SPACING_S) -> float:
    """Share of a host that gave these answers to its only address."""
    return host_share([after(answers, every_s)], (len(answers) - 1) * every_s)


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
    assert host_after([answer]) == share


def test_an_error_tells_its_class_and_what_was_asked():
    error = FetchError(ErrorClass.RATE_LIMITED, "too often", retry_after_s=5.0)
    assert AnswerSample.failure(error, 0.3) == AnswerSample(0.3, ErrorClass.RATE_LIMITED, 5.0)


def test_requests_in_flight_are_one_trouble_and_the_next_round_another():
    refused = AnswerSample(0.1, ErrorClass.RATE_LIMITED)
    assert after([refused] * 10).pace.share == 0.5
    assert after([refused] * 3, every_s=10.0).pace.share == 0.125


FAULTS = [ErrorClass.SERVER_ERROR, ErrorClass.TIMEOUT, ErrorClass.CUT_OFF, ErrorClass.CONNECT]


@pytest.mark.parametrize("error", FAULTS)
def test_faults_slow_a_host_with_one_address_once_most_answers_are_faults(error):
    fault = AnswerSample(0.1, error)
    assert host_after([PAGE, PAGE, fault] * 30) == 1.0
    assert host_after([fault] * 5) == 1.0
    assert host_after([fault] * 6) == 0.5
    assert host_after([fault] * 2000) == FLOOR
    assert after([fault] * 2000).pace.share == 1.0


def test_faults_of_one_address_are_not_the_hosts():
    bad, good = after([AnswerSample(0.1, ErrorClass.SERVER_ERROR)] * 500), after([PAGE] * 500)
    now = 499 * SPACING_S
    assert host_share([bad, good], now) == 1.0
    assert bad.share(1.0) == ALONE
    assert good.share(1.0) == 1.0
    assert host_share([bad], now) == bad.share(FLOOR) == FLOOR


def test_what_all_addresses_see_is_the_hosts():
    error = AnswerSample(0.1, ErrorClass.SERVER_ERROR)
    seen = [after([error] * n) for n in (6, 20, 400)]
    assert host_share(seen, 40.0) == seen[0].faults.share == 0.5


def test_an_address_that_was_hardly_heard_or_long_ago_says_nothing_of_the_host():
    bad = after([AnswerSample(0.1, ErrorClass.SERVER_ERROR)] * 500)
    new, gone = after([PAGE] * (HEARD_WELL - 1), begin_s=49.0), after([PAGE] * 20)
    assert host_share([bad, new], 50.0) == FLOOR
    assert host_share([bad, gone], 1.9 + RECENT_S) == FLOOR
    assert host_share([new], 50.0) == 1.0
    assert host_share([], 50.0) == 1.0


def test_growing_response_times_slow_the_address():
    fast, slow = [AnswerSample(0.3)] * 50, [AnswerSample(3.0)] * 60
    known = after(fast)
    assert known.pace.share == 1.0
    assert after([*fast, *slow]).pace.share < 0.6


def test_times_that_stay_long_become_the_hosts_own():
    slowed = after([AnswerSample(0.3)] * 50 + [AnswerSample(3.0)] * 600)
    assert slowed.pace.share < 0.2
    assert after([AnswerSample(3.0)] * 60, 10.0, slowed, 70.0).pace.share == 1.0


def test_it_grows_back_step_by_step_to_the_limit():
    known, shares = AddressPace(faults=Pace(0.5, 0.0, 0.0, 0.0)), []
    for second in range(60):
        known = address_pace_after(known, PAGE, float(second), SPACING_S)
        shares.append(known.faults.share)
    assert shares[:5] == pytest.approx([0.5, 0.5, 0.55, 0.55, 0.6])
    assert shares[-1] == 1.0


def test_a_round_is_as_long_as_a_slow_pace_needs():
    assert round_length_s(1.0, 0.1) == 2.0
    assert round_length_s(0.5, 10.0) == 80.0


@given(PACES, LATENCIES, st.lists(ANSWERS, max_size=30), st.floats(0, 100))
def test_the_share_stays_between_the_floor_and_the_limit(pace, latency, answers, every_s):
    known = AddressPace(pace, latency, pace)
    for n, answer in enumerate(answers):
        known = address_pace_after(known, answer, n * every_s, SPACING_S)
        whole = host_share([known], n * every_s)
        for share in (known.pace.share, known.faults.share, whole):
            assert FLOOR <= share <= 1.0
        # Faults leave the floor; a host that bears less than that is asked once in the longest window.
        assert FLOOR * min(FLOOR, SPACING_S / LONGEST_WINDOW_S) <= known.share(whole) <= 1.0


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
        known = address_pace_after(AddressPace(pace, faults=pace), answer, now, SPACING_S)
        assert known.pace.share <= pace.share
        assert answer.error is None or known.faults.share <= pace.share


@given(PACES, st.floats(0, 1e4), st.floats(0.05, 0.999), st.floats(0.05, 0.999))
def test_a_deeper_trouble_never_leaves_a_higher_share(pace, now, one, other):
    deeper, milder = sorted((one, other))
    assert step_pace(pace, deeper, now, 2.0).share <= step_pace(pace, milder, now, 2.0).share <= pace.share
    assert step_pace(pace, 1.0, now, 2.0).share >= pace.share


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
    known, now = AddressPace(pace, faults=pace), 0.0
    for _ in range(60):
        now += round_length_s(FLOOR * FLOOR, SPACING_S)
        known = address_pace_after(known, PAGE, now, SPACING_S)
    assert known.share(host_share([known], now)) == 1.0


def refused_after(counts: list[float], error: ErrorClass = ErrorClass.FORBIDDEN) -> AddressPace:
    """What is known of an address that got answers at these times, and was then refused."""
    known = NEW_ADDRESS
    for at in counts:
        known = address_pace_after(known, PAGE, at, 0.5)
    return address_pace_after(known, AnswerSample(0.1, error), counts[-1] + 0.5, 0.5)


def test_a_burst_that_is_refused_leaves_a_rate_between_its_own_and_that_over_the_longest_window():
    known = refused_after([100.0 + 0.5 * n for n in range(20)])  # 2 a second, in 10 s
    window_s = 24.0  # near sqrt(10 x 60), in whole steps
    assert known.threshold.share == pytest.approx(BELOW * 20 / window_s / 2)
    assert known.threshold.hold_s == window_s
    assert known.share(1.0) == known.own_share == known.threshold.share


@pytest.mark.parametrize("every_s", [0.5, 0.8, 1.5])
def test_a_steady_rate_that_is_refused_is_kept_just_below(every_s):
    known = refused_after([100.0 + every_s * n for n in range(round(200 / every_s))])
    assert known.threshold.share == pytest.approx(BELOW * 0.5 / every_s, rel=0.06)


@pytest.mark.parametrize("error", list(ErrorClass))
def test_only_refusals_that_speak_of_frequency_tell_a_threshold(error):
    known = refused_after([100.0 + 0.5 * n for n in range(20)], error)
    of_frequency = error in (ErrorClass.RATE_LIMITED, ErrorClass.FORBIDDEN, ErrorClass.CAPTCHA)
    assert (known.threshold.share < 1.0) == of_frequency


def test_a_refusal_with_nothing_before_it_says_nothing_of_frequency():
    few = [100.0 + 0.5 * n for n in range(LEAST_BORNE - 1)]
    assert refused_after(few).threshold == NEVER_REFUSED
    long_ago = [100.0 + 0.5 * n for n in range(20)]
    known = after([], known=refused_after(long_ago))
    again = address_pace_after(known, AnswerSample(0.1, ErrorClass.FORBIDDEN), 1000.0, 0.5)
    assert again.threshold == known.threshold


def test_requests_under_way_when_a_host_refuses_are_one_refusal():
    known = refused_after([100.0 + 0.5 * n for n in range(20)])
    for n in range(6):
        answer = AnswerSample(0.1, None if n % 2 else ErrorClass.FORBIDDEN)
        later = address_pace_after(known, answer, 110.5 + 0.1 * n, 0.5)
        assert later.threshold == known.threshold


class Guarded:
    """A host that refuses an address for a minute after so many requests in so many seconds, and who asks it."""

    def __init__(self, requests: int, window_s: float) -> None:
        self.requests, self.window_s = requests, window_s
        self.known = NEW_ADDRESS
        self.pages: list[float] = []
        self.refused: list[float] = []
        self.now = 100.0

    def ask_until(self, end_s: float, spacing_s: float, *, learns: bool = True) -> None:
        """Ask at the pace that is known; rest for a minute after a refusal."""
        while self.now < end_s:
            watched = [at for at in self.pages[-self.requests :] if at > self.now - self.window_s]
            refused = len(watched) >= self.requests
            (self.refused if refused else self.pages).append(self.now)
            answer = AnswerSample(0.1, ErrorClass.FORBIDDEN if refused else None)
            if learns:
                self.known = address_pace_after(self.known, answer, self.now, spacing_s)
            self.now += 60.0 + self.window_s if refused else spacing_s / self.known.share(1.0)


@settings(max_examples=15)
@given(st.integers(8, 60), st.sampled_from([5.0, 10.0, 20.0, 30.0, 60.0]))
def test_a_host_that_counts_requests_is_soon_asked_just_below_what_it_bears(requests, window_s):
    borne_per_s = requests / window_s
    spacing_s = min(0.5, 0.5 / borne_per_s)  # the limit is at least twice that
    learning, going_on = Guarded(requests, window_s), Guarded(requests, window_s)
    learning.ask_until(3700.0, spacing_s)
    going_on.ask_until(3700.0, spacing_s, learns=False)
    assert len(learning.refused) <= 8 < len(going_on.refused)
    assert len(learning.pages) > len(going_on.pages)
    assert len(learning.pages) >= 0.55 * borne_per_s * 3600.0


def test_a_second_refusal_lowers_it_again_and_makes_probing_rarer():
    host = Guarded(20, 20.0)
    host.ask_until(3700.0, 0.25)
    waits = [later - sooner for sooner, later in pairwise(host.refused)]
    assert len(waits) >= 2
    assert waits == sorted(waits)
    known = refused_after([100.0 + 0.5 * n for n in range(20)])
    for n in range(60):
        known = address_pace_after(known, PAGE, 200.0 + n, 0.5)
    again = address_pace_after(known, AnswerSample(0.1, ErrorClass.FORBIDDEN), 260.0, 0.5).threshold
    assert again.share <= BELOW * known.threshold.share
    assert again.hold_s > known.threshold.hold_s


def test_a_host_that_became_milder_is_asked_at_its_limit_again():
    host = Guarded(20, 20.0)
    host.ask_until(200.0, 0.5)
    assert host.known.threshold.share < 0.5
    host.requests = 1000
    host.ask_until(4000.0, 0.5)
    assert host.known.threshold == NEVER_REFUSED


def test_a_pace_that_is_not_used_is_not_raised():
    known = refused_after([100.0 + 0.5 * n for n in range(20)])
    every_s = 4 * 0.5 / known.share(1.0)
    for n in range(200):
        later = address_pace_after(known, PAGE, 200.0 + n * every_s, 0.5)
        assert later.threshold == known.threshold
        known = later


@given(
    st.lists(st.tuples(st.floats(0.0, 50.0), st.booleans()), max_size=60),
    st.sampled_from([0.05, 0.5, 2.0]),
)
def test_a_threshold_is_never_above_the_limit_and_falls_with_refusals_only(answers, spacing_s):
    known, now = NEW_ADDRESS, 100.0
    for passed_s, refused in answers:
        now += passed_s
        answer = AnswerSample(0.1, ErrorClass.FORBIDDEN if refused else None)
        later = address_pace_after(known, answer, now, spacing_s)
        assert min(1.0, spacing_s / LONGEST_WINDOW_S) <= later.threshold.share <= 1.0
        before = known.threshold.share
        assert later.threshold.share <= before if refused else later.threshold.share >= before
        known = later
