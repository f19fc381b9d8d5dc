"""Alerts on both databases: told once, told when over, whoever looks and however often it restarts."""

from datetime import timedelta

import pytest
from world import SITE, START, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.jobs.alerting import Alerting, SendOutcome, find_facts
from tasks.scheduling.alerting import AlertRules, Completion
from tasks.store.queue import nodes, notices
from tasks.store.queue.hosts import rest_hosts
from tasks.store.queue.notices import CLAIMED, QUIET

RULES = AlertRules(completion=50, silent=2, manual=1, idle=30, refusing=1)


class Receiver:
    """Notes what it is told."""

    def __init__(self):
        self.got = []
        self.answer = SendOutcome(told=True)
        self.meanwhile = lambda: None

    def __call__(self, rows, now):
        self.meanwhile()
        if self.answer.told:
            self.got += [(row.firing, row.rule, row.subject) for row in rows]
        return self.answer


@pytest.fixture
def receiver():
    return Receiver()


def looker(receiver, rules=RULES):
    """A scheduler that has just started."""
    return Alerting(rules, {"www.baidu.com": "baidu"}, receiver)


def look(world, alerting):
    alerting.look(world.do)


def test_an_alert_is_told_once_and_once_when_it_is_over(world, receiver):
    world.node("n1")
    alerting = looker(receiver)
    look(world, alerting)
    assert receiver.got == []
    world.pass_s(121)
    for _ in range(3):
        look(world, alerting)
        look(world, looker(receiver))  # a restart, or a second scheduler
        world.pass_s(60)
    assert receiver.got == [(True, "silent", "n1")]
    (row,) = world.look(notices.list_alerts)
    assert (row.firing, row.told, row.since) == (True, True, START + timedelta(seconds=121))
    world.do(nodes.heartbeat, "n1")
    for _ in range(3):
        look(world, looker(receiver))
    assert receiver.got == [(True, "silent", "n1"), (False, "silent", "n1")]


def test_one_that_comes_and_goes_is_told_no_more_often_than_every_quarter_hour(world, receiver):
    world.node("n1")
    alerting = looker(receiver)
    for _ in range(30):  # for an hour: silent for a minute, there for a minute
        world.pass_s(121)
        look(world, alerting)
        world.do(nodes.heartbeat, "n1")
        look(world, alerting)
    on = [one for one in receiver.got if one[0]]
    assert len(on) == 4
    assert len(receiver.got) == 2 * len(on)


def test_a_message_that_reaches_nobody_is_tried_again_later_and_told(world, receiver):
    world.node("n1")
    world.pass_s(121)
    alerting = looker(receiver)
    receiver.answer = SendOutcome(told=False, trouble="json://127.0.0.1: refused")
    look(world, alerting)
    (row,) = world.look(notices.list_alerts)
    assert (row.told, row.trouble) == (False, "json://127.0.0.1: refused")
    receiver.answer = SendOutcome(told=True)
    look(world, alerting)
    assert receiver.got == []  # whoever sends it may still be at it
    world.pass_s(CLAIMED.total_seconds() + 1)
    look(world, alerting)
    assert receiver.got == [(True, "silent", "n1")]
    (row,) = world.look(notices.list_alerts)
    assert (row.told, row.trouble) == (True, "")


def test_a_sender_that_dies_loses_no_alert(world, receiver):
    """An alert is claimed before it is sent; a claim that nobody ends is taken over."""
    world.node("n1")
    world.pass_s(121)

    def die():
        receiver.meanwhile = lambda: None
        raise KeyboardInterrupt

    receiver.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        look(world, looker(receiver))
    heir = looker(receiver)
    look(world, heir)
    assert receiver.got == []
    world.pass_s(CLAIMED.total_seconds() + 1)
    look(world, heir)
    assert receiver.got == [(True, "silent", "n1")]
    world.do(nodes.heartbeat, "n1")
    receiver.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        look(world, heir)
    world.pass_s(CLAIMED.total_seconds() + 1)
    world.do(nodes.heartbeat, "n1")
    look(world, heir)
    assert receiver.got == [(True, "silent", "n1"), (False, "silent", "n1")]


def test_an_alert_that_ends_while_it_is_sent_is_told_to_be_over(world, receiver):
    world.node("n1")
    world.pass_s(121)

    def back():
        receiver.meanwhile = lambda: None
        world.do(nodes.heartbeat, "n1")
        look(world, looker(receiver))

    receiver.meanwhile = back
    alerting = looker(receiver)
    look(world, alerting)
    look(world, alerting)
    assert receiver.got == [(True, "silent", "n1"), (False, "silent", "n1")]


def test_what_is_over_and_told_leaves_nothing_behind(world, receiver):
    world.node("n1")
    world.pass_s(121)
    alerting = looker(receiver)
    look(world, alerting)
    world.do(nodes.leave, "n1")
    look(world, alerting)
    world.pass_s(QUIET.total_seconds() + 1)
    look(world, alerting)
    assert world.look(notices.list_alerts) == []


def test_work_that_waits_and_gives_no_page_is_told_and_is_over_with_a_page(world, receiver):
    world.node("n1")
    world.waiting()
    alerting = looker(receiver, AlertRules(idle=30))
    look(world, alerting)
    world.pass_s(29 * 60)
    look(world, alerting)
    assert receiver.got == []
    world.pass_s(61)
    look(world, alerting)
    assert receiver.got == [(True, "idle", "")]
    collect_one(world)
    look(world, alerting)
    assert receiver.got[1:] == [(False, "idle", "")]


def test_the_facts_are_those_of_the_store(world):
    for name in ("n1", "drained", "ended"):
        world.node(name)
    world.do(nodes.set_drained, "drained", True)
    world.do(nodes.leave, "ended")
    rest = Rest("www.baidu.com", "captcha", lambda times: 600.0 * times)
    world.do(rest_hosts, [("n1", rest)])
    world.waiting()
    collect_one(world)
    found = world.look(lambda tx: find_facts(tx, RULES, START, {"www.baidu.com": "baidu"}))
    (refusal,) = found.refusals
    assert (refusal.engine, list(refusal.nodes), refusal.times) == ("baidu", ["n1"], 1)
    assert found.completion == {SITE: Completion(1, 1, 0, 0)}
    assert (found.collected_at, found.manual, found.nodes) == (world.now, 0, {"n1": START})
    world.pass_s(3601)
    later = world.look(lambda tx: find_facts(tx, RULES, START, {}))
    assert (later.completion, later.refusals) == ({}, [])


def collect_one(world):
    """A page, by the one attempt of the one subtask there is."""
    lease, work = world.begin(1)
    (target,) = world.read_results(lease, work.targets[0], [hit("1")]).todo
    world.save(lease, target)
    world.close(lease, Counters(offered=1, tried=1, collected=1))
