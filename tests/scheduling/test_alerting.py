"""Rules of alerts: when one is on, what it says, and when it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasks.domain.reasons import Reason, because
from tasks.scheduling.alerting import (
    USUAL_RULES,
    Alert,
    AlertFacts,
    AlertRules,
    Completion,
    OpenAlert,
    Refusal,
    RisingTheme,
    alerts_on,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG = NOW - timedelta(days=3)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def on(
    rules: AlertRules = USUAL_RULES, before: list[OpenAlert] | None = None, **facts: object
) -> list[Alert]:
    given = AlertFacts(**{"looking_since": LONG, **facts})  # type: ignore[arg-type]
    return alerts_on(rules, given, NOW, {one.key: one for one in before or []})


@pytest.mark.parametrize(("minutes", "silent"), [(1.9, False), (2, True), (60, True), (24 * 60, False)])
def test_a_node_is_silent_after_its_time_and_not_watched_when_it_is_gone(minutes, silent):
    found = on(nodes={"n1": ago(minutes), "n2": NOW})
    assert [one.key for one in found] == ([("silent", "n1")] if silent else [])


@pytest.mark.parametrize(("n", "told"), [(0, 0), (1, 0), (2, 1), (3000, 1)])
def test_subtasks_that_wait_for_a_person_are_told_from_the_threshold_on(n, told):
    assert len(on(AlertRules(manual=2), manual=n)) == told


@pytest.mark.parametrize(
    ("facts", "idle"),
    [
        ({"collected_at": ago(31), "work_waits": True}, True),
        ({"collected_at": ago(29), "work_waits": True}, False),
        ({"collected_at": ago(31), "work_waits": False}, False),
        ({"collected_at": None, "work_waits": True}, True),
        # Nothing ran in the night: that is no fault of the crawl.
        ({"collected_at": ago(600), "work_waits": True, "looking_since": ago(5)}, False),
        ({"collected_at": None, "work_waits": True, "looking_since": ago(5)}, False),
    ],
)
def test_nothing_collected_is_told_only_while_work_waits_and_somebody_looks(facts, idle):
    assert [one.rule for one in on(**facts)] == (["idle"] if idle else [])


def test_nothing_collected_stays_on_over_a_restart_until_a_page_comes():
    before = [OpenAlert("idle", "", because(Reason.NO_PAGE_STORED, minutes=30), since=ago(10))]
    assert on(before=before, looking_since=NOW, collected_at=ago(40), work_waits=True)
    assert not on(before=before, looking_since=NOW, collected_at=ago(9), work_waits=True)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (Completion(100, 44, 1000, 900), True),
        (Completion(100, 46, 1000, 900), False),
        (Completion(19, 0, 1000, 900), False),  # too few to say
        (Completion(100, 0, 49, 49), False),  # too few before
        (Completion(100, 0, 1000, 0), False),  # it never gave anything
    ],
)
def test_a_site_that_gives_half_of_what_it_gave_before_is_told(now, told):
    assert [one.subject for one in on(completion={"cca.org.cn": now})] == (["cca.org.cn"] if told else [])


def test_an_engine_is_told_when_it_refused_often_enough_in_a_row():
    refusals = [Refusal("baidu", {"captcha"}, ["n2", "n1"], 2), Refusal("sogou", {"captcha"}, ["n1"], 1)]
    (found,) = on(refusals=refusals)
    assert found.subject == "baidu"
    assert "n1, n2 (captcha), 2 times in a row" in str(found.because)


@pytest.mark.parametrize(
    ("complaints", "was_on", "is_on"), [(3, False, True), (2, False, False), (2, True, True), (0, True, True)]
)
def test_an_alert_of_a_rise_begins_with_enough_complaints_and_ends_with_the_rise(complaints, was_on, is_on):
    quotes = [("一只小虫", ""), ("黑色颗粒", "http://a.example/1")]
    rise = RisingTheme("牛奶", "foreign_matter", NOW.date(), complaints, 0.5, quotes)
    (first,) = on(
        AlertRules(rising=3), rises=[RisingTheme("牛奶", "foreign_matter", NOW.date(), 9, 0.5, quotes)]
    )
    assert first.because.parameters["quotes"] == " “一只小虫” “黑色颗粒” http://a.example/1"
    before = [OpenAlert("rising", first.subject, first.because, since=ago(60))] if was_on else []
    found = on(AlertRules(rising=3), before, rises=[rise])
    assert [one.subject for one in found] == (["牛奶: foreign_matter"] if is_on else [])
    assert on(AlertRules(rising=3), before) == []
