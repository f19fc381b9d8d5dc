"""Alerts that are on: rules and facts in, decisions out. `tasks.jobs.alerting` finds the facts and has them sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta
from typing import Annotated

from tasks.domain.reasons import Explanation, Reason, Value, because, from_document
from tasks.domain.themes import ALL_THEMES

FEWEST_HITS = 20
"""Hits offered lately below which a completion rate says nothing."""

FEWEST_USUAL_HITS = 50
"""The same of what was offered before."""

LATELY = timedelta(hours=1)
"""The attempts that a site's completion rate is compared by."""

GONE = timedelta(days=1)
"""A node silent for so long, or a refusal that ended so long ago, is not watched any more."""

_BACK = 1.2
"""A completion rate is back where it is above this times the bound: one that swings around it is told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """Thresholds of the rules, from which on each is told; None: it is not watched.

    Attributes:
        completion: a site's completion rate of the last hour, in percent of what it was before.
        silent: minutes that a node gave no sign of life.
        manual: subtasks that wait for a person.
        idle: minutes in which nothing was collected while work waits.
        refusing: times in a row that an engine refused a node, or did not answer it.
        rising: complaints of the last 4 weeks about a theme of a product that rises.
    """

    completion: float | None = None
    silent: float | None = None
    manual: float | None = None
    idle: float | None = None
    refusing: float | None = None
    rising: float | None = None

    def __str__(self) -> str:
        """As the setting has them."""
        return ",".join(f"{name}:{value:g}" for name, value in self.items()) or "off"

    def items(self) -> list[tuple[str, float]]:
        """The rules that are on, with their thresholds."""
        given = ((one.name, getattr(self, one.name)) for one in fields(self))
        return [(name, value) for name, value in given if value is not None]


USUAL_RULES = AlertRules(completion=50, silent=2, manual=1, idle=30, refusing=2, rising=3)


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person should know.

    Attributes:
        rule: name of a field of `AlertRules`.
        subject: the node, site or engine; empty where the rule has one subject only.
        level: what the rule compares with while the alert is on; None: nothing.
    """

    rule: str
    subject: str
    because: Annotated[Explanation, from_document]
    level: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """By which it is told from others."""
        return self.rule, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlert(Alert):
    """An alert that was on at the last look, and since when."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Completion:
    """Hits of a site: those offered and collected lately, and those before."""

    offered: int
    collected: int
    usual_offered: int
    usual_collected: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """An engine that refuses nodes or does not answer them.

    Attributes:
        times: in a row, the most of any node.
    """

    engine: str
    causes: Collection[str]
    nodes: Collection[str]
    times: int


@dataclass(frozen=True, slots=True)
class RisingTheme:
    """A theme of a product that rises, or all its complaints together (`tasks.domain.themes.ALL_THEMES`).

    Attributes:
        since: first day of the week in which it began to rise.
        count, baseline: complaints of the last 4 weeks, and those that were expected.
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
    """Facts that the rules look at.

    Attributes:
        looking_since: when this process began to look; a time in which nothing ran is not held against the crawl.
        nodes: by name, the last sign of life of those that are neither drained nor ended in order.
        manual: subtasks that wait for a person.
        collected_at: when the last page was stored; None: none yet.
        work_waits: True where work could have been done for as long as the rule `idle` says.
        completion: by site.
        rises: at the end of the last whole week.
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
    """The alerts that are on now.

    Args:
        before: those that were on at the last look, by their keys.
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
        found += _halved(rules.completion / 100, facts.completion, on)
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
    """Return the alert of a rise. Its text changes with every week, and it is told once."""
    quotes = "".join(f" “{text}” {url}" for text, url in one.quotes)
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


def _halved(share: float, sites: Mapping[str, Completion], before: Mapping[str, OpenAlert]) -> list[Alert]:
    found: list[Alert] = []
    for site in sorted({*sites, *before}):
        on, one = before.get(site), sites.get(site)
        if one is None or one.offered < FEWEST_HITS:
            found += [on] if on is not None else []  # nothing new is known of it
            continue
        usual = one.usual_collected / one.usual_offered if one.usual_offered >= FEWEST_USUAL_HITS else None
        if on is not None:  # the bad time has become part of what is usual
            usual = on.level
        lately = one.collected / one.offered
        if usual is None or lately >= share * usual * (_BACK if on is not None else 1.0):
            continue
        why = because(Reason.COMPLETION_FELL, site=site, lately=lately, offered=one.offered, usual=usual)
        found.append(Alert("completion", site, why, usual))
    return found
