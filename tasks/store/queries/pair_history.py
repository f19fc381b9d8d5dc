"""How the pairs (site, node) did lately, attempt by attempt, and the last decision about one. Reads only.

Every query is bounded: it looks at so many of the newest attempts, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, case, func, select

from tasks.domain.pair_stats import SUMS, PairStats
from tasks.domain.states import Transition
from tasks.store.sql.database import newest
from tasks.store.sql.tables import attempts, events, pages, pair_stats, products, subtasks

NEWEST_ATTEMPTS = 20_000
NEWEST_PAGES = 20_000
LOW_CONFIDENCE = 0.5
"""Of 187 saved pages, 6 of the 37 with a lower confidence were read wrongly, and 4 of the 150 others."""


@dataclass(slots=True)
class RecentAttempts:
    """The newest attempts of a (site, node), or of a site, summed up.

    Attributes:
        outcomes: attempts by outcome.
        reasons: attempts that failed, by reason.
    """

    requests: int = 0
    collected: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def requests_per_page(self) -> float | None:
        """Requests a stored page; None without a page."""
        return self.requests / self.collected if self.collected else None

    def add(self, requests: int, collected: int, outcome: str, reason: str | None, n: int) -> None:
        """Add closed attempts of one outcome and reason."""
        self.requests += requests
        self.collected += collected
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + n
        if reason is not None:
            self.reasons[reason] = self.reasons.get(reason, 0) + n


def recent_attempts(conn: Connection) -> dict[tuple[str, str], RecentAttempts]:
    """By (site, node), of the newest `NEWEST_ATTEMPTS` attempts those that are closed."""
    a = attempts.c
    n = newest(NEWEST_ATTEMPTS, a.id, a.site, a.node, a.outcome, a.reason, a.requests, a.collected).c
    rows = conn.execute(
        select(n.site, n.node, n.outcome, n.reason, func.count(), func.sum(n.requests), func.sum(n.collected))
        .where(n.outcome.is_not(None))
        .group_by(n.site, n.node, n.outcome, n.reason)
    )
    found: dict[tuple[str, str], RecentAttempts] = {}
    for site, node, outcome, reason, count, requests, collected in rows:
        found.setdefault((site, node), RecentAttempts()).add(
            int(requests), int(collected), outcome, reason, count
        )
    return found


def pair_sums(conn: Connection, site: str | None = None) -> dict[tuple[str, str], PairStats]:
    """The plain sums of every (site, node) with closed attempts.

    Args:
        site: only this one; None: all.
    """
    statement = select(pair_stats.c.site, pair_stats.c.node, *(pair_stats.c[name] for name in SUMS))
    if site is not None:
        statement = statement.where(pair_stats.c.site == site)
    rows = conn.execute(statement.order_by(pair_stats.c.site, pair_stats.c.node))
    return {(row_site, node): PairStats.of(sums) for row_site, node, *sums in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAttempt:
    """A closed attempt of a pair."""

    id: int
    subtask_id: int
    product: str
    no: int
    allocated_at: datetime
    ended_at: datetime
    outcome: str
    reason: str | None
    offered: int
    tried: int
    collected: int
    active_s: float
    wait_s: float
    lost_s: float
    requests: int
    quota: int
    budget_s: float
    errors: Mapping[str, int]


def attempts_of_pair(conn: Connection, site: str, node: str, most: int) -> list[PairAttempt]:
    """The newest closed attempts of a (site, node), the oldest of them first."""
    a = attempts.c
    names = [name for name in PairAttempt.__dataclass_fields__ if name != "product"]
    rows = conn.execute(
        select(*(a[name] for name in names), products.c.name.label("product"))
        .join(products, products.c.id == a.product_id)
        .where(a.site == site, a.node == node, a.outcome.is_not(None), a.ended_at.is_not(None))
        .order_by(a.id.desc())
        .limit(most)
    )
    return [PairAttempt(**row._mapping) for row in rows][::-1]


@dataclass(frozen=True, slots=True)
class Decision:
    """The last decision that gave a node work of a site.

    Attributes:
        detail: what it rests on, as the event log has it (`reviewloop explain`).
    """

    subtask_id: int
    at: datetime
    detail: Mapping[str, Any]


def last_decision(conn: Connection, site: str, node: str) -> Decision | None:
    """Why a node was given work of a site last; None where it never was."""
    a, e = attempts.c, events.c
    last = conn.execute(
        select(a.id, a.subtask_id).where(a.site == site, a.node == node).order_by(a.id.desc()).limit(1)
    ).one_or_none()
    if last is None:
        return None
    row = conn.execute(
        select(e.at, e.detail)
        .where(
            e.subtask_id == last.subtask_id,
            e.attempt_id == last.id,
            e.transition == Transition.ALLOCATE,
        )
        .order_by(e.id.desc())
        .limit(1)
    ).one_or_none()
    return Decision(last.subtask_id, row.at, row.detail) if row is not None and row.detail else None


def waiting_of_site(conn: Connection, site: str) -> Sequence[tuple[str, int]]:
    """Open subtasks of a site, by state."""
    rows = conn.execute(
        select(subtasks.c.state, func.count())
        .where(subtasks.c.site == site, subtasks.c.state.in_(("WAIT", "CRAWL", "SLEEP", "FAILED", "MANUAL")))
        .group_by(subtasks.c.state)
    )
    return [(state, n) for state, n in rows]


def confidence_of_site(conn: Connection, site: str) -> tuple[int, int]:
    """Return the number of a site's pages that have a confidence, and of those with a low one.

    Only the newest `NEWEST_PAGES` pages of all sites are counted.
    """
    p = newest(NEWEST_PAGES, pages.c.id, pages.c.site, pages.c.confidence).c
    low = func.count(case((p.confidence < LOW_CONFIDENCE, 1)))
    n, n_low = conn.execute(select(func.count(p.confidence), low).where(p.site == site)).one()
    return n, n_low
