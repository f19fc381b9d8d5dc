"""Reports for people: queues, totals, sites, pairs, and a subtask with its attempts, events and targets. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, func, select, union_all

from tasks.domain.pair_stats import SUMS, PairStats
from tasks.domain.states import State, Transition
from tasks.store.queries.review_counts import by_voice
from tasks.store.queue.stats import attempt_sums
from tasks.store.sql.database import count_by
from tasks.store.sql.tables import (
    attempts,
    events,
    pages,
    pair_stats,
    products,
    review_links,
    reviews,
    subtasks,
    targets,
    tasks,
)

_LAST_DECISIONS = 1000
"""Older decisions say nothing of what a permit is worth now."""


def open_left(conn: Connection) -> int:
    """Hits to do of all open subtasks: as of the end of their last attempts, and what running ones have reported."""
    waiting = int(conn.execute(_OPEN_LEFT).scalar_one() or 0)
    running = (max(row.left, row.offered) - row.collected for row in conn.execute(_RUNNING_LEFT))
    return waiting + sum(int(max(0, left)) for left in running)


_OPEN_LEFT = select(func.sum(subtasks.c.left)).where(
    subtasks.c.state.in_([str(state) for state in State if not state.settled and state != State.CRAWL])
)
_RUNNING_LEFT = (
    select(subtasks.c.left, attempts.c.offered, attempts.c.collected)
    .join(attempts, subtasks.c.attempt_id == attempts.c.id)
    .where(subtasks.c.state == State.CRAWL)
)


@dataclass(frozen=True, slots=True)
class WaitingSummary:
    """Delayed and waiting subtasks.

    Attributes:
        delayed: subtasks in WAIT that have to wait after a failure.
        next_at: when the first of these may go.
        oldest_at: since when the subtask that waits longest (PRIORITY, WAIT) has been in its queue.
    """

    delayed: int
    next_at: datetime | None
    oldest_at: datetime | None


def waiting_summary(conn: Connection, now: datetime) -> WaitingSummary:
    """Delayed and waiting subtasks, now."""
    delayed, next_at = conn.execute(_DELAYED, {"now": now}).one()
    return WaitingSummary(delayed, next_at, conn.execute(_OLDEST).scalar_one())


_DELAYED = select(func.count(), func.min(subtasks.c.not_before)).where(
    subtasks.c.state == State.WAIT, subtasks.c.not_before > bindparam("now")
)


def _oldest() -> Select[datetime]:
    """When the subtask that waits longest in PRIORITY or WAIT came to its queue.

    PRIORITY is long, and nothing returns to it: of each priority the first came first.
    """
    s = subtasks.c
    queued = s.state == State.PRIORITY
    highest = select(func.max(s.priority).label("priority")).where(queued).cte("priorities", recursive=True)
    lower = select(func.max(s.priority)).where(queued, s.priority < highest.c.priority).scalar_subquery()
    priorities = highest.union_all(select(lower).where(highest.c.priority.is_not(None)))
    first = select(func.min(s.id)).where(queued, s.priority == priorities.c.priority).scalar_subquery()
    firsts = select(first).select_from(priorities)
    since = union_all(
        select(s.changed_at).where(s.id.in_(firsts)), select(s.changed_at).where(s.state == State.WAIT)
    ).subquery()
    return select(func.min(since.c.changed_at))


_OLDEST = _oldest()


@dataclass(frozen=True, slots=True)
class Stored:
    """Pages and reviews stored since a mark: their numbers, and the mark to go on from."""

    pages: int = 0
    reviews: int = 0
    page_id: int = 0
    review_id: int = 0
    attempt_id: int = 0


def stored_since(conn: Connection, mark: Stored) -> Stored:
    """`mark` plus what was stored after it; cheap enough to show progress."""
    n_pages, page_id = conn.execute(_NEW_PAGES, {"after": mark.page_id}).one()
    n_reviews, review_id = conn.execute(_NEW_REVIEWS, {"after": mark.review_id}).one()
    return Stored(
        mark.pages + n_pages,
        mark.reviews + n_reviews,
        page_id or mark.page_id,
        review_id or mark.review_id,
        mark.attempt_id,
    )


_NEW_PAGES, _NEW_REVIEWS = (
    select(func.count(), func.max(table.c.id)).where(table.c.id > bindparam("after"))
    for table in (pages, reviews)
)


@dataclass(frozen=True, slots=True)
class PairRow:
    """Sums of the closed attempts of a (site, node).

    Attributes:
        wait_s: seconds waited for rate limits.
        requests: sent by these attempts, those for result pages and those that failed too; of a pair also those of
            attempts given back, which count as no attempt.
        rtt_ms: response time of the site (`tasks.scheduling.proximity.response_times`); None: not measured, or the
            row is of one product.
    """

    site: str
    node: str
    stats: PairStats
    wait_s: float
    requests: int
    rtt_ms: float | None = None

    @property
    def requests_per_page(self) -> float | None:
        """Requests a stored page; None without a page."""
        return self.requests / self.stats.collected if self.stats.collected else None


def pairs(conn: Connection) -> list[PairRow]:
    """Every (site, node) that has closed attempts, by site, then node."""
    of = pair_stats.c
    beside = (of.site, of.node, of.wait_s, of.requests, of.rtt_ms)
    rows = conn.execute(select(*beside, *(of[name] for name in SUMS)).order_by(of.site, of.node))
    return [
        PairRow(site, node, PairStats.of(sums), wait_s, requests, rtt_ms)
        for site, node, wait_s, requests, rtt_ms, *sums in rows
    ]


@dataclass(frozen=True, slots=True)
class ProductPairRow:
    """As `PairRow`, of one product."""

    product: str
    pair: PairRow


def pairs_by_product(conn: Connection, site: str | None, node: str | None) -> list[ProductPairRow]:
    """Every (product, site, node) that has closed attempts, summed from these, in this order.

    Args:
        site, node: only this one; None: all.
    """
    a, counted = attempts.c, attempt_sums()
    statement = (
        select(
            products.c.name,
            a.site,
            a.node,
            func.sum(a.wait_s),
            func.sum(a.requests),
            *(counted[name] for name in SUMS),
        )
        .join(products, products.c.id == a.product_id)
        .where(a.outcome.is_not(None))
        .having(counted["attempts"] > 0)
        .group_by(products.c.id, products.c.name, a.site, a.node)
        .order_by(products.c.id, a.site, a.node)
    )
    if site is not None:
        statement = statement.where(a.site == site)
    if node is not None:
        statement = statement.where(a.node == node)
    return [
        ProductPairRow(product, PairRow(one_site, one_node, PairStats.of(sums), wait_s, requests))
        for product, one_site, one_node, wait_s, requests, *sums in conn.execute(statement)
    ]


@dataclass(frozen=True, slots=True)
class LastPrices:
    """Shadow prices of the plans that the last decisions followed (`tasks.scheduling.decision.Prices`).

    Attributes:
        permit: by site.
        slot: by node.
    """

    permit: Mapping[str, float]
    slot: Mapping[str, float]


def last_prices(conn: Connection) -> LastPrices:
    """By the last decision about each site, and each node, among the last `_LAST_DECISIONS`."""
    e = events.c
    rows = conn.execute(
        select(subtasks.c.site, e.node, e.detail["prices"])
        .join(subtasks, subtasks.c.id == e.subtask_id)
        .where(e.transition == Transition.ALLOCATE)
        .order_by(e.id.desc())
        .limit(_LAST_DECISIONS)
    )
    permit: dict[str, float] = {}
    slot: dict[str, float] = {}
    for site, node, prices in rows:
        if prices is not None:
            permit.setdefault(site, prices["permit"])
            slot.setdefault(node, prices["slot"])
    return LastPrices(permit, slot)


@dataclass(frozen=True, slots=True)
class SiteRow:
    """The work done at a site so far.

    Attributes:
        manual: subtasks that wait for a person.
    """

    tasks: int = 0
    pages: int = 0
    reviews: int = 0
    manual: int = 0


def by_site(conn: Connection) -> dict[str, SiteRow]:
    """Tasks, pages and reviews of every site that has any."""
    made = count_by(conn, tasks.c.site)
    stored = {
        site: (n, int(read or 0))
        for site, n, read in conn.execute(
            select(pages.c.site, func.count(), func.sum(pages.c.reviews)).group_by(pages.c.site)
        )
    }
    manual = count_by(conn, subtasks.c.site, subtasks.c.state == State.MANUAL)
    return {
        site: SiteRow(made.get(site, 0), *stored.get(site, (0, 0)), manual.get(site, 0))
        for site in sorted({*made, *stored, *manual})
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of stored rows, and how far the targets are.

    Attributes:
        recalls: all; of subtasks whose event log was dropped, those of their last round.
        reposts: reviews whose text is nearly an earlier one's, among those looked at so far.
        voices: reviews by voice (`tasks.store.queries.review_counts.by_voice`).
    """

    products: int
    tasks: int
    pages: int
    reviews: int
    recalls: int
    targets: Mapping[str, int]
    reposts: int
    voices: Mapping[str, int]


