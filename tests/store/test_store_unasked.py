"""Subtasks whose host can't be asked: released, held back, counted; a failure only if another node could ask it."""

from datetime import timedelta

import pytest
from world import SITE, START

from splitter.catalog.names import Kind
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.grants import HostGrants
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE
from tasks.domain.states import State
from tasks.scheduling.after_attempt import UnaskedHost
from tasks.store.queries.queues import list_host_waits
from tasks.store.queue import hosts, nodes
from tasks.store.queue.manual import set_aside_unanswered
from tasks.store.queue.nodes import Node
from tasks.store.queue.snapshot import list_waiting
from tasks.store.sql.tables import events, host_rests
from tasks.store.sql.tables import nodes as node_rows

SILENT_AFTER = timedelta(seconds=60)


def no_answer(host=SITE):
    return Rest(host, UNREACHABLE, lambda times: 3.0 * 2 ** (times - 1))


def unanswered():
    """The report of an attempt that its host did not answer."""
    host = UnaskedHost(host=SITE, unreachable=True, grants=HostGrants(), silent_after_s=60.0)
    return {"reason": FailureReason.HOST_UNREACHABLE, "rests": (no_answer(),), "unasked": host}


@pytest.fixture
def alone(world):
    """A world in which only n1 can ask: the others are drained, of another kind, or have left."""
    for name in ("n1", "drained", "left"):
        world.node(name)
    world.do(nodes.set_drained, "drained", True)
    world.do(nodes.register, Node("other", frozenset({Kind.MICROBLOG}), 4))
    world.do(nodes.leave, "left")
    return world


@pytest.fixture
def two(world):
    world.node("n1")
    world.node("n2")
    return world


def waits(world):
    return world.look(list_host_waits, lambda site: ("engine.cn", site), SILENT_AFTER)


def stay_alive(world):
    for row in world.rows(node_rows):
        world.do(nodes.record_heartbeat, row.name, nodes.Heartbeat())


def attempt(world, subtask_id, node="n1"):
    """An attempt that its host does not answer; return the subtask afterwards."""
    lease, _ = world.begin(subtask_id, node)
    assert world.close(lease, **unanswered())
    return world.subtask(subtask_id)


def test_a_host_that_answers_no_node_is_waited_for_without_a_recall(alone):
    one = alone.waiting()
    row = attempt(alone, one)
    assert (row.state, row.recalls, row.failed_on, row.reason) == (State.WAIT, 0, [], None)
    assert (row.idle_releases, row.wait_host, row.wait_reason) == (1, SITE, UNREACHABLE)
    assert row.not_before == START + timedelta(seconds=3)
    assert alone.attempts(one)[0].outcome == "released"
    last = alone.rows(events, events.c.subtask_id == one)[-1]
    assert (last.detail["because"]["reason"], last.detail["delay_s"]) == ("host_silent", 3.0)


def test_what_the_node_gives_back_is_not_the_hosts_fault(alone):
    one = alone.waiting()
    attempt(alone, one)
    alone.interrupt(alone.begin(one)[0], Counters(), "the node stops")
    row = alone.subtask(one)
    assert (row.idle_releases, row.wait_host, row.wait_reason) == (1, None, None)
    alone.release(alone.grant(one))
    assert alone.subtask(one).idle_releases == 1


def test_if_another_node_could_ask_it_is_a_failure_of_this_one(two):
    one = two.waiting()
    row = attempt(two, one)
    assert (row.state, row.reason, row.failed_on) == (State.FAILED, "host_unreachable", ["n1"])
    two.recall()
    two.pass_s(10)
    stay_alive(two)
    row = attempt(two, one, "n2")  # n1's rest was over, but nothing speaks for it either
    assert (row.state, row.recalls, row.failed_on) == (State.WAIT, 1, ["n1"])
    assert row.not_before == two.now + timedelta(seconds=3)  # then n1 probes the host


def test_of_a_dead_host_all_that_waits_goes_to_a_person_however_many_they_are(two):
    subtasks = [two.waiting(f"特仑苏{n}") for n in range(12)]
    for turn in range(40):
        one = subtasks[turn % len(subtasks)]
        if two.state(one) is State.MANUAL:
            break
        attempt(two, one, f"n{turn % 2 + 1}")
        two.recall()
        two.now = max(two.now, min(row.until for row in two.rows(host_rests)))
        stay_alive(two)
    assert {two.state(one) for one in subtasks} == {State.MANUAL}
    assert sum(len(two.attempts(one)) for one in subtasks) == 11  # the rests of both nodes: ten in a row each
    assert {two.subtask(one).reason for one in subtasks} == {FailureReason.HOST_UNREACHABLE}
    assert two.now - START < timedelta(hours=2)


def test_a_person_is_asked_after_twenty_attempts_in_a_row(alone):
    one = alone.waiting()
    for _ in range(19):
        alone.now = attempt(alone, one).not_before
        alone.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
    assert attempt(alone, one).state == State.FAILED
    alone.recall()
    assert (alone.state(one), alone.subtask(one).recalls) == (State.MANUAL, 0)
    last = alone.rows(events, events.c.subtask_id == one)[-1]
    assert last.detail["because"]["parameters"] == {"failure": "host_unreachable", "attempts": 20}


