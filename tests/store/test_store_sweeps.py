"""The sweeps over real tables: recall, giving up, waking, and a person's retry."""

import asyncio

import pytest
from world import hit

from app.run.cluster import node_process
from app.run.cluster.redis_outage import RedisOutage
from app.run.setting_fields import Settings
from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.domain.states import MAX_RECALLS, State, Transition
from tasks.jobs import sweeps
from tasks.store.sql.tables import events, subtasks


def recall_after(world, seconds):
    world.pass_s(seconds)
    world.recall()


def test_silence_is_recalled_to_another_node(world):
    lease = world.begun()
    recall_after(world, 59.999999)
    assert world.state(lease.subtask_id) == State.CRAWL
    recall_after(world, 0.000001)
    row = world.subtask(lease.subtask_id)
    assert (row.state, row.recalls, row.failed_on) == (State.WAIT, 1, ["n1"])
    assert (row.reason, row.lease_token, row.attempt_id) == (FailureReason.SILENT, None, None)
    logged = [row.transition for row in world.rows(events, events.c.subtask_id == lease.subtask_id)]
    assert logged[-3:] == ["allocate", "silent", "recall"]


def test_five_recalls_then_a_person(world):
    subtask_id = world.waiting()
    for node in ("n1", "n2", "n3", "n4", "n5", "n2"):
        assert world.state(subtask_id) is State.WAIT
        world.begin(subtask_id, node)
        recall_after(world, 60)
    row = world.subtask(subtask_id)
    assert (row.state, row.recalls) == (State.MANUAL, MAX_RECALLS)
    assert row.failed_on == ["n1", "n3", "n4", "n5", "n2"], "the oldest failure first"


def test_a_lease_that_a_live_node_did_not_start_is_given_back_without_a_recall(world):
    lease = world.granted()
    world.pass_s(30)
    world.node("n1")
    recall_after(world, 30)
    row = world.subtask(lease.subtask_id)
    assert (row.state, row.recalls, row.failed_on) == (State.WAIT, 0, [])


@pytest.mark.parametrize("known", [False, True])
def test_a_lease_that_a_silent_node_did_not_start_is_recalled(world, known):
    if known:
        world.node("n1")
    lease = world.granted()
    recall_after(world, 60)
    row = world.subtask(lease.subtask_id)
    assert (row.reason, row.recalls) == (FailureReason.NOT_STARTED, 1)


class Stuck:
    """A node that does not come to its end."""

    async def stop(self, _why):
        await asyncio.Event().wait()


class WorldWriter:
    """Writes to a world at its time."""

    def __init__(self, world):
        self._world = world

    async def run(self, operation):
        return self._world.do(operation)


def test_a_node_that_does_not_stop_in_time_loses_its_leases_at_once_and_nothing_else(world, monkeypatch):
    monkeypatch.setattr(node_process, "STOP_S", 0.01)
    lease = world.begun()
    process = node_process.NodeProcess(Settings(), "n1", 1, RedisOutage.from_settings(Settings()))
    asyncio.run(process._stop(Stuck(), WorldWriter(world)))
    row = world.subtask(lease.subtask_id)
    assert (row.state, row.recalls, row.failed_on) == (State.WAIT, 0, [])


def test_a_hosts_failure_waits_before_it_is_tried_again(world):
    subtask_id = world.failed(FailureReason.HOST_UNREACHABLE)
    world.recall()
    assert world.subtask(subtask_id).not_before > world.now
    world.node("n2")
    assert world.allocate() == []
    world.pass_s(2)
    world.node("n2")
    (given,) = world.allocate()
    assert (given.subtask_id, given.node) == (subtask_id, "n2")


def test_targets_left_over_become_a_follow_up(world):
    lease, work = world.begin(world.waiting(chunks=(True, False)))
    one, *_ = world.read_results(lease, work.targets[0], [hit("1"), hit("2"), hit("3")], more=True).todo
    world.save(lease, one)
    world.close(lease, Counters(offered=1, tried=1, collected=1))
    assert [world.wake() for _ in range(2)] == [1, 0]
    done, follow_up, chunk = world.rows(subtasks)
    assert (done.state, follow_up.state, chunk.state) == (State.DONE, State.PRIORITY, State.PRIORITY)
    assert (follow_up.parent_id, follow_up.chunk, follow_up.left) == (done.id, 1, 2)
    assert (chunk.parent_id, chunk.chunk) == (None, 2)
    assert world.targets(follow_up.id) == {hit("2"): "todo", hit("3"): "todo"}
    assert "todo" not in world.targets(done.id).values()
    (woken,) = world.rows(events, events.c.transition == Transition.WAKE)
    expected = {"left": 2, "follow_up": follow_up.id, "next_chunk": chunk.id}
    assert {name: woken.detail[name] for name in expected} == expected


def test_allocation_gives_work_to_live_nodes_only(world):
    world.node("dead")
    world.pass_s(60)
    subtask_id = world.waiting()
    assert world.allocate() == []
    world.node("n1")
    preview = world.sweep(sweeps.preview).assignments
    allocated = events.c.transition == Transition.ALLOCATE
    assert world.rows(events, allocated) == [], "a preview changes nothing"
    (lease,) = world.allocate()
    assert [(one.subtask.id, one.node) for one in preview] == [(subtask_id, "n1")]
    assert (lease.subtask_id, lease.node) == (subtask_id, "n1")
    (event,) = world.rows(events, allocated)
    assert {"strategy", "score", "candidates", "modification"} <= event.detail.keys()