def totals(conn: Connection) -> Totals:
    """Counts over the whole store."""

    def count(table: Any) -> int:
        return int(conn.execute(select(func.count()).select_from(table)).scalar_one())

    recalls = select(func.count()).select_from(events).where(events.c.transition == Transition.RECALL)
    without_log = select(func.sum(subtasks.c.recalls)).where(subtasks.c.log_dropped)
    return Totals(
        products=count(products),
        tasks=count(tasks),
        pages=count(pages),
        reviews=count(reviews),
        recalls=conn.execute(recalls).scalar_one() + int(conn.execute(without_log).scalar_one() or 0),
        targets=count_by(conn, targets.c.state, targets.c.kind == "hit"),
        reposts=count(review_links),
        voices=by_voice(conn),
    )


def subtask(conn: Connection, subtask_id: int) -> Mapping[str, Any] | None:
    """A subtask's row with its product's name and its task's found; None if there is none."""
    row = conn.execute(
        select(
            subtasks,
            products.c.name.label("product"),
            tasks.c.found,
            tasks.c.found_provenance,
            tasks.c.found_reported,
            tasks.c.engine,
        )
        .join(products, products.c.id == subtasks.c.product_id)
        .join(tasks, tasks.c.id == subtasks.c.task_id)
        .where(subtasks.c.id == subtask_id)
    ).one_or_none()
    return dict(row._mapping) if row is not None else None


def attempts_of(conn: Connection, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Every attempt of a subtask, in order."""
    return _rows(conn, attempts, subtask_id)


def events_of(conn: Connection, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """The event log of a subtask, in order."""
    return _rows(conn, events, subtask_id)


def targets_of(conn: Connection, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Every target of a subtask, in order."""
    return _rows(conn, targets, subtask_id, "id", "kind", "url", "state", "reason", "tries")


def _rows(conn: Connection, table: Table, subtask_id: int, *columns: str) -> Sequence[Mapping[str, Any]]:
    """Rows of a subtask in the order they were made, with these columns or all."""
    wanted = [table.c[name] for name in columns] or list(table.c)
    rows = conn.execute(select(*wanted).where(table.c.subtask_id == subtask_id).order_by(table.c.id))
    return [dict(row._mapping) for row in rows]
