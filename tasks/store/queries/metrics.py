"""Totals of the pairs, and what the newest attempts came to, for metrics. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from tasks.store.queries import pair_history
from tasks.store.queries.pair_history import NEWEST_ATTEMPTS
from tasks.store.sql.database import columns_of
from tasks.store.sql.tables import attempts, pair_stats


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTotals:
    """Plain sums of a (site, node) over its closed attempts."""

    site: str
    node: str
    attempts: float
    failed: float
    silent: float
    offered: float
    collected: float
    active_s: float
    wait_s: float
    rtt_ms: float | None


def pair_totals(conn: Connection) -> list[PairTotals]:
    """Of every pair that has any."""
    rows = conn.execute(
        select(*columns_of(PairTotals, pair_stats)).order_by(pair_stats.c.site, pair_stats.c.node)
    )
    return [PairTotals(**row._mapping) for row in rows]


@dataclass(frozen=True, slots=True)
class RecentTraffic:
    """Sums over the attempts that ended in the last seconds."""

    attempts: int
    requests: int
    bytes: int


def recent_traffic(conn: Connection, now: datetime, seconds: float) -> RecentTraffic:
    """Among the newest `NEWEST_ATTEMPTS` attempts."""
    a = attempts.c
    newest = conn.execute(select(func.max(a.id))).scalar_one() or 0
    sums = select(func.count(), func.sum(a.requests), func.sum(a.bytes)).where(
        a.id > newest - NEWEST_ATTEMPTS, a.ended_at > now - timedelta(seconds=seconds)
    )
    n, requests, size = conn.execute(sums).one()
    return RecentTraffic(n, int(requests or 0), int(size or 0))


def failures(conn: Connection) -> dict[tuple[str, str], int]:
    """Among the newest `NEWEST_ATTEMPTS` attempts, those that failed, by site and reason."""
    found: dict[tuple[str, str], int] = {}
    for (site, _), one in pair_history.recent_attempts(conn).items():
        for reason, n in one.reasons.items():
            found[site, reason] = found.get((site, reason), 0) + n
    return found
