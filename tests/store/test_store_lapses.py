"""A time in which no scheduler looked counts for a quarter of a lease; one that always looks late still recalls."""

from dataclasses import replace

import pytest
from world import SILENT

from tasks.domain.attempt_end import Counters
from tasks.domain.states import State
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.store.queue import leases
from tasks.store.queue.leases import Renewal

LATE_S = SILENT.total_seconds() / 4 + 1


def look(world):
    world.do(tick, world.context, ("recall",))


def forget(world):
    """Let another scheduler go on."""
    world.context = replace(world.context, state=SchedulerState(world.context.settings.strategy))


@pytest.fixture
def begun(world):
    """A lease that a node has begun while a scheduler looked."""
    look(world)
    lease, _ = world.begin(world.waiting())
    return lease


def test_nobody_is_silent_while_no_scheduler_looks(world, begun):
    world.pass_s(600)
    look(world)
    assert world.state(begun.subtask_id) is State.CRAWL
    assert world.subtask(begun.subtask_id).lease_deadline == world.now + SILENT * 3 / 4
    for _ in range(4):
        world.pass_s(11)
        look(world)
    assert world.state(begun.subtask_id) is State.CRAWL
    world.pass_s(1)  # a quarter of the lease counted
    look(world)
    assert world.subtask(begun.subtask_id).recalls == 1


def test_steady_looks_change_nothing(world, begun):
    deadline = world.subtask(begun.subtask_id).lease_deadline
    for _ in range(5):
        world.pass_s(LATE_S - 1 - 5)
        look(world)
    assert world.subtask(begun.subtask_id).lease_deadline == deadline


def test_a_scheduler_that_looks_late_every_time_takes_back_what_is_silent(world, begun):
    looks = 0
    while world.subtask(begun.subtask_id).recalls == 0:
        looks += 1
        assert looks * LATE_S < 3 * SILENT.total_seconds(), "a dead node keeps its lease"
        world.pass_s(LATE_S)
        look(world)
    assert looks * LATE_S > SILENT.total_seconds()


def test_a_node_that_renews_keeps_its_lease_however_late_the_scheduler_looks(world, begun):
    for _ in range(20):
        world.pass_s(LATE_S)
        assert world.do(leases.progress_many, [Renewal(begun, SILENT, Counters())]) == [True]
        look(world)
    assert world.state(begun.subtask_id) is State.CRAWL


def test_a_long_time_after_a_short_one_is_held_against_nobody(world, begun):
    for seconds in (LATE_S, 2 * SILENT.total_seconds()):
        world.pass_s(seconds)
        look(world)
    assert world.state(begun.subtask_id) is State.CRAWL


def test_what_another_scheduler_saw_counts(world, begun):
    for _ in range(6):
        assert world.subtask(begun.subtask_id).recalls == 0
        forget(world)
        world.pass_s(SILENT.total_seconds() / 6)
        look(world)
    assert world.subtask(begun.subtask_id).recalls == 1


@pytest.mark.parametrize("back_s", [2, 30, 3600])
def test_a_lease_lasts_as_long_after_the_clock_was_set_back(world, begun, back_s):
    look(world)
    world.pass_s(-back_s)
    look(world)
    assert world.subtask(begun.subtask_id).lease_deadline == world.now + SILENT
    for _ in range(5):
        world.pass_s(SILENT.total_seconds() / 6)
        look(world)
    assert world.state(begun.subtask_id) is State.CRAWL


def test_what_was_renewed_after_the_clock_was_set_back_does_not_move(world, begun):
    world.pass_s(-3600)
    assert world.do(leases.progress_many, [Renewal(begun, SILENT)]) == [True]
    deadline = world.subtask(begun.subtask_id).lease_deadline
    look(world)
    assert world.subtask(begun.subtask_id).lease_deadline == deadline


def test_no_lapse_makes_a_lease_longer_than_a_new_one(world, begun):
    world.pass_s(3600)
    assert world.do(leases.progress_many, [Renewal(begun, SILENT, Counters())]) == [True]
    look(world)
    assert world.subtask(begun.subtask_id).lease_deadline == world.now + SILENT


@pytest.mark.parametrize(("began", "level"), [(True, "INFO"), (False, "WARNING")])
def test_a_run_that_begins_again_warns_of_nothing(world, begun, caplog, began, level):
    """Between two runs no scheduler looks: that is no fault, so nobody is alarmed."""
    caplog.set_level("INFO", "reviewloop.store")
    world.pass_s(600)
    if began:
        forget(world)
    look(world)
    said = [one.levelname for one in caplog.records if "no scheduler looked for 600 s" in one.getMessage()]
    assert said == [level]
