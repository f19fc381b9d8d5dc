"""A time in which no scheduler looked counts for a quarter of a lease; one that always looks late still recalls."""

from dataclasses import replace
from datetime import timedelta

import pytest
from world import SILENT

from tasks.domain.states import State
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.store.queue import leases
from tasks.store.queue.leases import Renewal

SILENT_S = SILENT.total_seconds()
LATE_S = SILENT_S / 4 + 1


def look_after(world, *waits_s):
    for seconds in waits_s:
        world.pass_s(seconds)
        world.do(tick, world.context, ("recall",))


def forget(world):
    """Let another scheduler go on."""
    world.context = replace(world.context, state=SchedulerState(world.context.settings.strategy))


@pytest.fixture
def begun(world):
    """A lease that a node has begun while a scheduler looked."""
    look_after(world, 0)
    return world.begun()


def left(world, lease):
    """Time until the deadline of the lease; None if it was recalled."""
    row = world.subtask(lease.subtask_id)
    return row.lease_deadline - world.now if row.state == State.CRAWL else None


def test_nobody_is_silent_while_no_scheduler_looks(world, begun):
    look_after(world, 600)
    assert left(world, begun) == SILENT * 3 / 4
    look_after(world, 11, 11, 11, 11)
    assert left(world, begun) == timedelta(seconds=1)
    look_after(world, 1)  # a quarter of the lease counted
    assert world.subtask(begun.subtask_id).recalls == 1


def test_steady_looks_change_nothing(world, begun):
    look_after(world, *[LATE_S - 6] * 5)
    assert left(world, begun) == SILENT - timedelta(seconds=5 * (LATE_S - 6))


def test_a_scheduler_that_looks_late_every_time_takes_back_what_is_silent(world, begun):
    looks = 0
    while left(world, begun) is not None:
        looks += 1
        assert looks * LATE_S < 3 * SILENT_S, "a dead node keeps its lease"
        look_after(world, LATE_S)
    assert looks * LATE_S > SILENT_S


def test_a_node_that_renews_keeps_its_lease_however_late_the_scheduler_looks(world, begun):
    for _ in range(20):
        world.pass_s(LATE_S)
        assert world.progress(begun)
        look_after(world, 0)
    assert left(world, begun) == SILENT, "no lapse makes a lease longer than a new one"


def test_a_long_time_after_a_short_one_is_held_against_nobody(world, begun):
    look_after(world, LATE_S, 2 * SILENT_S)
    assert left(world, begun) is not None


def test_what_another_scheduler_saw_counts(world, begun):
    for _ in range(6):
        assert left(world, begun) is not None
        forget(world)
        look_after(world, SILENT_S / 6)
    assert left(world, begun) is None


@pytest.mark.parametrize("back_s", [2, 30, 3600])
def test_a_lease_lasts_as_long_after_the_clock_was_set_back(world, begun, back_s):
    look_after(world, 0, -back_s)
    assert left(world, begun) == SILENT
    look_after(world, *[SILENT_S / 6] * 5)
    assert left(world, begun) == SILENT / 6


def test_what_was_renewed_after_the_clock_was_set_back_does_not_move(world, begun):
    world.pass_s(-3600)
    assert world.do(leases.progress_many, [Renewal(begun, SILENT)]) == [True]
    look_after(world, 0)
    assert left(world, begun) == SILENT


@pytest.mark.parametrize(("began", "level"), [(True, "INFO"), (False, "WARNING")])
def test_a_run_that_begins_again_warns_of_nothing(world, begun, caplog, began, level):
    """Between two runs no scheduler looks: that is no fault, so nobody is alarmed."""
    caplog.set_level("INFO", "reviewloop.store")
    if began:
        forget(world)
    look_after(world, 600)
    said = [one.levelname for one in caplog.records if "no scheduler looked for 600 s" in one.getMessage()]
    assert said == [level]
