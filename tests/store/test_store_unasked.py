"""Subtasks whose host can't be asked: released, held back, counted, told; a failure only where another node could."""

from datetime import timedelta
from itertools import pairwise

import pytest
from world import SITE, START, World, host_views

from splitter.catalog.names import Kind
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.grants import HostGrants
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE
from tasks.domain.states import State
from tasks.jobs import recalling, sweeps
from tasks.scheduling.after_attempt import UnaskedHost
from tasks.store.queries.queues import list_host_waits
from tasks.store.queue import attempts, hosts, nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.tables import events, host_rests
from tasks.store.sql.tables import nodes as node_rows

SILENT_AFTER = timedelta(seconds=60)
DAY = timedelta(days=1)
NO_GRANTS = HostGrants()


def no_answer(host=SITE):
    return Rest(host, UNREACHABLE, lambda times: 3.0 * 2 ** (times - 1))


def unanswered():
    """The report of an attempt that its host did not answer."""
    host = UnaskedHost(host=SITE, unreachable=True, grants=NO_GRANTS, silent_after_s=60.0)
    return {"reason": FailureReason.HOST_UNREACHABLE, "rests": (no_answer(),), "unasked": host}


@pytest.fixture
def alone(store):
    world = World(store)
    world.node("n1")
    return world


@pytest.fixture
def two(alone):
    alone.node("n2")
    return alone


def of_host(name):
    return lambda site: (name, site)


def waits(world):
    return world.look(list_host_waits, of_host("engine.cn"), SILENT_AFTER)


def stay_alive(world):
    for row in world.rows(node_rows):
        world.do(nodes.heartbeat, row.name)


def test_a_host_that_answers_no_node_is_waited_for_without_a_recall(alone):
    one = alone.waiting()
    lease, _ = alone.begin(one)
    assert alone.close(lease, **unanswered())
    row = alone.subtask(one)
    assert (row.state, row.recalls, row.failed_on, row.reason) == (State.WAIT, 0, [], None)
    assert (row.idle_releases, row.wait_host, row.wait_reason) == (1, SITE, UNREACHABLE)
    assert row.not_before == START + timedelta(seconds=3)
    assert alone.attempts(one)[0].outcome == "released"
    last = alone.rows(events, events.c.subtask_id == one)[-1]
    why = f"{SITE} does not answer"
    assert (last.detail["why"], last.detail["delay_s"]) == (why, 3.0)
    assert alone.verification().violations == ()


def test_where_another_node_could_ask_it_is_a_failure_of_this_one(two):
    one = two.waiting()
    lease, _ = two.begin(one, "n1")
    two.close(lease, **unanswered())
    row = two.subtask(one)
    assert (row.state, row.reason, row.failed_on) == (State.FAILED, "host_unreachable", ["n1"])
    two.sweep(recalling.recall)
    two.pass_s(10)
    stay_alive(two)
    lease, _ = two.begin(one, "n2")
    two.close(lease, **unanswered())  # n1's rest was over, but nothing speaks for it either
    row = two.subtask(one)
    assert (row.state, row.recalls, row.failed_on) == (State.WAIT, 1, ["n1"])
    assert row.not_before == two.now + timedelta(seconds=3)  # then n1 probes the host
    assert two.verification().violations == ()


def test_nodes_that_are_silent_drained_or_of_another_kind_cure_nothing(two):
    two.do(lambda tx: nodes.set_drained(tx, "n2", True))
    two.do(nodes.register, Node("n3", frozenset({Kind.MICROBLOG}), 4))
    two.do(nodes.register, Node("n4", frozenset(Kind), 4))
    two.do(lambda tx: nodes.leave(tx, "n4"))
    one = two.waiting()
    lease, _ = two.begin(one)
    two.close(lease, **unanswered())
    assert two.state(one) is State.WAIT


def test_of_a_dead_host_all_that_waits_goes_to_a_person_however_many_they_are(two):
    subtasks = [two.waiting(f"特仑苏{n}") for n in range(12)]
    began = two.now
    for turn in range(40):
        one = subtasks[turn % len(subtasks)]
        if two.state(one) is State.MANUAL:
            break
        lease, _ = two.begin(one, f"n{turn % 2 + 1}")
        two.close(lease, **unanswered())
        two.sweep(recalling.recall)
        two.now = max(two.now, min(row.until for row in two.rows(host_rests)))
        stay_alive(two)
    assert {two.state(one) for one in subtasks} == {State.MANUAL}
    assert sum(len(two.attempts(one)) for one in subtasks) == 11  # the rests of both nodes: ten in a row each
    assert all(two.subtask(one).reason == FailureReason.HOST_UNREACHABLE for one in subtasks)
    assert two.now - began < timedelta(hours=2)
    assert two.verification().violations == ()


def test_rests_double_and_a_person_is_asked_after_twenty_attempts(alone):
    one, delays = alone.waiting(), []
    for _ in range(30):
        if alone.state(one) is not State.WAIT:
            break
        lease, _ = alone.begin(one)
        alone.close(lease, **unanswered())
        row = alone.subtask(one)
        if row.state == State.WAIT:
            delays.append((row.not_before - alone.now).total_seconds())
            alone.now = row.not_before
            stay_alive(alone)
    assert delays[:4] == [3.0, 6.0, 12.0, 24.0]
    assert len(alone.attempts(one)) == 20
    assert (alone.state(one), alone.subtask(one).recalls) == (State.FAILED, 0)
    alone.sweep(recalling.recall)
    assert alone.state(one) is State.MANUAL
    assert alone.rows(events, events.c.subtask_id == one)[-1].detail["why"] == (
        "host_unreachable: nobody answered 20 attempts in a row"
    )
    assert alone.verification().violations == ()


