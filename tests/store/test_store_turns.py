"""A turn does what there is to do; if nothing has changed it neither loads nor decides, and the store stays."""

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from decision_path import record_path
from world import SITE, hit, statements

from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.grants import HostGrants
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.context import LoopSettings
from tasks.jobs.ticks import tick
from tasks.jobs.turn_pace import OUT_OF_WORK_S, PAUSE, SHORTEST_S, TurnPace
from tasks.store.sql.tables import attempts, events, subtasks

CLOSED = {SITE: HostGrants(next_s=100.0)}
"""The site's host grants nothing for a while."""


@contextmanager
def decisions(monkeypatch):
    """The times a turn loaded what waits and decided."""
    made, give = [], sweeps.allocate_to

    def counted(*arguments):
        made.append(1)
        return give(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "allocate_to", counted)
        yield made


def turn(world, after_s=0.0):
    """The subtasks and nodes that a turn gives leases to."""
    world.pass_s(after_s)
    return [(lease.subtask_id, lease.node) for lease in world.do(tick, world.context, ("turn",))]


def test_one_turn_leads_from_an_ended_attempt_to_its_follow_up_at_a_node(world):
    world.node("n1")
    lease, _ = world.found("特仑苏", [hit("1")])
    world.close(lease)
    ((given, _),) = turn(world)
    assert world.subtask(given).parent_id == lease.subtask_id
    assert world.state(lease.subtask_id) is State.DONE


def test_the_path_from_a_closed_attempt_to_the_next_grant_grows_no_longer(world):
    world.node("n1")
    lease, _ = world.found("特仑苏", [hit("1")])
    with record_path() as path:
        world.close(lease)
        assert turn(world)
    path.modules.discard("tasks.store.sql.postgres")  # SQLite has no such module: the limit holds for both
    # `tasks.domain.reasons` and its `Explanation` are among them: a decision says why as data, no longer as a sentence.
    assert len(path.modules) <= 50, sorted(path.modules)
    assert len(path.records) <= 29, sorted(path.records)


def test_a_turn_that_finds_nothing_only_looks(world):
    world.node("n1")
    turn(world)
    with statements(world.store) as sent:
        assert turn(world) == []
    assert len([one for one in sent if "FROM" in one]) == 1
    assert not [one for one in sent if one.startswith(("INSERT", "UPDATE", "DELETE"))]


def test_if_wait_is_full_admission_is_tried_again_only_after_a_transition(world):
    def queued():
        return len(world.rows(subtasks, subtasks.c.state == State.PRIORITY))

    world.context = replace(world.context, settings=LoopSettings(wait_limit=1))
    for name in "甲乙丙丁戊己庚辛壬癸":
        world.add(name)
    turn(world)
    left = queued()
    assert left > 0
    with statements(world.store) as sent:
        turn(world)
    assert not [one for one in sent if "walk" in one], "the heads of PRIORITY were not asked for"
    world.node("n1")
    assert turn(world)
    turn(world)
    assert queued() < left


def test_what_no_host_takes_is_decided_on_seldom_and_the_store_does_not_grow(world, monkeypatch):
    world.node("n1")
    world.waiting()
    world.context.state.grants = CLOSED
    with decisions(monkeypatch) as made:
        assert turn(world) == []
        before = len(world.rows(events)), len(world.rows(attempts))
        assert [turn(world, 0.1) for _ in range(400)] == [[]] * 400
        assert len(made) == 1 + len([0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5])
    assert (len(world.rows(events)), len(world.rows(attempts))) == before


def test_what_changes_is_decided_on_with_the_next_turn(world, monkeypatch):
    world.node("n1")
    for name in ("甲", "乙"):
        world.waiting(name)
    world.context.state.grants = CLOSED
    assert [turn(world) for _ in range(3)] == [[]] * 3
    world.pass_s(-3600)  # the database's clock is set back
    world.node("n1", slots=1)
    with decisions(monkeypatch) as made:
        assert turn(world) == []
    assert made
    world.pass_s(3600)
    world.node("n1", slots=1)
    world.context.state.grants = {SITE: HostGrants(next_s=4.0)}
    assert [node for _, node in turn(world)] == ["n1"]
    world.node("n1", slots=0)
    assert turn(world) == []
    world.node("n2")
    assert [node for _, node in turn(world)] == ["n2"]


def test_what_is_delayed_goes_when_it_is_due_and_the_turn_says_when(world):
    subtask_id = world.failed(FailureReason.HOST_UNREACHABLE)
    world.node("n2")
    assert turn(world) == []
    due = world.subtask(subtask_id).not_before
    assert world.context.state.next_turn_at == due
    assert turn(world, (due - world.now).total_seconds() - 0.001) == []
    assert turn(world, 0.001) == [(subtask_id, "n2")]
    assert world.context.state.next_turn_at is None


def test_a_rest_that_ends_is_a_time_for_a_turn(world):
    subtask_id = world.waiting()
    world.rest("n1", Rest(SITE, "captcha", lambda _times: 40.0))
    world.node("n1")
    assert turn(world) == []
    assert world.context.state.next_turn_at == world.now + timedelta(seconds=40)
    assert turn(world, 40) == [(subtask_id, "n1")]


def test_turns_follow_each_other_the_later_the_longer_they_take():
    pace = TurnPace()
    assert pace.pause_s(5.0, out_of_work=False) == 0.0
    pace.record_end(10.0, 0.001)
    assert pace.pause_s(10.0, out_of_work=False) == pytest.approx(SHORTEST_S)
    pace.record_end(10.0, 0.1)
    assert pace.pause_s(10.25, out_of_work=False) == pytest.approx(PAUSE * 0.1 - 0.25)
    assert pace.pause_s(10.0 + PAUSE * 0.1, out_of_work=False) == 0.0
    assert pace.pause_s(10.25, out_of_work=True) == 0.0, "a node without work waits for no pause"
    assert pace.pause_s(10.0, out_of_work=True) == pytest.approx(OUT_OF_WORK_S)
