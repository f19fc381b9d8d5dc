"""What a scheduler remembers is what the store says, however its looks and others' transactions fall together."""

from datetime import timedelta

import pytest
from world import SITE, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.jobs import sweeps
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.feedback import Feedback
from tasks.store.queue import attempts
from tasks.store.sql.tables import pair_stats

TRIED_NOTHING = Counters(offered=5, active_s=1.0)


def attempt(world, name, node="n1"):
    lease, work = world.begin(world.waiting(name), node)
    (target,) = world.read_results(lease, work.targets[0], [hit(name)]).todo
    world.save(lease, target)
    world.close(lease, Counters(offered=5, tried=4, active_s=8.0, wait_s=2.0))


@pytest.fixture
def state(world):
    return world.context.state


def known(world, state):
    """The faded number of attempts of the pair, after another look."""
    world.look(state.learn)
    return state.knowledge.pair(SITE, "n1", world.now.timestamp()).attempts


def test_what_is_read_bit_by_bit_is_what_is_read_at_once(world, state):
    for number, name in enumerate("甲乙丙丁"):
        attempt(world, name, f"n{number % 2}")
        world.pass_s(17)
        world.look(state.learn)
    fresh = SchedulerState(world.context.settings.strategy)
    whole = world.look(fresh.learn).list_pairs(world.now.timestamp())
    by_bits = state.knowledge.list_pairs(world.now.timestamp())
    assert whole.keys() == by_bits.keys() == {(SITE, "n0"), (SITE, "n1")}
    for pair, one in whole.items():
        assert by_bits[pair].attempts == pytest.approx(one.attempts)
        assert by_bits[pair].active_s == pytest.approx(one.active_s)
    assert state.request_s == pytest.approx(fresh.request_s)
    assert state.request_s[SITE] == pytest.approx(8.0 / 4 + 2.0 / 4)


def test_a_site_whose_closed_attempts_tried_nothing_is_timed_by_what_runs(world, state):
    world.close(world.begun("甲"), TRIED_NOTHING, reason=FailureReason.HOST_UNREACHABLE)
    world.progress(world.begun("乙", "n2"), Counters(offered=5, tried=2, collected=2, active_s=3.0))
    world.look(state.learn)  # knows what runs from now on
    world.close(world.begun("丙"), TRIED_NOTHING, reason=FailureReason.HOST_UNREACHABLE)
    world.look(state.learn)
    assert state.request_s[SITE] == pytest.approx((1.0 + 1.0 + 3.0) / 2, rel=0.01)


def test_only_what_changed_is_read_again(world):
    attempt(world, "甲", "n1")
    world.pass_s(10)
    attempt(world, "乙", "n2")
    changed = world.look(attempts.list_changed, world.now - timedelta(seconds=2))
    assert [(row.node, row.tried, row.wait_s) for row in changed] == [("n2", 4, 2.0)]
    assert len(world.look(attempts.list_changed, None)) == 2


def test_what_was_committed_late_is_found_by_a_later_look(world, state):
    attempt(world, "甲")
    world.look(state.learn)
    world.pass_s(20)
    world.look(state.learn)
    (before,) = world.rows(pair_stats)
    change = "UPDATE pair_stats SET f_attempts = :attempts, faded_at = :at"
    world.run(change, attempts=7.0, at=world.now - timedelta(seconds=15))
    assert known(world, state) < 2
    world.pass_s(10)
    assert known(world, state) > 6
    world.run(change, attempts=before.f_attempts, at=before.faded_at)


def test_a_clock_set_back_hides_nothing(world, state):
    world.look(state.learn)
    world.pass_s(-3600)
    attempt(world, "甲")
    assert known(world, state) == pytest.approx(1.0)


def test_what_a_tick_read_that_failed_is_read_again(world, state, monkeypatch):
    attempt(world, "甲")
    world.look(state.learn)

    def fail(*_args):
        raise RuntimeError("out of order")

    monkeypatch.setattr(sweeps.tasks, "lock_sleeping", fail)
    with pytest.raises(RuntimeError):
        world.do(tick, world.context, ("wake",))
    assert state.knowledge.list_pairs(world.now.timestamp()) == {}
    assert known(world, state) == pytest.approx(1.0)


def test_the_queue_is_counted_seldom_and_less_often_if_it_takes_long(world):
    times = iter([0.0, 0.1, 29.9, 30.2, 32.2, 130.0, 132.3, 132.4])
    state = SchedulerState(world.context.settings.strategy, lambda: next(times))

    def counted(*new):
        for name in new:
            world.add(name)
        world.look(state.count_queued)
        return state.ready.pending[SITE].subtasks

    assert counted("甲") == 1
    assert counted("乙") == 1, "30 s are not over"
    assert counted() == 2
    assert counted("丙") == 2, "it took 2 s, so it may again 100 s later"
    assert counted() == 3


def test_distances_reach_the_strategy_and_are_brought_up_to_date_after_ten_minutes(world):
    given = []

    def make(distances, _run_times):
        given.append(distances and float(distances.ms(["s0"], ["n2"])[0, 0]))
        return Feedback(AllocationSettings(distances=distances))

    def store_distances(ms):
        rows = [(f"s{i}", f"n{j}", ms + 10 * abs(i - j)) for i in range(4) for j in range(3)]
        shared = {"faded_at": world.now, "rtt_n": 5}
        world.run("DELETE FROM pair_stats")
        world.do(lambda tx: tx.insert("pair_stats", ("site", "node", "rtt_ms"), rows, shared=shared))

    def given_after(seconds):
        world.pass_s(seconds)
        world.do(state.measure)
        return given[-1]

    state = SchedulerState(make)
    assert given_after(0) is None
    store_distances(40.0)
    assert given_after(0) is None, "it was just looked for"
    ready, strategy = state.ready, state.strategy
    assert given_after(60) == 60.0
    assert state.ready is not ready
    assert state.strategy is not strategy
    store_distances(50.0)
    assert given_after(599) == 60.0
    assert given_after(1) == 70.0
    strategy = state.strategy
    given_after(600)
    assert state.strategy is strategy, "nothing has changed"
    world.node("n1")
    world.waiting("甲")
    assert len(world.allocate()) == 1, "a decision is made with distances"
    world.run("DELETE FROM pair_stats")