def test_what_the_node_gives_back_is_not_the_hosts_fault(alone):
    one = alone.waiting()
    lease, _ = alone.begin(one)
    alone.close(lease, **unanswered())
    lease, _ = alone.begin(one)
    alone.interrupt(lease, Counters(), "the node stops")
    row = alone.subtask(one)
    assert (row.idle_releases, row.wait_host, row.wait_reason) == (1, None, None)
    lease = alone.grant(one)
    alone.do(attempts.release, {lease: "a live node did not start it in time"})
    assert alone.subtask(one).idle_releases == 1


def test_a_release_carries_the_time_before_which_no_address_is_granted_a_permit(two):
    one = two.waiting()
    lease, _ = two.begin(one)
    grants = HostGrants(next_s=45.0)
    host = UnaskedHost(host=SITE, unreachable=False, grants=grants, silent_after_s=60.0)
    two.interrupt(lease, Counters(), "x", reason=FailureReason.NOTHING_STORED, unasked=host)
    row = two.subtask(one)
    assert row.not_before == START + timedelta(seconds=40)  # an attempt may wait 5 s for its permit
    assert (row.wait_host, row.wait_reason) == (SITE, NO_PERMIT)
    assert (row.state, row.failed_on) == (State.WAIT, [])
    (told,) = waits(two)
    assert (told.host, told.cause, told.until) == (SITE, NO_PERMIT, row.not_before)
    two.do(attempts.cancel, one, "a person")
    assert two.subtask(one).wait_host is None
    assert two.verification().violations == ()


def test_a_host_that_answers_nobody_is_probed_from_one_address_after_the_other(two):
    two.node("n3")
    one, asked = two.waiting(), []
    for node in ("n1", "n2"):
        two.do(hosts.rest_hosts, [(node, no_answer())])
    two.pass_s(4)
    node = "n3"
    for times in range(1, 6):
        stay_alive(two)
        lease, _ = two.begin(one, node)
        two.close(lease, **unanswered())
        assert {row.times for row in two.rows(host_rests)} == {times}
        rests = sorted(((row.until - two.now).total_seconds(), row.node) for row in two.rows(host_rests))
        asked.append((node, [seconds for seconds, _ in rests]))
        node = rests[0][1]
        two.now = two.subtask(one).not_before
    assert [seconds for _, seconds in asked] == [[3 * 2**n, 6 * 2**n, 6 * 2**n] for n in range(5)]
    assert all(first != second for (first, _), (second, _) in pairwise(asked))
    assert two.verification().violations == ()


def test_a_page_lets_every_other_address_probe_the_host_at_once(two):
    for node in ("n1", "n2", "n3"):
        two.do(hosts.rest_hosts, [(node, no_answer())])
    two.do(hosts.rest_hosts, [("n3", Rest("h.cn", "captcha", lambda _: 600.0))])
    two.pass_s(3)
    two.do(hosts.rest_hosts, [("n2", no_answer())])
    before = two.rows(host_rests)
    two.do(hosts.close_breakers, [(SITE, "n4")])  # it was always answered
    assert two.rows(host_rests) == before
    two.do(hosts.close_breakers, [(SITE, "n1")])
    left = {(r.host, r.node): r.until for r in two.rows(host_rests)}
    assert left == {
        (SITE, "n2"): two.now,
        (SITE, "n3"): two.now,
        ("h.cn", "n3"): START + timedelta(seconds=600),
    }


def test_the_scheduler_sees_who_is_not_answered_and_who_is_refused(two):
    two.do(hosts.rest_hosts, [("n1", no_answer())])
    two.do(hosts.rest_hosts, [("n2", Rest(SITE, "captcha", lambda _: 600.0))])
    of = two.context.hosts_of, two.context.hosts.limits
    view = two.look(host_views, *of, {}, 4, [SITE], {})[SITE]
    assert (view.resting, view.unanswered) == ({"n1", "n2"}, {"n1"})


# --- what people are told -------------------------------------------------------------------------------------


def test_waits_are_grouped_by_host(two):
    first, *_ = two.add("a", sites=(SITE, "12315.com"))
    two.add("b", sites=(SITE,))
    two.sweep(sweeps.admit)
    assert waits(two) == []
    two.do(hosts.rest_hosts, [("n1", Rest("12315.com", "forbidden", lambda _: 300.0))])
    assert waits(two) == []  # n2 may ask
    two.do(hosts.rest_hosts, [("n2", Rest("12315.com", "forbidden", lambda _: 200.0))])
    (one,) = waits(two)
    assert (one.host, one.cause, one.subtasks) == ("12315.com", "forbidden", 1)
    assert one.until == START + timedelta(seconds=200)  # the first of them
    for node in ("n1", "n2"):
        two.do(hosts.rest_hosts, [(node, no_answer("engine.cn"))])
    (engine,) = waits(two)
    assert (engine.host, engine.cause, engine.subtasks) == ("engine.cn", UNREACHABLE, 3)
    assert engine.left == 3 * two.subtask(first).left
    two.pass_s(3)
    (engine,) = waits(two)  # it is probed, and not answered yet
    assert engine.until <= two.now


def test_what_waits_for_itself_does_not_prolong_the_wait_for_a_host(alone):
    for name in ("甲", "乙"):
        one = alone.waiting(name)
    alone.do(lambda tx: tx.run("UPDATE subtasks SET not_before = :at WHERE id = :id", id=one, at=START + DAY))
    alone.do(hosts.rest_hosts, [("n1", no_answer())])
    (told,) = waits(alone)
    assert (told.host, told.until, told.subtasks) == (SITE, START + timedelta(seconds=3), 2)
