"""Rebalancing over real tables: leases of a stalled node are begun by another, once; and what a buffer may hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world import CATALOG, SILENT, START, statements

from splitter.catalog.names import Kind
from tasks.jobs import sweeps
from tasks.jobs.ticks import tick
from tasks.scheduling.rebalancing import BufferRule
from tasks.store.queue import attempts as queue_attempts
from tasks.store.queue import leases, nodes
from tasks.store.queue.leases import Renewal
from tasks.store.sql.tables import attempts, events

META_SITES = [site for site in CATALOG.sites if CATALOG.kind_of(site) is Kind.META][:20]
BUFFER = BufferRule()


def rebalance(world):
    return world.do(tick, world.context, ("rebalance",))


def allocate(world):
    """Allocate in as many rounds as it takes: an engine's room is for a few attempts in each."""
    return [lease for _ in range(10) for lease in world.allocate()]


def room(world):
    """How many leases n1 may still get."""
    return {view.name: view.free for view in world.do(sweeps.open_nodes, world.context)}["n1"]


@pytest.fixture
def held(world):
    """n1 has got these 20 leases, has begun 4 of them and then nothing for 11 s; n2, with 16 slots, has none."""
    world.node("n1")
    world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(attempts_per_s=1.0))
    world.add("特仑苏", sites=META_SITES)
    world.admit()
    given = allocate(world)
    assert len(given) == 20
    for lease in given[:4]:
        assert world.start(lease) is not None
    world.pass_s(11)
    world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(attempts_per_s=0.8, backlog=16))
    world.node("n2", 16)
    return given


def test_what_a_stalled_node_holds_is_begun_by_the_other_within_one_sweep(world, held):
    given = rebalance(world)
    assert {lease.node for lease in given} == {"n2"}
    assert {lease.subtask_id for lease in given} == {lease.subtask_id for lease in held[4:]}
    assert all(world.start(lease) is not None for lease in given)
    assert [world.start(lease) for lease in held[4:]] == [None] * 16, "what has gone cannot be begun any more"
    assert all(world.progress(lease) for lease in held[:4]), "what has begun stays where it is"
    begun = [row.subtask_id for row in world.rows(attempts, attempts.c.started_at.is_not(None))]
    assert len(begun) == len(set(begun)) == 20, "each is begun, none twice"
    assert all(world.subtask(lease.subtask_id).recalls == 0 for lease in held)
    *_, allocated, released, again = world.rows(events, events.c.subtask_id == held[-1].subtask_id)
    logged = [(row.transition, row.node) for row in (allocated, released, again)]
    assert logged == [("allocate", "n1"), ("release", "n1"), ("allocate", "n2")]
    assert released.detail["because"]["parameters"]["waiting"] == 16


def test_something_urgent_that_waits_comes_first(world, held):
    (urgent,) = world.add("加急", sites=META_SITES[:1], priority=9)
    world.admit()
    given = rebalance(world)
    assert (given[0].subtask_id, given[0].node, len(given)) == (urgent, "n2", 16)
    waiting = {row.name: row.waiting for row in world.look(nodes.list_nodes)}
    assert waiting == {"n1": 1, "n2": 16}, "one lease stays where it was instead"


def test_it_costs_one_query_if_all_is_balanced(world):
    world.node("n1")
    world.node("n2")
    world.add("特仑苏", sites=META_SITES)
    world.admit()
    for lease in allocate(world):
        if lease.subtask_id % 2:
            world.start(lease)
    with statements(world.store) as asked, world.store.begin() as tx:
        assert sweeps.rebalance(tx, world.context) == []
    assert len([one for one in asked if "FROM" in one]) == 1


def test_since_when_a_node_has_held_leases_and_begun_none(world):
    def since_s():
        (row,) = world.look(nodes.list_nodes)
        return None if row.waits_since is None else (row.waits_since - START).total_seconds()

    world.node("n1")
    first, second, third = world.add("特仑苏", sites=META_SITES[:3])
    world.admit()
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


def test_a_lease_that_begins_while_it_is_decided_about_stays(world, held, monkeypatch):
    """It begins after the decision and before the lease is taken."""
    begun = held[-1]
    release = queue_attempts.release

    def release_later(tx, given_back, **named):
        assert begun in given_back
        assert leases.start_many(tx, [Renewal(begun, SILENT)]) != [None]
        return release(tx, given_back, **named)

    monkeypatch.setattr(queue_attempts, "release", release_later)
    assert len(rebalance(world)) == 15
    assert world.subtask(begun.subtask_id).lease_token == begun.token
    assert world.progress(begun)


class TestBuffer:
    @pytest.mark.parametrize(
        ("attempts_per_s", "may_hold"),
        [(0.0, 8), (0.01, 8), (0.3, 13), (0.5, 19), (1.0, 20), (3.9, 24), (80.0, 404)],
    )
    def test_slots_and_what_is_begun_within_the_horizon(self, world, attempts_per_s, may_hold):
        """Of a node with 4 slots; one that begins 16 leases in less than 5 s gets 5 s of work."""
        world.node("n1")
        world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(attempts_per_s=attempts_per_s))
        assert room(world) == may_hold

    def test_attempts_that_only_wait_keep_it_from_nothing(self, world):
        world.node("n1", 2)
        world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(idle=50))
        assert room(world) == 4, "more that wait than run are of yesterday"
        for subtask_id in world.add("特仑苏", sites=META_SITES[:3]):
            world.admit()
            world.begin(subtask_id)
        world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
        assert room(world) == 1, "3 run, 2 slots and 2 in reserve"
        world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(idle=3))
        assert room(world) == 4

    def test_a_node_that_begins_nothing_gets_less_and_less(self, world):
        world.node("n1")
        world.granted()
        free = []
        for _ in range(4):
            world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat(attempts_per_s=1.0))
            free.append(room(world))
            world.pass_s(10)
        assert free == [19, 6, 5, 4]

    @given(slots=st.integers(1, 64), idle=st.integers(0, 500), per_s=st.floats(0.001, 100.0))
    def test_no_node_holds_more_than_this(self, slots, idle, per_s):
        most = BUFFER.max_leases(slots, idle, per_s)
        assert most <= slots + max(4 * slots, math.ceil(5 * per_s)) + 4 * slots
        assert most <= slots + math.ceil(30 * per_s) + idle
        assert most > slots, "a slot that becomes free finds the next lease there"
