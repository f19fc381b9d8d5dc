"""Rebalancing over real tables: leases of a stalled node are begun by another, once; and what a buffer may hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world import CATALOG, SILENT, START, statements

from splitter.catalog.names import Kind
from tasks.jobs import sweeps
from tasks.jobs.ticks import tick
from tasks.scheduling import rebalancing
from tasks.scheduling.rebalancing import BufferRule
from tasks.store.queue import attempts as queue_attempts
from tasks.store.queue import leases, nodes
from tasks.store.queue.leases import Renewal
from tasks.store.sql.tables import attempts, events

META_SITES = [site for site in CATALOG.sites if CATALOG.kind_of(site) is Kind.META][:20]
BUFFER = BufferRule()


def beat(world, name, attempts_per_s=0.0, *, backlog=0, idle=0):
    world.do(nodes.heartbeat, name, attempts_per_s=attempts_per_s, backlog=backlog, idle=idle)


def rebalance(world):
    return world.do(tick, world.context, ("rebalance",))


def allocated(world):
    """As many rounds as it takes: an engine's room is for a few attempts in each."""
    return [lease for _ in range(10) for lease in world.sweep(sweeps.allocate)]


def unstarted(world):
    return {row.name: row.waiting for row in world.look(nodes.list_nodes)}


def opened(world):
    return {view.name: view for view in world.do(sweeps.open_nodes, world.context)}


@pytest.fixture
def stalled(world):
    """n1 has got 20 leases, has begun 4 of them and then nothing for 11 s; n2, with 16 slots, has none."""
    world.node("n1")
    beat(world, "n1", 1.0)
    world.add("特仑苏", sites=META_SITES)
    world.sweep(sweeps.admit)
    held = allocated(world)
    assert len(held) == 20
    for lease in held[:4]:
        assert world.start(lease) is not None
    world.pass_s(11)
    beat(world, "n1", 0.8, backlog=16)
    world.node("n2", 16)
    return world, held


def test_what_a_stalled_node_holds_is_begun_by_the_other_within_one_sweep(stalled):
    world, held = stalled
    given = rebalance(world)
    assert {lease.node for lease in given} == {"n2"}
    assert {lease.subtask_id for lease in given} == {lease.subtask_id for lease in held[4:]}
    assert all(world.start(lease) is not None for lease in given)
    assert [world.start(lease) for lease in held[4:]] == [None] * 16, "what has gone cannot be begun any more"
    begun = [row.subtask_id for row in world.rows(attempts, attempts.c.started_at.is_not(None))]
    assert len(begun) == len(set(begun)) == 20, "each is begun, none twice"
    assert all(world.subtask(lease.subtask_id).recalls == 0 for lease in held)
    logged = world.rows(events, events.c.subtask_id == held[-1].subtask_id)
    assert [(row.transition, row.node) for row in logged][-3:] == [
        ("allocate", "n1"),
        ("release", "n1"),
        ("allocate", "n2"),
    ]
    assert logged[-2].detail["why"].startswith("rebalanced: n1 has 16 not begun")


def test_what_has_begun_stays_where_it_is(stalled):
    world, held = stalled
    given = rebalance(world)
    assert not {lease.subtask_id for lease in given} & {lease.subtask_id for lease in held[:4]}
    assert all(world.progress(lease) for lease in held[:4])


def test_something_urgent_that_waits_comes_first(stalled):
    world, _ = stalled
    (urgent,) = world.add("加急", sites=META_SITES[:1], priority=9)
    world.sweep(sweeps.admit)
    given = rebalance(world)
    assert (given[0].subtask_id, given[0].node, len(given)) == (urgent, "n2", 16)
    assert unstarted(world) == {"n1": 1, "n2": 16}, "one lease stays where it was instead"


def test_it_costs_one_query_where_all_is_balanced(world):
    world.node("n1")
    world.node("n2")
    world.add("特仑苏", sites=META_SITES)
    world.sweep(sweeps.admit)
    for lease in allocated(world):
        world.start(lease) if lease.subtask_id % 2 else None
    with statements(world.store) as asked, world.store.begin() as tx:
        assert sweeps.rebalance(tx, world.context) == []
    assert len([one for one in asked if "FROM" in one]) == 1


