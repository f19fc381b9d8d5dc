"""Products, virtual tasks and tasks: what is wanted, and where it will be looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, insert, select, update

from tasks.domain.product_match import Verdict
from tasks.store.chunks import release_chunks
from tasks.store.database import insert_new
from tasks.store.partitions import NewPartition, insert_partitions
from tasks.store.tables import page_products, pages, products, tasks, virtual_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProduct:
    """A product to add.

    Attributes:
        keywords: its AND keywords (the splitter's, or what a person set).
        own_keywords: what a person set; empty where the splitter decided.
        aliases: alternative names; `alias_keywords` are theirs.
        pages: result pages a site; None = the site's own.
        recrawl_every: None = once.
    """

    name: str
    keywords: tuple[str, ...]
    own_keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    alias_keywords: tuple[tuple[str, ...], ...] = ()
    priority: int = 0
    pages: int | None = None
    recrawl_every: timedelta | None = None


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be made: one virtual task on one site.

    Attributes:
        partitions: one for each of its keyword sets.
    """

    site: str
    engine: str
    kind: str
    partitions: tuple[NewPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTask:
    """A product plus its AND keywords: what is wanted, not where.

    Attributes:
        own_keywords: a person chose the keywords.
    """

    id: int
    product_id: int
    product: str
    keywords: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    pages: int | None
    priority: int
    own_keywords: bool = False


def add(conn: Connection, now: datetime, product: NewProduct) -> bool:
    """Add a product and its first virtual task; False if a product of that name is there already."""
    row = (
        insert_new(conn.dialect, products)
        .values(
            name=product.name,
            keywords=list(product.own_keywords),
            aliases=list(product.aliases),
            priority=product.priority,
            pages=product.pages,
            recrawl_every_s=product.recrawl_every.total_seconds() if product.recrawl_every else None,
            next_crawl_at=now + product.recrawl_every if product.recrawl_every else None,
            created_at=now,
        )
        .returning(products.c.id)
    )
    product_id = conn.execute(row).scalar_one_or_none()
    if product_id is None:
        return False
    conn.execute(
        insert(virtual_tasks).values(
            product_id=product_id,
            keywords=list(product.keywords),
            aliases=[list(words) for words in product.alias_keywords],
            created_at=now,
        )
    )
    return True


def any_there(conn: Connection) -> bool:
    """Whether there is any product."""
    return conn.execute(select(products.c.id).limit(1)).one_or_none() is not None


def unplanned(conn: Connection, limit: int) -> list[VirtualTask]:
    """Virtual tasks whose tasks are still to be made: higher priority first, then first in, first out."""
    rows = conn.execute(
        select(
            virtual_tasks.c.id,
            virtual_tasks.c.product_id,
            products.c.name,
            virtual_tasks.c.keywords,
            virtual_tasks.c.aliases,
            products.c.pages,
            products.c.priority,
            products.c.keywords.label("own"),
        )
        .join(products, products.c.id == virtual_tasks.c.product_id)
        .where(virtual_tasks.c.planned_at.is_(None))
        .order_by(products.c.priority.desc(), virtual_tasks.c.id)
        .limit(limit)
    )
    return [
        VirtualTask(
            id=r.id,
            product_id=r.product_id,
            product=r.name,
            keywords=tuple(r.keywords),
            aliases=tuple(tuple(words) for words in r.aliases),
            pages=r.pages,
            priority=r.priority,
            own_keywords=bool(r.own),
        )
        for r in rows
    ]


def plan(conn: Connection, now: datetime, virtual_task: VirtualTask, planned: Sequence[NewTask]) -> int:
    """Make the tasks of a virtual task, once, and the first subtask of each partition; returns how many tasks."""
    claimed = conn.execute(
        update(virtual_tasks)
        .where(virtual_tasks.c.id == virtual_task.id, virtual_tasks.c.planned_at.is_(None))
        .values(planned_at=now)
    )
    if claimed.rowcount != 1 or not planned:
        return 0
    rows = [
        {
            "virtual_task_id": virtual_task.id,
            "product_id": virtual_task.product_id,
            "site": task.site,
            "engine": task.engine,
            "kind": task.kind,
            "created_at": now,
        }
        for task in planned
    ]
    task_ids = conn.scalars(insert(tasks).returning(tasks.c.id, sort_by_parameter_order=True), rows)
    partitions = [(task_id, task.partitions) for task_id, task in zip(task_ids, planned, strict=True)]
    release_chunks(conn, now, insert_partitions(conn, partitions))
    return len(planned)


def recrawl_due(conn: Connection, now: datetime) -> int:
    """Begin a new round (a virtual task) of every product whose time has come; returns how many."""
    due = conn.execute(
        select(products.c.id, products.c.recrawl_every_s).where(products.c.next_crawl_at <= now)
    ).all()
    for product_id, every_s in due:
        last = conn.execute(
            select(virtual_tasks)
            .where(virtual_tasks.c.product_id == product_id)
            .order_by(virtual_tasks.c.round.desc())
            .limit(1)
        ).one()
        conn.execute(
            insert(virtual_tasks).values(
                product_id=product_id,
                keywords=last.keywords,
                aliases=last.aliases,
                round=last.round + 1,
                created_at=now,
            )
        )
        conn.execute(
            update(products)
            .where(products.c.id == product_id)
            .values(next_crawl_at=now + timedelta(seconds=every_s))
        )
    return len(due)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRow:
    """A product as listed."""

    id: int
    name: str
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    priority: int
    recrawl_every_s: float | None
    pages: int
    reviews: int


def listed(conn: Connection) -> list[ProductRow]:
    """Every product with the number of pages and reviews it has."""
    latest = (
        select(virtual_tasks.c.product_id, func.max(virtual_tasks.c.round).label("round"))
        .group_by(virtual_tasks.c.product_id)
        .subquery()
    )
    stored = (
        select(
            page_products.c.product_id,
            func.count().label("pages"),
            func.sum(case((page_products.c.verdict == Verdict.REVIEW, pages.c.reviews), else_=0)).label(
                "reviews"
            ),
        )
        .join(pages, pages.c.id == page_products.c.page_id)
        .group_by(page_products.c.product_id)
        .subquery()
    )
    rows = conn.execute(
        select(products, virtual_tasks.c.keywords.label("words"), stored.c.pages.label("n"), stored.c.reviews)
        .join(latest, latest.c.product_id == products.c.id)
        .join(
            virtual_tasks,
            (virtual_tasks.c.product_id == products.c.id) & (virtual_tasks.c.round == latest.c.round),
        )
        .outerjoin(stored, stored.c.product_id == products.c.id)
        .order_by(products.c.priority.desc(), products.c.id)
    )
    return [
        ProductRow(
            id=r.id,
            name=r.name,
            keywords=tuple(r.words),
            aliases=tuple(r.aliases),
            priority=r.priority,
            recrawl_every_s=r.recrawl_every_s,
            pages=r.n or 0,
            reviews=int(r.reviews or 0),
        )
        for r in rows
    ]


@dataclass(frozen=True, slots=True)
class RecrawlRow:
    """A product that is looked at again and again."""

    product: str
    every_s: float
    next_at: datetime


def recrawls(conn: Connection) -> list[RecrawlRow]:
    """Products with a recrawl schedule, the next one first."""
    rows = conn.execute(
        select(products.c.name, products.c.recrawl_every_s, products.c.next_crawl_at)
        .where(products.c.next_crawl_at.is_not(None))
        .order_by(products.c.next_crawl_at, products.c.id)
    )
    return [RecrawlRow(*tuple(row)) for row in rows]
