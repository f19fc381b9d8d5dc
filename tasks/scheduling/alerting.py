"""Decide which alerts are on, from rules and facts. `tasks.jobs.alerting` finds the facts and sends the messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta
from typing import Annotated

from tasks.domain.reasons import Explanation, Reason, Value, because, from_document
from tasks.domain.themes import ALL_THEMES

FEWEST_HITS = 20
"""Minimum number of hits offered lately for judging a completion rate."""

FEWEST_USUAL_HITS = 50
"""Minimum number of hits offered before for judging a completion rate."""

LATELY = timedelta(hours=1)
"""Age of the attempts whose completion rate is compared with the rate before."""

GONE = timedelta(days=1)
"""Time after which a silent node, or a refusal that has ended, is no longer watched."""

_BACK = 1.2
"""An alert about a completion rate ends above this multiple of the threshold, so that small swings give one alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """Thresholds of the rules; `None` switches a rule off.

    Attributes:
        completion: completion rate of a site in the last hour, in percent of its rate before.
        silent: minutes without a sign of life of a node.
        manual: number of subtasks that wait for a person.
        idle: minutes without a stored page while work waits.
        refusing: number of consecutive times that an engine refused a node or did not answer it.
        rising: number of complaints in the last 4 weeks about a rising theme of a product.
    """

    completion: float | None = None
    silent: float | None = None
    manual: float | None = None
    idle: float | None = None
    refusing: float | None = None
    rising: float | None = None

    def __str__(self) -> str:
        """Return the rules in the form of the setting."""
        return ",".join(f"{name}:{value:g}" for name, value in self.items()) or "off"

    def items(self) -> list[tuple[str, float]]:
        """Return the rules that are on, with their thresholds."""
        given = ((one.name, getattr(self, one.name)) for one in fields(self))
        return [(name, value) for name, value in given if value is not None]


USUAL_RULES = AlertRules(completion=50, silent=2, manual=1, idle=30, refusing=2, rising=3)


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem that a person should know.

    Attributes:
        rule: name of a field of `AlertRules`.
        subject: the node, site or engine; empty for a rule with one subject only.
        level: value that the rule compares with while the alert is on; `None` for none.
    """

    rule: str
    subject: str
    because: Annotated[Explanation, from_document]
    level: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key of the alert: rule and subject."""
        return self.rule, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlert(Alert):
    """An alert that was on at the last look, with its beginning."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Completion:
    """Numbers of a site's hits offered and collected, lately and before."""

    offered: int
    collected: int
    usual_offered: int
    usual_collected: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """An engine that refuses nodes or does not answer them.

    Attributes:
        times: number of consecutive refusals, the largest of any node.
    """

    engine: str
    causes: Collection[str]
    nodes: Collection[str]
    times: int


@dataclass(frozen=True, slots=True)
class RisingTheme:
    """A theme of a product that rises, or all its complaints together (`tasks.domain.themes.ALL_THEMES`).

    Attributes:
        since: first day of the week of the beginning.
        count, baseline: complaints in the last 4 weeks, and the expected number.
        quotes: texts and addresses of the newest complaints.
    """

    product: str
    theme: str
    since: date
    count: int
    baseline: float
    quotes: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """The facts that the rules need.

    Attributes:
        looking_since: time at which this process began to look. Time before does not count for the rules.
        nodes: last sign of life by node, without drained nodes and nodes that ended in order.
        manual: number of subtasks that wait for a person.
        collected_at: time of the last stored page; `None` if there is no page.
        work_waits: True if work could have been done during the time of the rule `idle`.
        completion: hits by site.
        rises: rises at the end of the last whole week.
    """

    looking_since: datetime
    nodes: Mapping[str, datetime] = field(default_factory=dict)
    manual: int = 0
    collected_at: datetime | None = None
    work_waits: bool = False
    completion: Mapping[str, Completion] = field(default_factory=dict)
    refusals: Sequence[Refusal] = ()
    rises: Sequence[RisingTheme] = ()


