"""The (site, node) statistics in the database: folded in the transaction that closes an attempt, read for decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from typing import Any

from tasks.domain.pair_stats import (
    HALF_LIFE_S,
    MEMORY,
    SUMS,
    AttemptOutcome,
    AttemptResult,
    PairStats,
    RoundTrip,
)
from tasks.domain.states import State
from tasks.store.sql.transaction import Transaction


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


def fold_many(tx: Transaction, folds: Sequence[Fold]) -> None:
    """Add closed attempts to their pairs' sums, plain and faded."""
    of: dict[tuple[str, str], list[Fold]] = {}
    for one in folds:
        of.setdefault((one.result.site, one.result.node), []).append(one)
    tx.insert("pair_stats", ("site", "node"), sorted(of), shared={"faded_at": tx.now}, skip_known=True)
    pairs = [f"{site} {node}" for site, node in of]
    rows: list[Any] = tx.records(_StoredPair, _LOCK_PAIRS, sites=list({site for site, _ in of}), pairs=pairs)
    tx.update("pair_stats", ("site", "node"), [_fold(row, tx.now, of[row.site, row.node]) for row in rows])


_FADED = tuple(f"f_{name}" for name in SUMS)
_StoredPair = make_dataclass(
    "_StoredPair",
    [
        *(("site", str), ("node", str), ("faded_at", datetime), ("wait_s", float), ("requests", int)),
        *(("rtt_ms", float | None), ("rtt_n", int)),
        *((name, float) for name in (*SUMS, *_FADED)),
    ],
    slots=True,
)
# A row of values is nothing that both databases look up; few rows have one site.
_LOCK_PAIRS = f"""
    SELECT site, node, faded_at, wait_s, requests, rtt_ms, rtt_n, {", ".join((*SUMS, *_FADED))} FROM pair_stats
    WHERE site IN :sites AND site || ' ' || node IN :pairs ORDER BY site, node FOR UPDATE
"""


def _fold(row: Any, now: datetime, folds: Sequence[Fold]) -> dict[str, Any]:
    """Return the pair's row with these attempts added."""
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
        if one.round_trip is not None:
            found = one.round_trip if found is None else found + one.round_trip
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


def list_changed(tx: Transaction, since: datetime | None) -> list[ChangedPair]:
    """Return the pairs that an attempt was folded into after `since`; `None`: all there are."""
    rows: list[Any] = (
        tx.records(_FadedPair, _ALL) if since is None else tx.records(_FadedPair, _CHANGED, since=since)
    )
    return [
        ChangedPair(
            site=row.site,
            node=row.node,
            faded=PairStats.of(getattr(row, name) for name in SUMS),
            faded_at=row.faded_at,
            tried=row.tried_in_all,
            wait_s=row.wait_s,
        )
        for row in rows
    ]


_FadedPair = make_dataclass(
    "_FadedPair",
    [
        *(("site", str), ("node", str), ("faded_at", datetime), ("tried_in_all", int), ("wait_s", float)),
        *((name, float) for name in SUMS),
    ],
    slots=True,
)
_ALL = f"""
    SELECT site, node, faded_at, tried AS tried_in_all, wait_s, {", ".join(f"f_{name} AS {name}" for name in SUMS)}
    FROM pair_stats
"""
_CHANGED = f"{_ALL} WHERE faded_at > :since"


def running(tx: Transaction) -> list[AttemptResult]:
    """Return reports of attempts that run: provisional, until their closing adds them to their pairs."""
    return tx.records(AttemptResult, _RUNNING)


_RUNNING = f"""
    SELECT a.site, a.node, a.offered, a.tried, a.collected, a.active_s, '{AttemptOutcome.RELEASED}' AS outcome
    FROM attempts a JOIN subtasks s ON s.attempt_id = a.id WHERE s.state = '{State.CRAWL}' AND a.tried > 0
"""


def round_trips(tx: Transaction) -> dict[tuple[str, str], float]:
    """Return milliseconds between a (site, node), for every pair that was measured."""
    return {
        (site, node): ms
        for site, node, ms in tx.rows("SELECT site, node, rtt_ms FROM pair_stats WHERE rtt_ms IS NOT NULL")
    }


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
"""The sums over closed attempts `a`, in the order of `SUMS`, in SQL: `AttemptResult.sums`."""
