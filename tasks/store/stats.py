"""The (site, node) statistics in the database: folded in the transaction that closes an attempt, read for decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, tuple_, update

from tasks.control import AttemptResult, fade, fold
from tasks.model import PairStats
from tasks.store.database import insert_new
from tasks.store.tables import pair_stats
from tasks.store.together import later

HALF_LIFE_S = 1800.0
"""Age at which an attempt counts half in decisions: sites change within the hour (2014 product paper, figure 4)."""

_FADED = ("attempts", "failed", "silent", "offered", "tried", "collected", "active_s", "lost_s")


@dataclass(frozen=True, slots=True)
class Fold:
    """A closed attempt, to be added to its pair; `wait_s`: seconds it waited for rate limits."""

    result: AttemptResult
    wait_s: float


def fold_many(conn: Connection, now: datetime, folds: Sequence[Fold]) -> None:
    """Add closed attempts to their pairs' sums, plain and faded."""
    pairs = sorted({(f.result.site, f.result.node) for f in folds})
    later(
        conn,
        insert_new(conn.dialect, pair_stats),
        [{"site": site, "node": node, "faded_at": now} for site, node in pairs],
    )
    rows = conn.execute(
        select(pair_stats)
        .where(tuple_(pair_stats.c.site, pair_stats.c.node).in_(pairs))
        .order_by(pair_stats.c.site, pair_stats.c.node)
        .with_for_update()
    )
    later(
        conn,
        _FOLD,
        [
            _folded(row, now, [f for f in folds if (f.result.site, f.result.node) == (row.site, row.node)])
            for row in rows
        ],
    )


def _folded(row: Row[Any], now: datetime, folds: Sequence[Fold]) -> dict[str, Any]:
    """The pair's row with these attempts added."""
    faded = PairStats(row.site, row.node, *(getattr(row, f"f_{name}") for name in _FADED))
    plain = PairStats(row.site, row.node, *(getattr(row, name) for name in _FADED))
    faded = fade(faded, max(0.0, (now - row.faded_at).total_seconds()), HALF_LIFE_S)
    for one in folds:
        faded = fold(faded, one.result)
        plain = fold(plain, one.result)
    values: dict[str, Any] = {"of_site": row.site, "of_node": row.node}
    for name in _FADED:
        total = getattr(plain, name)
        values[f"new_{name}"] = total if name.endswith("_s") else round(total)
        values[f"new_f_{name}"] = getattr(faded, name)
    values["new_wait_s"] = row.wait_s + sum(one.wait_s for one in folds)
    values["new_faded_at"] = max(now, row.faded_at)
    return values


_CHANGED = (*_FADED, *(f"f_{name}" for name in _FADED), "wait_s", "faded_at")
_FOLD = (
    update(pair_stats)
    .where(pair_stats.c.site == bindparam("of_site"), pair_stats.c.node == bindparam("of_node"))
    .values({name: bindparam(f"new_{name}", type_=pair_stats.c[name].type) for name in _CHANGED})
)


def load(conn: Connection, now: datetime) -> dict[tuple[str, str], PairStats]:
    """Every pair's statistics, faded to `now`."""
    loaded = {}
    for row in conn.execute(select(pair_stats)):
        stats = PairStats(row.site, row.node, *(getattr(row, f"f_{name}") for name in _FADED))
        age_s = max(0.0, (now - row.faded_at).total_seconds())
        loaded[row.site, row.node] = fade(stats, age_s, HALF_LIFE_S)
    return loaded