def alerts_on(
    rules: AlertRules, facts: AlertFacts, now: datetime, before: Mapping[tuple[str, str], OpenAlert]
) -> list[Alert]:
    """Return the alerts that are on now.

    Args:
        before: alerts that were on at the last look, by key.
    """
    found: list[Alert] = []
    if rules.silent is not None:
        found += _silent(timedelta(minutes=rules.silent), facts.nodes, now)
    if rules.manual is not None and facts.manual >= rules.manual:
        found.append(Alert("manual", "", because(Reason.WAIT_FOR_PERSON, subtasks=facts.manual)))
    if rules.idle is not None:
        found += _idle(timedelta(minutes=rules.idle), facts, now, before.get(("idle", "")))
    if rules.completion is not None:
        on = {key[1]: one for key, one in before.items() if key[0] == "completion" and now - one.since < GONE}
        found += _completion_alerts(rules.completion / 100, facts.completion, on)
    if rules.refusing is not None:
        found += [
            Alert(
                "refusing",
                one.engine,
                because(
                    Reason.ENGINE_REFUSES,
                    engine=one.engine,
                    nodes=", ".join(sorted(one.nodes)),
                    causes=", ".join(sorted(one.causes)),
                    times=one.times,
                ),
            )
            for one in facts.refusals
            if one.times >= rules.refusing
        ]
    if rules.rising is not None:
        rising = [(_rising(one), one.count) for one in facts.rises]
        found += [alert for alert, count in rising if count >= rules.rising or alert.key in before]
    return found


def _rising(one: RisingTheme) -> Alert:
    """Return the alert about a rise. It is sent once, although its text changes every week."""
    quotes = "".join(f" “{text}” {url}".rstrip() for text, url in one.quotes)
    figures: dict[str, Value] = {
        "since": one.since.isoformat(),
        "complaints": one.count,
        "expected": one.baseline,
    }
    if one.theme == ALL_THEMES:
        why = because(Reason.COMPLAINTS_RISE, product=one.product, quotes=quotes, **figures)
    else:
        why = because(Reason.THEME_RISES, product=one.product, theme=one.theme, quotes=quotes, **figures)
    return Alert("rising", f"{one.product}: {one.theme}"[:255], why)


def _silent(longest: timedelta, nodes: Mapping[str, datetime], now: datetime) -> list[Alert]:
    return [
        Alert("silent", name, because(Reason.SILENT_SINCE, node=name, time=f"{seen:%Y-%m-%d %H:%M:%S} UTC"))
        for name, seen in sorted(nodes.items())
        if longest <= now - seen < GONE
    ]


def _idle(longest: timedelta, facts: AlertFacts, now: datetime, on: OpenAlert | None) -> list[Alert]:
    last = facts.collected_at
    if not facts.work_waits:
        return []
    if on is not None:
        return [on] if last is None or last <= on.since else []
    if now - max(facts.looking_since, last or facts.looking_since) < longest:
        return []
    return [Alert("idle", "", because(Reason.NO_PAGE_STORED, minutes=longest.total_seconds() / 60))]


def _completion_alerts(
    share: float, sites: Mapping[str, Completion], before: Mapping[str, OpenAlert]
) -> list[Alert]:
    found: list[Alert] = []
    for site in sorted({*sites, *before}):
        on, one = before.get(site), sites.get(site)
        if one is None or one.offered < FEWEST_HITS:
            found += [on] if on is not None else []  # there are no new facts about it
            continue
        usual = one.usual_collected / one.usual_offered if one.usual_offered >= FEWEST_USUAL_HITS else None
        if on is not None:  # the bad time has become part of the rate before
            usual = on.level
        lately = one.collected / one.offered
        if usual is None or lately >= share * usual * (_BACK if on is not None else 1.0):
            continue
        why = because(Reason.COMPLETION_FELL, site=site, lately=lately, offered=one.offered, usual=usual)
        found.append(Alert("completion", site, why, usual))
    return found
