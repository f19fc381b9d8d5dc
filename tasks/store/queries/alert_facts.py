"""The facts that the rules of alerts look at. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from tasks.domain.states import State
from tasks.scheduling.alerting import GONE, LATELY, AlertFacts, AlertRules, Completion, Refusal
from tasks.store.queries.pairs import NEWEST_ATTEMPTS, newest_attempt
from tasks.store.queue.hosts import Breaker, list_rests
from tasks.store.sql.transaction import Transaction


class _AliveNode(NamedTuple):
    name: str
    seen_at: datetime


def facts(
    tx: Transaction, rules: AlertRules, looking_since: datetime, engines: Mapping[str, str]
) -> AlertFacts:
    """Return the facts that the rules look at; every query is bounded, or answered from an index.

    Args:
        engines: their names, by host.
    """
    return AlertFacts(
        looking_since=looking_since,
        nodes={one.name: one.seen_at for one in tx.records(_AliveNode, _ALIVE)},
        manual=tx.value(f"SELECT count(*) FROM subtasks WHERE state = '{State.MANUAL}'"),
        collected_at=tx.time("SELECT fetched_at FROM pages ORDER BY id DESC LIMIT 1"),
        work_waits=rules.idle is not None and _work_waits(tx, timedelta(minutes=rules.idle)),
        completion=_completion(tx) if rules.completion is not None else {},
        refusals=_refusals(tx, engines) if rules.refusing is not None else (),
    )


_ALIVE = "SELECT name, seen_at FROM nodes WHERE NOT drained AND seen_at IS NOT NULL"


def _work_waits(tx: Transaction, longest: timedelta) -> bool:
    """Return True if a subtask is that old and may be tried now, or soon: between two tries it waits for a moment."""
    return tx.value(_OLD_WORK, before=tx.now - longest, soon=tx.now + longest) is not None


_OLD_WORK = f"""
    SELECT id FROM subtasks
    WHERE state IN ('{State.PRIORITY}', '{State.WAIT}', '{State.CRAWL}') AND created_at <= :before
        AND (not_before IS NULL OR not_before <= :soon)
    LIMIT 1
"""


def _completion(tx: Transaction) -> dict[str, Completion]:
    """Return hits offered and collected at each site, lately and before."""
    found = {}
    after = newest_attempt(tx) - NEWEST_ATTEMPTS
    for site, offered, collected, all_offered, all_collected in tx.rows(
        _COMPLETION, after=after, since=tx.now - LATELY
    ):
        before = max(0, all_offered - offered), max(0, all_collected - collected)
        found[site] = Completion(offered, collected, *before)
    return found


_COMPLETION = """
    SELECT lately.site, lately.offered, lately.collected,
        coalesce(sum(p.offered), 0), coalesce(sum(p.collected), 0)
    FROM (
        SELECT site, sum(offered) AS offered, sum(collected) AS collected FROM attempts
        WHERE id > :after AND ended_at > :since AND outcome IN ('succeeded', 'failed', 'silent') GROUP BY site
    ) lately LEFT JOIN pair_stats p ON p.site = lately.site
    GROUP BY lately.site, lately.offered, lately.collected
"""


def _refusals(tx: Transaction, engines: Mapping[str, str]) -> list[Refusal]:
    """Return the engines whose breakers are not closed; one whose rest was over a day ago is no news."""
    of: dict[str, list[Breaker]] = {}
    for rest in list_rests(tx):
        if rest.host in engines and rest.until > tx.now - GONE:
            of.setdefault(engines[rest.host], []).append(rest)
    return [
        Refusal(
            engine, {one.cause for one in rests}, [one.node for one in rests], max(one.times for one in rests)
        )
        for engine, rests in sorted(of.items())
    ]
