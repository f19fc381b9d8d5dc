"""Alerts on both databases: sent once, and once when over, whoever looks and however often it restarts."""

from datetime import timedelta

import pytest
from world import SITE, START

from tasks.domain.breaker import Rest
from tasks.jobs.alerting import Alerting, SendOutcome, find_facts
from tasks.scheduling.alerting import AlertRules, Completion
from tasks.store.queue import nodes, notices
from tasks.store.queue.notices import CLAIMED, QUIET

RULES = AlertRules(completion=50, silent=2, manual=1, idle=30, refusing=1)
ENGINES = {"www.baidu.com": "baidu"}
SILENT_N1, N1_IS_BACK = (True, "silent", "n1"), (False, "silent", "n1")


class Watch:
    """A receiver of alerts about a world, and schedulers that look; n1 is there at first.

    Attributes:
        got: the alerts that were received.
        answer: the outcome of sending.
        meanwhile: what happens while the next alert is sent.
    """

    def __init__(self, world):
        self.world = world
        self.got, self.answer, self.meanwhile = [], SendOutcome(told=True), lambda: None
        world.node("n1")
        self.alerting = self.restarted()

    def receive(self, rows, now):
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if self.answer.told:
            self.got += [(row.firing, row.rule, row.subject) for row in rows]
        return self.answer

    def restarted(self, rules=RULES):
        """A scheduler that has just started."""
        return Alerting(rules, ENGINES, self.receive)

    def look(self, alerting=None):
        (alerting or self.alerting).look(self.world.do)

    def look_after(self, seconds):
        self.world.pass_s(seconds)
        self.look()

    def beat(self):
        self.world.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())

    def alerts(self):
        return self.world.look(notices.list_alerts)


@pytest.fixture
def watch(world):
    return Watch(world)


@pytest.fixture
def silent(watch):
    """A watch whose n1 has been silent for two minutes."""
    watch.world.pass_s(121)
    return watch


def test_an_alert_is_sent_once_and_once_when_it_is_over(watch):
    watch.look()
    assert watch.got == []
    watch.world.pass_s(121)
    for _ in range(3):
        watch.look()
        watch.look(watch.restarted())  # or a second scheduler
        watch.world.pass_s(60)
    assert watch.got == [SILENT_N1]
    (row,) = watch.alerts()
    assert (row.firing, row.told, row.since) == (True, True, START + timedelta(seconds=121))
    watch.beat()
    for _ in range(3):
        watch.look(watch.restarted())
    assert watch.got == [SILENT_N1, N1_IS_BACK]


def test_an_alert_that_comes_and_goes_is_sent_no_more_often_than_every_quarter_hour(watch):
    for _ in range(30):  # for an hour: silent for a minute, there for a minute
        watch.look_after(121)
        watch.beat()
        watch.look()
    assert watch.got.count(SILENT_N1) == watch.got.count(N1_IS_BACK) == 4


def test_a_message_that_reaches_nobody_is_sent_again_later(silent):
    silent.answer = SendOutcome(told=False, trouble="json://127.0.0.1: refused")
    silent.look()
    (row,) = silent.alerts()
    assert (row.told, row.trouble) == (False, "json://127.0.0.1: refused")
    silent.answer = SendOutcome(told=True)
    silent.look()
    assert silent.got == []  # whoever sends it may still be at it
    silent.look_after(CLAIMED.total_seconds() + 1)
    assert silent.got == [SILENT_N1]
    (row,) = silent.alerts()
    assert (row.told, row.trouble) == (True, "")


def test_a_sender_that_dies_loses_no_alert(silent):
    """An alert is claimed before it is sent; a claim that nobody ends is taken over."""

    def die():
        raise KeyboardInterrupt

    silent.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        silent.look(silent.restarted())
    silent.look()
    assert silent.got == []
    silent.look_after(CLAIMED.total_seconds() + 1)
    assert silent.got == [SILENT_N1]
    silent.beat()
    silent.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        silent.look()
    silent.world.pass_s(CLAIMED.total_seconds() + 1)
    silent.beat()
    silent.look()
    assert silent.got == [SILENT_N1, N1_IS_BACK]


def test_an_alert_that_ends_while_it_is_sent_is_reported_to_be_over(silent):
    def come_back():
        silent.beat()
        silent.look(silent.restarted())

    silent.meanwhile = come_back
    silent.look()
    silent.look()
    assert silent.got == [SILENT_N1, N1_IS_BACK]


def test_what_is_over_and_sent_leaves_nothing_behind(silent):
    silent.look()
    silent.world.do(nodes.leave, "n1")
    silent.look()
    silent.look_after(QUIET.total_seconds() + 1)
    assert silent.alerts() == []


def test_the_facts_are_those_of_the_store(watch):
    world = watch.world
    for name in ("drained", "ended"):
        world.node(name)
    world.do(nodes.set_drained, "drained", True)
    world.do(nodes.leave, "ended")
    world.rest("n1", Rest("www.baidu.com", "captcha", lambda times: 600.0 * times))
    world.crawled()
    world.waiting("等待")
    found = world.look(find_facts, RULES, START, ENGINES)
    (refusal,) = found.refusals
    assert (refusal.engine, list(refusal.nodes), refusal.times) == ("baidu", ["n1"], 1)
    assert found.completion == {SITE: Completion(1, 1, 0, 0)}
    assert (found.collected_at, found.manual, found.nodes) == (world.now, 0, {"n1": START})
    world.pass_s(29 * 60)
    assert not world.look(find_facts, RULES, START, {}).work_waits
    world.pass_s(61)
    assert world.look(find_facts, RULES, START, {}).work_waits
    world.pass_s(1800)
    later = world.look(find_facts, RULES, START, {})
    assert (later.completion, later.refusals) == ({}, [])
