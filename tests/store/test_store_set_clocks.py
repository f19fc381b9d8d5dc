"""The database's clock is set while work goes on: `verify` accuses nobody, and no lease waits for the old time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from test_store_unasked import unanswered
from world import SILENT, START, World, hit, undone

from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.jobs.ticks import tick
from tasks.store.queue import hosts, nodes, snapshot
from tasks.store.queue.upkeep import SetClock, list_set_clocks
from tasks.store.sql.database import Store
from tasks.store.sql.tables import events
from tasks.store.verify.clocks import CLOCKS
from tasks.store.verify.verify import verify

AHEAD_S = (0, -5, 0, -200, 0, -7200, 10_800, 0, -200, -400, 0)
"""How far the clock is ahead of the true time, in turn."""
STEPS_S = [later - earlier for earlier, later in pairwise(AHEAD_S)]
EACH_STEP_S = sorted(set(STEPS_S))


def look(world: World) -> None:
    world.do(tick, world.context, ("recall", "wake", "admit"))


def violations(world: World) -> list[str]:
    """Return what `verify` finds, also what is overdue."""
    with world.store.read(now=world.now) as tx:
        return [f"{one.kind}: {one.message}" for one in verify(tx).violations]


def crawl(world: World, name: str, step_s: float = 0.0) -> None:
    """Crawl a product whose pages fail and are found again, and set the clock in the middle of it."""
    lease, work = world.begin(world.waiting(name))
    todo = world.read_results(
        lease, work.targets[0], [hit(f"{name}/1"), hit(f"{name}/2"), hit("shared")]
    ).todo
    world.save(lease, todo[0])
    world.pass_s(step_s)
    world.progress(lease, Counters(offered=3, tried=1, requests=2))
    world.save(lease, todo[1])
    if len(todo) > 2:
        world.save(lease, todo[2])
    world.close(lease, Counters(offered=3, tried=3, requests=4), reason=FailureReason.BLOCKED)
    look(world)
    world.pass_s(1)


@pytest.mark.parametrize("step_s", [*EACH_STEP_S, -3600, -301, -299, 301])
def test_one_step_within_an_attempt(world: World, step_s: float) -> None:
    world.node("n1")
    look(world)
    crawl(world, "before")
    crawl(world, "within", step_s)
    assert violations(world) == []
    crawl(world, "after")
    world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
    assert violations(world) == []


@pytest.mark.parametrize("looks", [True, False], ids=["noted", "log alone"])
def test_steps_one_after_the_other(world: World, looks: bool) -> None:
    world.node("n1")
    for number, step_s in enumerate(STEPS_S):
        crawl(world, f"product {number}", step_s)
        world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
        if looks:
            look(world)
        assert violations(world) == [], step_s
    with world.store.read(now=world.now) as tx:
        set_clocks = verify(tx).set_clocks
    # Back from 3 hours ahead, which covers the 2 hours before.
    (period,) = set_clocks
    assert period.since < START - timedelta(hours=1.9)
    assert period.until > START + timedelta(hours=2.9)


def test_every_look_notes_how_far_the_clock_was_set_back(world: World) -> None:
    look(world)
    for step_s in (-2, 5, -200, 300, 1):
        world.pass_s(step_s)
        look(world)
    at = [START, START - timedelta(seconds=2), START + timedelta(seconds=3), START - timedelta(seconds=197)]
    assert world.look(list_set_clocks) == [SetClock(at[1], at[0]), SetClock(at[3], at[2])]
    assert world.verification().set_clocks == (), "shorter than what is allowed anyhow"


def test_order_outside_the_period_is_judged(world: World) -> None:
    world.node("n1")
    crawl(world, "long before")
    world.pass_s(20_000)
    crawl(world, "within", -7200)
    crawl(world, "after")
    with undone(world.store, world.now) as tx:
        first = events.c.subtask_id == 1
        early = events.update().where(first, events.c.transition == "recall").values(at=START - 2 * CLOCKS)
        tx.engine_connection.execute(early)
        found = verify(tx, None)
    assert [one.kind for one in found.violations] == ["order", "time"]


def test_one_changed_time_is_no_set_clock(store: Store) -> None:
    """Of the events that begin or end a lease, which copies prove, and of one that nothing else tells of."""
    world = World(store)
    crawl(world, "first")
    crawl(world, "second")
    for number in range(1, 7):
        with undone(store, world.now) as tx:
            its = events.c.id == number
            late = events.update().where(its).values(at=world.now + timedelta(days=1))
            tx.engine_connection.execute(late)
            assert verify(tx, None).violations, number


@pytest.mark.parametrize("step_s", EACH_STEP_S)
class TestWork:
    """After each step, within 20 s: nothing that runs is recalled, and nothing waits for the old time."""

    def test_a_running_lease_goes_on(self, world: World, step_s: float) -> None:
        world.node("n1")
        look(world)
        lease = world.begun()
        world.pass_s(step_s)
        for _ in range(10):
            look(world)
            world.pass_s(2)
            assert world.progress(lease)
        assert world.subtask(lease.subtask_id).recalls == 0
        assert timedelta() < world.subtask(lease.subtask_id).lease_deadline - world.now <= SILENT

    def test_a_lease_that_was_not_begun_can_be_or_is_given_again(self, world: World, step_s: float) -> None:
        world.node("n1")
        look(world)
        lease = world.granted()
        world.pass_s(step_s)
        work = world.start(lease)
        look(world)
        row = world.subtask(lease.subtask_id)
        assert (work is not None, row.state) in ((True, State.CRAWL), (False, State.WAIT))
        assert row.recalls == 0

    def test_a_silent_lease_is_recalled_in_time(self, world: World, step_s: float) -> None:
        world.node("n1")
        look(world)
        lease = world.begun()
        world.pass_s(step_s)
        for _ in range(40):
            look(world)
            world.pass_s(2)
        assert world.subtask(lease.subtask_id).recalls == 1

    def test_a_dead_node_is_not_alive_for_longer(self, world: World, step_s: float) -> None:
        world.node("n1")
        look(world)
        world.pass_s(step_s)
        look(world)
        assert [node.name for node in world.look(nodes.list_live, SILENT)] == ["n1"]
        for _ in range(40):
            world.pass_s(2)
            look(world)
        assert world.look(nodes.list_live, SILENT) == []

    def test_a_rest_of_a_host_ends(self, world: World, step_s: float) -> None:
        look(world)
        world.rest("n1", Rest("a.cn", "blocked", lambda _: 30.0))
        world.pass_s(step_s)
        look(world)
        (rest,) = world.look(hosts.list_rests)
        assert rest.until <= world.now + timedelta(seconds=30)

    def test_a_wait_ends(self, world: World, step_s: float) -> None:
        """At most a minute later than without the step."""
        world.node("n1")
        lease = world.begun()
        world.close(lease, **unanswered())
        row = world.subtask(lease.subtask_id)
        wait = row.not_before - world.now
        assert wait > timedelta()
        world.pass_s(step_s + wait.total_seconds() + 60)
        found = world.look(snapshot.list_waiting, 10, world.context.hosts_of)
        assert [one.id for one in found] == [lease.subtask_id]
        assert world.look(snapshot.find_todo).allocate