def test_since_when_a_node_has_held_leases_and_begun_none(world):
    def since_s():
        (row,) = world.look(nodes.list_nodes)
        return None if row.waits_since is None else (row.waits_since - START).total_seconds()

    world.node("n1")
    first, second, third = world.add("特仑苏", sites=META_SITES[:3])
    world.sweep(sweeps.admit)
    assert since_s() is None
    given = [world.grant(first), world.grant(second)]
    world.pass_s(3)
    assert since_s() == 0.0, "the oldest lease was granted then"
    world.start(given[0])
    assert since_s() == 3.0, "it has just begun one"
    world.pass_s(3)
    world.start(given[1])
    assert since_s() is None
    world.pass_s(3)
    world.grant(third)
    assert since_s() == 9.0, "before, there was nothing to begin"


def test_a_lease_that_begins_while_it_is_decided_about_stays(stalled, monkeypatch):
    world, held = stalled
    decide = rebalancing.rebalance

    def decided(*args):
        moves = decide(*args)
        (begun,) = [lease for lease in held if lease.attempt_id == moves.returned[0].lease.attempt_id]
        raced.append(begun)
        return moves

    raced = []
    monkeypatch.setattr(rebalancing, "rebalance", decided)
    released = queue_attempts.release

    def release(tx, given_back, **named):
        assert raced[0] in given_back
        assert leases.start_many(tx, [Renewal(raced[0], SILENT)]) != [None]
        return released(tx, given_back, **named)

    monkeypatch.setattr(queue_attempts, "release", release)
    given = rebalance(world)
    assert len(given) == 15
    assert world.subtask(raced[0].subtask_id).lease_token == raced[0].token
    assert world.progress(raced[0])


class TestBuffer:
    @pytest.mark.parametrize(
        ("attempts_per_s", "may_hold"),
        [(0.0, 8), (0.01, 8), (0.3, 13), (0.5, 19), (1.0, 20), (3.9, 24), (80.0, 404)],
    )
    def test_slots_and_what_is_begun_within_the_horizon(self, world, attempts_per_s, may_hold):
        """Of a node with 4 slots; one that begins 16 leases in less than 5 s gets 5 s of work."""
        world.node("n1")
        beat(world, "n1", attempts_per_s)
        assert opened(world)["n1"].free == may_hold

    def test_attempts_that_only_wait_keep_it_from_nothing(self, world):
        world.node("n1", 2)
        for subtask_id in world.add("特仑苏", sites=META_SITES[:3]):
            world.sweep(sweeps.admit)
            world.begin(subtask_id)
        assert opened(world)["n1"].free == 1, "3 run, 2 slots and 2 in reserve"
        beat(world, "n1", idle=3)
        assert opened(world)["n1"].free == 4

    def test_more_that_wait_than_run_are_of_yesterday(self, world):
        world.node("n1", 2)
        beat(world, "n1", idle=50)
        assert opened(world)["n1"].free == 4

    def test_a_node_that_begins_nothing_gets_less_and_less(self, world):
        world.node("n1")
        beat(world, "n1", 1.0)
        world.grant(world.waiting())
        free = []
        for _ in range(4):
            free.append(opened(world)["n1"].free)
            world.pass_s(10)
            beat(world, "n1", 1.0)
        assert free == [19, 6, 5, 4]

    @given(
        slots=st.integers(1, 64),
        idle=st.integers(0, 500),
        per_s=st.floats(0.001, 100.0),
    )
    def test_no_node_holds_more_than_this(self, slots, idle, per_s):
        most = BUFFER.most(slots, idle, per_s)
        assert most <= slots + max(4 * slots, math.ceil(5 * per_s)) + 4 * slots
        assert most <= slots + math.ceil(30 * per_s) + idle
        assert most > slots, "a slot that becomes free finds the next lease there"
