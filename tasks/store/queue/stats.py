"""The (site, node) statistics in the database: folded in the transaction that closes an attempt, read for decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select, tuple_

from tasks.domain.pair_stats import HALF_LIFE_S, MEMORY, SUMS, AttemptOutcome, AttemptResult, PairStats
from tasks.domain.states import State
from tasks.scheduling.proximity.response_times import RoundTrip, moved
from tasks.store.sql.prepared import Prepared, new_rows
from tasks.store.sql.tables import attempts, pair_stats, subtasks
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from tasks.scheduling.statistics import Knowledge


@dataclass(frozen=True, slots=True)
class Fold:
    """A closed attempt, to be added to its pair.

    Attributes:
        wait_s: seconds it waited for rate limits.
        requests: it sent.
        round_trip: how far the site was; None: not measured.
    """

    result: AttemptResult
    wait_s: float
    requests: int
    round_trip: RoundTrip | None = None


def fold_many(conn: Transaction, now: datetime, folds: Sequence[Fold]) -> None:
    """Add closed attempts to their pairs' sums, plain and faded."""
    of: dict[tuple[str, str], list[Fold]] = {}
    for one in folds:
        of.setdefault((one.result.site, one.result.node), []).append(one)
    pairs = sorted(of)
    new = [{"site": site, "node": node, "faded_at": now} for site, node in pairs]
    new_rows(conn, pair_stats, ("site", "node", "faded_at")).defer(conn, new)
    rows = _pairs(conn, pairs)
    folded = [_folded(row, now, of[row.site, row.node]) for row in rows]
    conn.update("pair_stats", ("site", "node"), folded)


def _pairs(conn: Transaction, pairs: Sequence[tuple[str, str]]) -> Sequence[Any]:
    """The rows of these pairs, locked."""
    if conn.dialect.name == "sqlite":
        return _PAIR.rows_of_each(conn, [{"of_site": site, "of_node": node} for site, node in pairs])
    return conn.execute(_PAIRS, {"pairs": pairs}).all()


_PAIR = Prepared(
    select(pair_stats).where(
        pair_stats.c.site == bindparam("of_site"), pair_stats.c.node == bindparam("of_node")
    )
)
_PAIRS = (
    select(pair_stats)
    .where(tuple_(pair_stats.c.site, pair_stats.c.node).in_(bindparam("pairs", expanding=True)))
    .order_by(pair_stats.c.site, pair_stats.c.node)
    .with_for_update()
)


def _folded(row: Any, now: datetime, folds: Sequence[Fold]) -> dict[str, Any]:
    """The pair's row with these attempts added."""
    plain = PairStats.of(getattr(row, name) for name in SUMS)
    faded = PairStats.of(getattr(row, f"f_{name}") for name in SUMS)
    faded = faded.faded((now - row.faded_at).total_seconds(), HALF_LIFE_S)
    for one in folds:
        faded = faded.with_attempt(one.result, MEMORY)
        plain = plain.with_attempt(one.result)
    values: dict[str, Any] = {"site": row.site, "node": row.node}
    for name in SUMS:
        total = getattr(plain, name)
        values[name] = total if name.endswith("_s") else round(total)
        values[f"f_{name}"] = getattr(faded, name)
    values["wait_s"] = row.wait_s + sum(one.wait_s for one in folds)
    values["requests"] = row.requests + sum(one.requests for one in folds)
    values["faded_at"] = max(now, row.faded_at)
    found = RoundTrip(row.rtt_ms, row.rtt_n) if row.rtt_ms is not None else None
    for one in folds:
        found = moved(found, one.round_trip) if one.round_trip is not None else found
    values["rtt_ms"], values["rtt_n"] = (found.ms, found.n) if found is not None else (None, 0)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """A pair as it is stored.

    Attributes:
        faded: for decisions; as of `faded_at`.
        tried, wait_s: plain sums: hits requested, and seconds waited for rate limits.
    """

    site: str
    node: str
    faded: PairStats
    faded_at: datetime
    tried: int
    wait_s: float


