"""The (site, node) statistics in the database: folded in the transaction that closes an attempt, read for decisions."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select, update

from tasks.control import AttemptResult, fade, fold
from tasks.model import PairStats
from tasks.store.database import insert_new
from tasks.store.tables import pair_stats

HALF_LIFE_S = 1800.0
"""Age at which an attempt counts half in decisions: sites change within the hour (2014 product paper, figure 4)."""

_FADED = ("attempts", "failed", "silent", "offered", "tried", "collected", "active_s", "lost_s")


def fold_attempt(conn: Connection, now: datetime, result: AttemptResult, *, wait_s: float) -> None:
    """Add a closed attempt to its pair's sums, plain and faded."""
    conn.execute(
        insert_new(conn.dialect, pair_stats).values(site=result.site, node=result.node, faded_at=now)
    )
    where = (pair_stats.c.site == result.site, pair_stats.c.node == result.node)
    row = conn.execute(select(pair_stats).where(*where).with_for_update()).one()
    faded = PairStats(result.site, result.node, *(getattr(row, f"f_{name}") for name in _FADED))
    age_s = max(0.0, (now - row.faded_at).total_seconds())
    faded = fold(fade(faded, age_s, HALF_LIFE_S), result)
    plain = fold(PairStats(result.site, result.node, *(getattr(row, name) for name in _FADED)), result)
    values = {f"f_{name}": getattr(faded, name) for name in _FADED}
    for name in _FADED:
        total = getattr(plain, name)
        values[name] = total if name.endswith("_s") else round(total)
    values["wait_s"] = row.wait_s + wait_s
    conn.execute(update(pair_stats).where(*where).values(faded_at=max(now, row.faded_at), **values))


def load(conn: Connection, now: datetime) -> dict[tuple[str, str], PairStats]:
    """Every pair's statistics, faded to `now`."""
    loaded = {}
    for row in conn.execute(select(pair_stats)):
        stats = PairStats(row.site, row.node, *(getattr(row, f"f_{name}") for name in _FADED))
        age_s = max(0.0, (now - row.faded_at).total_seconds())
        loaded[row.site, row.node] = fade(stats, age_s, HALF_LIFE_S)
    return loaded