def test_a_release_carries_the_time_before_which_no_address_is_granted_a_permit(two):
    lease = two.begun()
    host = UnaskedHost(host=SITE, unreachable=False, grants=HostGrants(next_s=45.0), silent_after_s=60.0)
    two.interrupt(lease, Counters(), "x", reason=FailureReason.NOTHING_STORED, unasked=host)
    row = two.subtask(lease.subtask_id)
    assert row.not_before == START + timedelta(seconds=40)  # an attempt may wait 5 s for its permit
    assert (row.wait_host, row.wait_reason) == (SITE, NO_PERMIT)
    assert (row.state, row.failed_on) == (State.WAIT, [])
    (wait,) = waits(two)
    assert (wait.host, wait.cause, wait.until) == (SITE, NO_PERMIT, row.not_before)
    two.cancel(lease.subtask_id)
    assert two.subtask(lease.subtask_id).wait_host is None


def test_a_page_lets_every_other_address_probe_the_host_at_once(two):
    for node in ("n1", "n2", "n3"):
        two.rest(node, no_answer())
    two.rest("n3", Rest("h.cn", "captcha", lambda _: 600.0))
    two.pass_s(3)
    two.rest("n2", no_answer())
    before = two.rows(host_rests)
    two.do(hosts.close_breakers, [(SITE, "n4")])  # it was always answered
    assert two.rows(host_rests) == before
    two.do(hosts.close_breakers, [(SITE, "n1")])
    assert {(r.host, r.node): r.until for r in two.rows(host_rests)} == {
        (SITE, "n2"): two.now,
        (SITE, "n3"): two.now,
        ("h.cn", "n3"): START + timedelta(seconds=600),
    }


def test_the_scheduler_sees_who_is_not_answered_and_who_is_refused(two):
    two.rest("n1", no_answer())
    two.rest("n2", Rest(SITE, "captcha", lambda _: 600.0))
    view = two.host_views(two.context.hosts_of, two.context.hosts.limits, 1.0)[SITE]
    assert (view.resting, view.unanswered) == ({"n1", "n2"}, {"n1"})


# --- what people read -----------------------------------------------------------------------------------------


def test_waits_are_grouped_by_host(two):
    first, *_ = two.add("a", sites=(SITE, "12315.com"))
    two.add("b", sites=(SITE,))
    two.admit()
    assert waits(two) == []
    two.rest("n1", Rest("12315.com", "forbidden", lambda _: 300.0))
    assert waits(two) == []  # n2 may ask
    two.rest("n2", Rest("12315.com", "forbidden", lambda _: 200.0))
    (one,) = waits(two)
    assert (one.host, one.cause, one.subtasks) == ("12315.com", "forbidden", 1)
    assert one.until == START + timedelta(seconds=200)  # the first of them
    for node in ("n1", "n2"):
        two.rest(node, no_answer("engine.cn"))
    (engine,) = waits(two)
    assert (engine.host, engine.cause, engine.subtasks) == ("engine.cn", UNREACHABLE, 3)
    assert engine.left == 3 * two.subtask(first).left
    two.pass_s(3)
    (engine,) = waits(two)  # it is probed, and not answered yet
    assert engine.until <= two.now


def with_hits_only(world, name="甲"):
    """A waiting subtask whose result page was read, with two hits to do."""
    lease, _ = world.found(name, [f"http://{SITE}/1", f"http://{SITE}/2"])
    world.interrupt(lease, Counters(), "x")
    return lease.subtask_id


def test_hits_do_not_wait_for_the_host_of_their_engine(alone):
    hits, search = with_hits_only(alone), alone.waiting("乙")
    alone.rest("n1", no_answer("engine.cn"))
    (wait,) = waits(alone)
    assert (wait.host, wait.subtasks) == ("engine.cn", 1)
    hosts_of = {one.id: one.hosts for one in alone.look(list_waiting, 9, lambda site: ("engine.cn", site))}
    assert hosts_of == {hits: (SITE,), search: ("engine.cn", SITE)}
    alone.rest("n1", no_answer())
    assert {(wait.host, wait.subtasks) for wait in waits(alone)} == {("engine.cn", 1), (SITE, 1)}


@pytest.mark.parametrize(
    ("searches", "states"), [((), {State.MANUAL}), ((SITE,), {State.WAIT, State.MANUAL})]
)
def test_hits_are_not_given_to_a_person_because_the_engine_answers_nobody(alone, searches, states):
    hits, search = with_hits_only(alone), alone.waiting("乙")
    alone.do(set_aside_unanswered, {SITE: "engine.cn"}, searches)
    assert {alone.state(hits), alone.state(search)} == states
    assert alone.state(search) is State.MANUAL


def test_what_waits_for_itself_does_not_prolong_the_wait_for_a_host(alone):
    for name in ("甲", "乙"):
        one = alone.waiting(name)
    alone.run("UPDATE subtasks SET not_before = :at WHERE id = :id", id=one, at=START + timedelta(days=1))
    alone.rest("n1", no_answer())
    (wait,) = waits(alone)
    assert (wait.host, wait.until, wait.subtasks) == (SITE, START + timedelta(seconds=3), 2)
    alone.run("UPDATE subtasks SET not_before = NULL")  # for `verify`
