"""Products page by page, and how far one has come at each site. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
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
class ProductRow:
    """A product as listed, with the number of pages and reviews it has.

    Attributes:
        keywords: its AND keywords, of its last round.
        category: of `splitter.catalog.names.Category`; None: unknown.
        recrawl_every_s, recrawl_cron: when it is crawled again: by an interval or by a cron expression.
        looked_for: False: at no site; it was removed, or came by an import.
    """

    id: int
    name: str
    category: str | None
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    priority: int
    recrawl_every_s: float | None
    recrawl_cron: str | None
    next_crawl_at: datetime | None
    created_at: datetime
    pages: int
    reviews: int
    looked_for: bool


def product_rows(
    conn: Connection, *, after: int = 0, most: int | None = None, contains: str = "", only: int | None = None
) -> list[ProductRow]:
    """Return products by number, at most `most`.

    Args:
        after: behind this one.
        contains: only names with this in them.
        only: only this one.
    """
    p, linked, wanted = products.c, page_products.c, virtual_tasks.c
    chosen = select(p.id).where(p.id > after).order_by(p.id).limit(most)
    if contains:
        chosen = chosen.where(p.name.icontains(contains, autoescape=True))
    if only is not None:
        chosen = chosen.where(p.id == only)
    read = func.sum(case((linked.verdict == Verdict.REVIEW, pages.c.reviews), else_=0))
    stored = (
        select(linked.product_id, func.count().label("pages"), read.label("reviews"))
        .join(pages, pages.c.id == linked.page_id)
        .where(linked.product_id.in_(chosen), linked.verdict != Verdict.REMOVED)
        .group_by(linked.product_id)
        .subquery()
    )
    of_product = select(wanted.keywords).where(wanted.product_id == p.id).correlate(products)
    words = of_product.order_by(wanted.round.desc()).limit(1).scalar_subquery().label("words")
    rows = conn.execute(
        select(
            *(products, words, stored.c.pages.label("n"), stored.c.reviews),
            *(schedules.c.every_s, schedules.c.cron, schedules.c.next_at),
        )
        .outerjoin(stored, stored.c.product_id == p.id)
        .outerjoin(schedules, schedules.c.product_id == p.id)
        .where(p.id.in_(chosen))
        .order_by(p.id)
    )
    return [
        ProductRow(
            id=row.id,
            name=row.name,
            category=row.category,
            keywords=tuple(row.words),
            aliases=tuple(row.aliases),
            priority=row.priority,
            recrawl_every_s=row.every_s,
            recrawl_cron=row.cron,
            next_crawl_at=row.next_at,
            created_at=row.created_at,
            pages=row.n or 0,
            reviews=int(row.reviews or 0),
            looked_for=row.sites != [],
        )
        for row in rows
    ]


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
