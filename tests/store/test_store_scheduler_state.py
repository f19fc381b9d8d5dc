"""What a scheduler remembers is what the store says, however its looks and others' transactions fall together."""

from datetime import timedelta

import pytest
from sqlalchemy import update
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

SEEN = Counters(offered=5, tried=4, active_s=8.0, wait_s=2.0)


def attempt(world, name, node="n1"):
    lease, work = world.begin(world.waiting(name), node)
    (todo,) = world.read_results(lease, work.targets[0], [hit(name)]).todo
    world.save(lease, todo)
    world.close(lease, SEEN)


def new_state(world):
    return SchedulerState(world.context.settings.strategy)


def test_what_is_read_bit_by_bit_is_what_is_read_at_once(world):
    state = world.context.state
    for number, name in enumerate("甲乙丙丁"):
        attempt(world, name, f"n{number % 2}")
        world.pass_s(17)
        world.look(state.learn)
    now_s = world.now.timestamp()
    fresh = new_state(world)
    whole = world.look(fresh.learn).known(now_s)
    kept = state.knowledge.known(now_s)
    assert whole.keys() == kept.keys() == {(SITE, "n0"), (SITE, "n1")}
    for pair, one in whole.items():
        assert kept[pair].attempts == pytest.approx(one.attempts)
        assert kept[pair].active_s == pytest.approx(one.active_s)
    assert state.request_s == pytest.approx(fresh.request_s)
    assert state.request_s[SITE] == pytest.approx(8.0 / 4 + 2.0 / 4)


def test_a_site_whose_closed_attempts_tried_nothing_is_timed_by_what_runs(world):
    lease, _ = world.begin(world.waiting("甲"))
    world.close(lease, Counters(offered=5, active_s=1.0), reason=FailureReason.HOST_UNREACHABLE)
    running, _ = world.begin(world.waiting("乙"), "n2")
    world.progress(running, Counters(offered=5, tried=2, collected=2, active_s=3.0))
    world.look(world.context.state.learn)  # knows what runs from now on
    lease, _ = world.begin(world.waiting("丙"))
    world.close(lease, Counters(offered=5, active_s=1.0), reason=FailureReason.HOST_UNREACHABLE)
    world.look(world.context.state.learn)
    assert world.context.state.request_s[SITE] == pytest.approx((1.0 + 1.0 + 3.0) / 2, rel=0.01)


def test_only_what_changed_is_read_again(world):
    attempt(world, "甲", "n1")
    world.pass_s(10)
    attempt(world, "乙", "n2")
    changed = world.look(attempts.list_changed, world.now - timedelta(seconds=2))
    assert [(row.node, row.tried, row.wait_s) for row in changed] == [("n2", 4, 2.0)]
    assert len(world.look(attempts.list_changed, None)) == 2


def test_what_was_committed_late_is_found_by_a_later_look(world):
    state = world.context.state
    attempt(world, "甲")
    world.look(state.learn)
    world.pass_s(20)
    world.look(state.learn)
    late = world.now - timedelta(seconds=15)
    (before,) = world.rows(pair_stats)

    def commit(tx, attempts, at):
        tx.engine_connection.execute(update(pair_stats).values(f_attempts=attempts, faded_at=at))

    world.do(commit, 7.0, late)
    world.look(state.learn)
    assert state.knowledge.pair(SITE, "n1", world.now.timestamp()).attempts < 2
    world.pass_s(10)
    world.look(state.learn)
    assert state.knowledge.pair(SITE, "n1", world.now.timestamp()).attempts > 6
    world.do(commit, before.f_attempts, before.faded_at)


def test_a_clock_set_back_hides_nothing(world):
    state = world.context.state
    world.look(state.learn)
    world.pass_s(-3600)
    attempt(world, "甲")
    world.look(state.learn)
    assert state.knowledge.pair(SITE, "n1", world.now.timestamp()).attempts == pytest.approx(1.0)


def test_what_a_tick_read_that_failed_is_read_anew(world, monkeypatch):
    state = world.context.state
    attempt(world, "甲")
    world.look(state.learn)

    def fail(*_args):
        raise RuntimeError("out of order")

    monkeypatch.setattr(sweeps.tasks, "lock_sleeping", fail)
    with pytest.raises(RuntimeError):
        world.do(tick, world.context, ("wake",))
    assert state.knowledge.known(world.now.timestamp()) == {}
    world.look(state.learn)
    assert state.knowledge.pair(SITE, "n1", world.now.timestamp()).attempts == pytest.approx(1.0)


def test_the_queue_is_counted_seldom_and_less_often_where_it_takes_long(world):
    world.add("甲")
    times = iter([0.0, 0.1, 29.9, 30.2, 32.2, 130.0, 132.3, 132.4])
    state = SchedulerState(world.context.settings.strategy, lambda: next(times))
    world.look(state.count_queued)
    assert state.ready.pending[SITE].subtasks == 1
    world.add("乙")
    world.look(state.count_queued)
    assert state.ready.pending[SITE].subtasks == 1, "30 s are not over"
    world.look(state.count_queued)
    assert state.ready.pending[SITE].subtasks == 2
    world.add("丙")
    world.look(state.count_queued)
    assert state.ready.pending[SITE].subtasks == 2, "it took 2 s, so it may again 100 s later"
    world.look(state.count_queued)
    assert state.ready.pending[SITE].subtasks == 3


def _measured(world, ms):
    rows = [(f"s{i}", f"n{j}", ms + 10 * abs(i - j)) for i in range(4) for j in range(3)]
    with world.store.begin() as tx:
        tx.run("DELETE FROM pair_stats")
        tx.insert("pair_stats", ("site", "node", "rtt_ms"), rows, shared={"faded_at": world.now, "rtt_n": 5})


def test_distances_reach_the_strategy_and_are_brought_up_to_date_after_ten_minutes(world):
    given = []

    def make(distances, _run_times):
        given.append(distances)
        return Feedback(AllocationSettings(distances=distances))

    def known():
        return None if given[-1] is None else float(given[-1].ms(["s0"], ["n2"])[0, 0])

    state = SchedulerState(make)
    world.do(state.measure)
    assert given == [None]
    _measured(world, 40.0)
    world.do(state.measure)
    assert given == [None], "it was just looked for"
    world.pass_s(60)
    ready, strategy = state.ready, state.strategy
    world.do(state.measure)
    assert known() == 60.0
    assert state.ready is not ready
    assert state.strategy is not strategy
    _measured(world, 50.0)
    world.pass_s(599)
    world.do(state.measure)
    assert known() == 60.0
    world.pass_s(1)
    ready = state.ready
    world.do(state.measure)
    assert known() == 70.0
    assert state.ready is not ready
    world.pass_s(600)
    strategy = state.strategy
    world.do(state.measure)
    assert state.strategy is strategy, "nothing has changed"
    world.node("n1")
    world.waiting("甲")
    assert len(world.sweep(sweeps.allocate)) == 1, "a decision is made with distances"
    with world.store.begin() as tx:
        tx.run("DELETE FROM pair_stats")
