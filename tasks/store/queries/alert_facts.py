"""The facts that the rules of alerts look at. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, or_, select

from tasks.domain.states import State
from tasks.scheduling.alerting import GONE, LATELY, AlertFacts, AlertRules, Completion, Refusal
from tasks.store.queries.pair_history import NEWEST_ATTEMPTS
from tasks.store.sql.database import count_by
from tasks.store.sql.tables import attempts, host_rests, nodes, pages, pair_stats, subtasks

_WORK = (State.PRIORITY, State.WAIT, State.CRAWL)


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
