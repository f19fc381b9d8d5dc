"""Products page by page, and how far one has come at each site. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from tasks.domain.product_match import Verdict
from tasks.domain.states import State
from tasks.store.content.product_changes import SETTLED
from tasks.store.sql.tables import (
    page_products,
    pages,
    products,
    schedules,
    subtasks,
    targets,
    tasks,
    virtual_tasks,
)

_MOST_URLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductOnPage:
    """A product in a list.

    Attributes:
        keywords: its AND keywords.
        looked_for: False: at no site; it was removed, or came by an import.
    """

    id: int
    name: str
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    priority: int
    recrawl_every_s: float | None
    recrawl_cron: str | None
    next_crawl_at: datetime | None
    created_at: datetime
    looked_for: bool


def product_page(
    conn: Connection, *, after: int = 0, most: int, contains: str = "", only: int | None = None
) -> list[ProductOnPage]:
    """Products by number.

    Args:
        after: behind this one.
        contains: only names with this in them.
        only: only this one.
    """
    p = products.c
    statement = (
        select(products, schedules.c.every_s, schedules.c.cron, schedules.c.next_at)
        .outerjoin(schedules, schedules.c.product_id == p.id)
        .where(p.id > after)
        .order_by(p.id)
        .limit(most)
    )
    if contains:
        statement = statement.where(p.name.icontains(contains, autoescape=True))
    if only is not None:
        statement = statement.where(p.id == only)
    rows = conn.execute(statement).all()
    told = conn.execute(
        select(virtual_tasks.c.product_id, virtual_tasks.c.keywords)
        .where(virtual_tasks.c.product_id.in_([row.id for row in rows]))
        .order_by(virtual_tasks.c.round)
    )
    words = {product: tuple(keywords) for product, keywords in told}  # those of the last round stay
    return [
        ProductOnPage(
            id=row.id,
            name=row.name,
            keywords=words.get(row.id, ()),
            aliases=tuple(row.aliases),
            priority=row.priority,
            recrawl_every_s=row.every_s,
            recrawl_cron=row.cron,
            next_crawl_at=row.next_at,
            created_at=row.created_at,
            looked_for=row.sites != [],
        )
        for row in rows
    ]


def stored_of(conn: Connection, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """(pages, reviews) of these products that have any."""
    rows = conn.execute(
        select(
            page_products.c.product_id,
            func.count(),
            func.sum(case((page_products.c.verdict == Verdict.REVIEW, pages.c.reviews), else_=0)),
        )
        .join(pages, pages.c.id == page_products.c.page_id)
        .where(page_products.c.product_id.in_(ids), page_products.c.verdict != Verdict.REMOVED)
        .group_by(page_products.c.product_id)
    )
    return {product: (n, int(read or 0)) for product, n, read in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProgress:
    """A product at a site, over all its rounds.

    Attributes:
        states: subtasks by queue.
        found: hits that its last task found, as far as known.
    """

    site: str
    engine: str
    found: int | None
    provenance: str
    states: Mapping[str, int]

    @property
    def settled(self) -> int:
        """Subtasks for which nothing more happens by itself."""
        return sum(n for name, n in self.states.items() if State(name).settled)

    @property
    def open(self) -> int:
        """Subtasks that are cancelled where the product is removed."""
        return sum(n for name, n in self.states.items() if State(name) not in SETTLED)

    @property
    def subtasks(self) -> int:
        """Of all queues."""
        return sum(self.states.values())


def progress(conn: Connection, product_id: int) -> list[SiteProgress]:
    """How far a product is at each of its sites."""
    t = tasks.c
    last = {
        row.site: row
        for row in conn.execute(
            select(t.site, t.engine, t.found, t.found_provenance)
            .where(t.product_id == product_id)
            .order_by(t.id)
        )
    }
    rows = conn.execute(
        select(t.site, subtasks.c.state, func.count())
        .join(subtasks, subtasks.c.task_id == t.id)
        .where(t.product_id == product_id)
        .group_by(t.site, subtasks.c.state)
    )
    states: dict[str, dict[str, int]] = {}
    for site, state, n in rows:
        states.setdefault(site, {})[state] = n
    return [
        SiteProgress(
            site=site,
            engine=row.engine,
            found=row.found,
            provenance=row.found_provenance,
            states=states.get(site, {}),
        )
        for site, row in sorted(last.items())
    ]


@dataclass(frozen=True, slots=True)
class SearchUrl:
    """An address that a product is searched for at."""

    site: str
    url: str
    state: str


def search_urls(conn: Connection, product_id: int) -> list[SearchUrl]:
    """The newest search URLs of a product that became targets: at most 50, of as many of its newest tasks."""
    t = tasks.c
    of_product = select(t.id, t.site).where(t.product_id == product_id)
    last = of_product.order_by(t.id.desc()).limit(_MOST_URLS).subquery()
    rows = conn.execute(
        select(last.c.site, targets.c.url, targets.c.state)
        .join(targets, targets.c.task_id == last.c.id)
        .where(targets.c.kind == "result")
        .order_by(last.c.id.desc(), targets.c.id)
        .limit(_MOST_URLS)
    )
    return [SearchUrl(*row) for row in rows]
