"""Every closed attempt is folded into its pair's statistics once: plain sums are sums over attempts."""

import pytest
from world import SITE, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.pair_stats import HALF_LIFE_S, MEMORY, RoundTrip
from tasks.store.queries import pairs

SEEN = Counters(offered=5, tried=4, active_s=8.0, wait_s=2.0, requests=6)


def stored_one(world, name="甲"):
    """A started attempt with one page stored."""
    lease, hits = world.found(name, [hit(f"{name}{n}") for n in range(5)])
    world.save(lease, hits.todo[0])
    return lease


def fall_silent(world, lease):
    world.pass_s(75)
    return world.silence(lease)


def sums(world):
    row = world.pair()
    return (row.attempts, row.failed, row.silent, row.offered, row.tried, row.collected, row.active_s)


def test_seconds_count_as_they_are_stored(world):
    """To the microsecond; `verify`, which ends each of these tests, adds up the rows."""
    counters = Counters(offered=1, tried=1, active_s=0.6557564999, wait_s=1 / 3)
    for name in "甲乙丙":
        world.close(stored_one(world, name), counters)
    assert world.pair().active_s == pytest.approx(3 * 0.655756, abs=1e-9)


def test_silence_counts_the_last_report_and_the_time_that_was_lost(world):
    lease = stored_one(world)
    world.progress(lease, SEEN)
    assert fall_silent(world, lease)
    assert sums(world) == (1, 0, 1, 5, 4, 1, 8.0)
    assert world.pair().lost_s == 75.0


def test_what_was_given_back_untouched_counts_for_nothing(world):
    world.release(world.granted())
    assert sums(world) == (0, 0, 0, 0, 0, 0, 0.0)


@pytest.mark.parametrize("end", ["interrupt", "cancel"])
def test_what_was_given_back_counts_over_what_was_tried(world, end):
    lease = stored_one(world)
    world.progress(lease, SEEN)
    if end == "interrupt":
        world.interrupt(lease, SEEN, "shutdown")
    else:
        world.cancel(lease.subtask_id)
    assert sums(world) == (1, 0, 0, 4, 4, 1, 8.0)


def test_an_attempt_is_folded_once_whoever_closes_it_first(world):
    lease = stored_one(world)
    world.close(lease, SEEN)
    world.close(lease, SEEN)
    fall_silent(world, lease)
    world.cancel(lease.subtask_id)
    assert sums(world) == (1, 0, 0, 5, 4, 1, 8.0)
    assert (world.pair().wait_s, world.pair().requests) == (2.0, 6)


def test_sums_of_many_attempts_fade_for_decisions_and_stay_for_people(world):
    def known():
        return world.look(world.context.state.learn).pair(SITE, "n1", world.now.timestamp())

    world.close(stored_one(world), SEEN)
    world.pass_s(HALF_LIFE_S)
    world.close(stored_one(world, "乙"), SEEN)
    assert sums(world) == (2, 0, 0, 10, 8, 2, 16.0)
    n = 1 + 0.5 * (1 - 1 / MEMORY)  # the first fades with time, and with the attempt after it
    faded = known()  # and a little with any attempt, which may show a change
    assert (faded.attempts, faded.offered, faded.active_s) == pytest.approx((n, 5 * n, 8.0 * n), rel=0.01)
    world.pass_s(HALF_LIFE_S)
    assert known().attempts == pytest.approx(n / 2, rel=0.01)


def test_how_far_a_site_is_moves_slowly_and_stays_if_it_was_not_measured(world):
    world.close(stored_one(world), SEEN)
    assert (world.pair().rtt_ms, world.pair().rtt_n) == (None, 0)
    world.close(stored_one(world, "乙"), SEEN, round_trip=RoundTrip(100.0, 10))
    world.interrupt(stored_one(world, "丙"), SEEN, "shutdown", round_trip=RoundTrip(50.0, 10))
    fall_silent(world, stored_one(world, "丁"))
    assert (world.pair().rtt_ms, world.pair().rtt_n) == (pytest.approx(75.0), 20)
    (row,) = world.look(pairs.list_pairs)
    assert row.rtt_ms == pytest.approx(75.0)