def changed(conn: Transaction, since: datetime | None) -> list[ChangedPair]:
    """Pairs an attempt was folded into after `since`; None: all there are."""
    rows = _ALL.rows(conn) if since is None else _CHANGED.rows(conn, {"since": since})
    return [
        ChangedPair(
            site=row.site,
            node=row.node,
            faded=PairStats.of(getattr(row, f"f_{name}") for name in SUMS),
            faded_at=row.faded_at,
            tried=row.tried,
            wait_s=row.wait_s,
        )
        for row in rows
    ]


_CHANGING = (
    pair_stats.c.site,
    pair_stats.c.node,
    *(pair_stats.c[f"f_{name}"] for name in SUMS),
    pair_stats.c.faded_at,
    pair_stats.c.tried,
    pair_stats.c.wait_s,
)
_ALL = Prepared(select(*_CHANGING))
_CHANGED = Prepared(select(*_CHANGING).where(pair_stats.c.faded_at > bindparam("since")))


def running(conn: Transaction) -> list[AttemptResult]:
    """Reports of attempts that run: provisional, until their closing adds them to their pairs."""
    return [AttemptResult(**row._asdict(), outcome=AttemptOutcome.RELEASED) for row in _RUNNING.rows(conn)]


_RUNNING = Prepared(
    select(*(attempts.c[name] for name in ("site", "node", "offered", "tried", "collected", "active_s")))
    .join(subtasks, subtasks.c.attempt_id == attempts.c.id)
    .where(subtasks.c.state == State.CRAWL, attempts.c.tried > 0)
)


def knowledge(conn: Transaction, now: datetime) -> Knowledge:
    """The statistics of every pair as a decision would have them now, with what runs."""
    from tasks.scheduling.statistics import (
        Knowledge,  # brings numpy, which commands that only list do without
    )

    known = Knowledge()
    for row in changed(conn, None):
        age_s = (now - row.faded_at).total_seconds()
        known.put(row.site, row.node, row.faded.faded(age_s, HALF_LIFE_S), now.timestamp())
    known.set_running(running(conn))
    return known


def round_trips(conn: Transaction) -> dict[tuple[str, str], float]:
    """Milliseconds between a (site, node), of every pair that was measured."""
    rows = conn.execute(
        select(pair_stats.c.site, pair_stats.c.node, pair_stats.c.rtt_ms).where(
            pair_stats.c.rtt_ms.is_not(None)
        )
    )
    return {(site, node): ms for site, node, ms in rows}


_GIVEN_BACK = "a.outcome IN ('released', 'cancelled')"
_REACHED = "CASE WHEN a.tried > a.collected THEN a.tried ELSE a.collected END"
ATTEMPT_COUNTS = f"(NOT {_GIVEN_BACK} OR a.tried > 0 OR a.collected > 0)"
"""Whether a closed attempt `a` counts, in SQL: `AttemptResult.counts`."""
ATTEMPT_SUMS = f"""
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN 1 ELSE 0 END) AS attempts,
    sum(CASE WHEN a.outcome = 'failed' THEN 1 ELSE 0 END) AS failed,
    sum(CASE WHEN a.outcome = 'silent' THEN 1 ELSE 0 END) AS silent,
    sum(CASE WHEN NOT {ATTEMPT_COUNTS} THEN 0 WHEN {_GIVEN_BACK} AND {_REACHED} < a.offered THEN {_REACHED}
        ELSE a.offered END) AS offered,
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN a.tried ELSE 0 END) AS tried,
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN a.collected ELSE 0 END) AS collected,
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN a.active_s ELSE 0.0 END) AS active_s,
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN a.lost_s ELSE 0.0 END) AS lost_s
"""
"""What closed attempts `a` add up to, in the order of `SUMS`, in SQL: `AttemptResult.sums`."""
