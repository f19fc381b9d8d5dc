"""Active and waiting seconds: they never overlap, and what is neither counts as neither."""

from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from tasks.worker.counters import MOST_TIMED, Timing


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_lane_in_flight_is_active_all_lanes_waiting_is_waiting():
    clock = Clock()
    timing = Timing(clock)
    clock.now += 1  # nothing happens: neither
    with timing.active:
        clock.now += 2
        with timing.active:
            clock.now += 3  # two at once count once
            with timing.waiting:
                clock.now += 4  # the other is still in flight
        with timing.waiting:
            clock.now += 5
    clock.now += 6
    assert (timing.active_s, timing.wait_s) == (9, 5)


@given(st.lists(st.tuples(st.sampled_from(["ask", "wait", "pass", "end"]), st.floats(0, 10)), max_size=40))
def test_active_and_waiting_never_add_up_to_more_than_the_time_that_passed(steps):
    clock = Clock()
    timing = Timing(clock)
    with ExitStack() as open_now:
        for what, seconds in steps:
            if what == "ask":
                open_now.enter_context(timing.active)
            elif what == "wait":
                open_now.enter_context(timing.active)
                open_now.enter_context(timing.waiting)
            elif what == "end":
                open_now.close()
            clock.now += seconds
            assert timing.active_s >= 0
            assert timing.wait_s >= 0
            assert timing.active_s + timing.wait_s <= clock.now + 1e-6


def test_three_answers_tell_how_far_the_site_is_and_no_more_than_fifty_are_kept():
    timing = Timing(Clock())
    for seconds in (0.100, 0.0, 0.102):
        timing.record_answer(seconds)
    assert timing.round_trip() is None
    for seconds in (0.101, 9.0):
        timing.record_answer(seconds)
    near = timing.round_trip()
    assert near is not None
    assert 100.0 <= near.ms <= 102.0
    assert near.n == 4
    for _ in range(100):
        timing.record_answer(0.1)
    assert len(timing.first_bytes_s) == MOST_TIMED
