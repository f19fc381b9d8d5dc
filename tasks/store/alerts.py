"""Alerts: the facts that their rules look at, which of them are on, and what people were told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from tasks.domain.states import State
from tasks.scheduling.alerting import (
    GONE,
    LATELY,
    Alert,
    AlertFacts,
    AlertRules,
    Completion,
    OpenAlert,
    Refusal,
)
from tasks.store.database import columns_of, count_by
from tasks.store.pair_history import NEWEST_ATTEMPTS
from tasks.store.tables import alerts, attempts, host_rests, nodes, pages, pair_stats, subtasks

QUIET = timedelta(minutes=15)
"""An alert that is over is not told again within this time: one that comes and goes would send without end."""

CLAIMED = timedelta(minutes=2)
"""How long whoever sends a message may take; after that it counts as not sent, and another try begins."""

_WORK = (State.PRIORITY, State.WAIT, State.CRAWL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """An alert that is on, or was lately.

    Attributes:
        since: when it came on last.
        firing: it is on.
        told: people were told that it is on, and not yet that it is over.
        told_at: when they were told something last.
        claimed_at: since when somebody is sending it; None: nobody.
        trouble: who could not be told last, and why.
    """

    rule: str
    subject: str
    text: str
    level: float | None
    since: datetime
    firing: bool
    told: bool
    told_at: datetime | None
    claimed_at: datetime | None
    trouble: str


def listed(conn: Connection) -> list[AlertRow]:
    """Every alert, the oldest first."""
    rows = conn.execute(select(*columns_of(AlertRow, alerts)).order_by(alerts.c.since, *alerts.primary_key))
    return [AlertRow(**row._mapping) for row in rows]


def open_alerts(rows: Sequence[AlertRow]) -> dict[tuple[str, str], OpenAlert]:
    """Those that are on, by their keys."""
    found = [OpenAlert(Alert(r.rule, r.subject, r.text, r.level), r.since) for r in rows if r.firing]
    return {one.alert.key: one for one in found}


def keep(conn: Connection, now: datetime, on: Sequence[Alert]) -> None:
    """Note which alerts are on now; all others are over."""
    known = {(row.rule, row.subject): row for row in listed(conn)}
    for one in on:
        row = known.pop(one.key, None)
        values = {"text": one.text, "level": one.level}
        if row is None:
            new = {"rule": one.rule, "subject": one.subject, "since": now, "firing": True}
            conn.execute(insert(alerts).values(**new, **values))
        elif not row.firing:
            conn.execute(update(alerts).where(_is(*one.key)).values(**values, since=now, firing=True))
        elif row.text != one.text:
            conn.execute(update(alerts).where(_is(*one.key)).values(**values))
    for key, row in known.items():
        if row.firing:
            conn.execute(update(alerts).where(_is(*key)).values(firing=False))
    conn.execute(
        delete(alerts).where(
            ~alerts.c.firing,
            ~alerts.c.told,
            or_(alerts.c.told_at.is_(None), alerts.c.told_at < now - QUIET),
            or_(alerts.c.claimed_at.is_(None), alerts.c.claimed_at < now - CLAIMED),
        )
    )


def claim(conn: Connection, now: datetime) -> list[AlertRow]:
    """Take what people are to be told now, so that no other process tells it."""
    a = alerts.c
    due = and_(
        a.firing != a.told,
        or_(a.claimed_at.is_(None), a.claimed_at < now - CLAIMED),
        or_(a.told, a.told_at.is_(None), a.told_at <= now - QUIET),
    )
    rows = [
        AlertRow(**row._mapping) for row in conn.execute(select(*columns_of(AlertRow, alerts)).where(due))
    ]
    for row in rows:
        conn.execute(update(alerts).where(_is(row.rule, row.subject)).values(claimed_at=now))
    return sorted(rows, key=lambda row: (not row.firing, row.since, row.rule, row.subject))


def sent(conn: Connection, now: datetime, rows: Sequence[AlertRow], *, told: bool, trouble: str) -> None:
    """Note what became of a message.

    Args:
        rows: those claimed for it.
        told: False: nobody could be told; it is tried again when the claim is old.
        trouble: who could not be told, and why.
    """
    done = {"told_at": now, "claimed_at": None} if told else {}
    for row in rows:
        values = {**done, **({"told": row.firing} if told else {}), "trouble": trouble}
        conn.execute(update(alerts).where(_is(row.rule, row.subject)).values(**values))


def _is(rule: str, subject: str) -> ColumnElement[bool]:
    return and_(alerts.c.rule == rule, alerts.c.subject == subject)


def facts(
    conn: Connection,
    now: datetime,
    rules: AlertRules,
    looking_since: datetime,
    engines: Mapping[str, str],
) -> AlertFacts:
    """Facts that the rules look at; every query is bounded, or answered from an index.

    Args:
        engines: their names, by host.
    """
    newest = conn.execute(select(func.max(pages.c.id))).scalar_one()
    last = select(pages.c.fetched_at).where(pages.c.id == newest)
    alive = select(nodes.c.name, nodes.c.seen_at).where(~nodes.c.drained, nodes.c.seen_at.is_not(None))
    return AlertFacts(
        looking_since=looking_since,
        nodes={row.name: row.seen_at for row in conn.execute(alive)},
        manual=count_by(conn, subtasks.c.state, subtasks.c.state == State.MANUAL).get(State.MANUAL, 0),
        collected_at=conn.execute(last).scalar_one() if newest is not None else None,
        work_waits=rules.idle is not None and _work_waits(conn, now, timedelta(minutes=rules.idle)),
        completion=_completion(conn, now) if rules.completion is not None else {},
        refusals=_refusals(conn, now, engines) if rules.refusing is not None else (),
    )


def _work_waits(conn: Connection, now: datetime, longest: timedelta) -> bool:
    """Whether a subtask is that old and may be tried now, or soon: between two tries it waits for a moment."""
    s = subtasks.c
    soon = or_(s.not_before.is_(None), s.not_before <= now + longest)
    old = select(s.id).where(s.state.in_(_WORK), s.created_at <= now - longest, soon).limit(1)
    return conn.execute(old).first() is not None


def _completion(conn: Connection, now: datetime) -> dict[str, Completion]:
    a, p = attempts.c, pair_stats.c
    newest = conn.execute(select(func.max(a.id))).scalar_one() or 0
    lately = conn.execute(
        select(a.site, func.sum(a.offered), func.sum(a.collected))
        .where(
            a.id > newest - NEWEST_ATTEMPTS,
            a.ended_at > now - LATELY,
            a.outcome.in_(("succeeded", "failed", "silent")),
        )
        .group_by(a.site)
    ).all()
    in_all = {
        site: (offered, collected)
        for site, offered, collected in conn.execute(
            select(p.site, func.sum(p.offered), func.sum(p.collected))
            .where(p.site.in_([row[0] for row in lately]))
            .group_by(p.site)
        )
    }
    found = {}
    for site, offered, collected in lately:
        all_offered, all_collected = in_all.get(site, (0, 0))
        before = int(all_offered) - int(offered), int(all_collected) - int(collected)
        found[site] = Completion(int(offered), int(collected), *(max(0, n) for n in before))
    return found


def _refusals(conn: Connection, now: datetime, engines: Mapping[str, str]) -> list[Refusal]:
    """Engines whose breakers are not closed; one whose rest was over a day ago is no news."""
    h = host_rests.c
    rows = conn.execute(
        select(h.host, h.node, h.cause, h.times).where(h.host.in_(engines), h.until > now - GONE)
    )
    of: dict[str, list[tuple[str, str, int]]] = {}
    for host, node, cause, times in rows:
        of.setdefault(engines[host], []).append((node, cause, times))
    return [
        Refusal(
            engine, {cause for _, cause, _ in found}, [node for node, *_ in found], max(n for *_, n in found)
        )
        for engine, found in sorted(of.items())
    ]
