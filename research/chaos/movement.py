"""Signs that the loop moves, that there is anything it could do, and what is stored, to be compared with a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import exists, func, or_, select

from tasks.domain.states import State
from tasks.store.sql.tables import (
    events,
    page_products,
    pages,
    products,
    reviews,
    subtasks,
    task_parts,
    tasks,
    virtual_tasks,
)
from tasks.store.sql.transaction import Transaction

_ALWAYS_GO_ON = (State.PRIORITY, State.SLEEP, State.FAILED)


def movement(tx: Transaction) -> tuple[Any, ...]:
    """Return the numbers of the newest page and transition: one of them grows whenever the loop gets on."""
    return tuple(tx.engine_connection.execute(_NEWEST).one())


_NEWEST = select(
    select(func.max(pages.c.id)).scalar_subquery(), select(func.max(events.c.id)).scalar_subquery()
)


def can_go_on(tx: Transaction, without: Collection[str] = ()) -> bool:
    """Whether there is work that needs none of these nodes and waits for no time to come.

    Args:
        without: nodes that are out of order; what is leased to them must run out first.
    """
    s = subtasks.c
    waits = exists().where(s.state == State.WAIT, or_(s.not_before.is_(None), s.not_before <= tx.now))
    runs = exists().where(s.state == State.CRAWL, s.lease_node.not_in(without))
    moves = exists().where(s.state.in_(_ALWAYS_GO_ON))
    unplanned = exists().where(virtual_tasks.c.planned_at.is_(None))
    return bool(tx.engine_connection.execute(select(or_(waits, runs, moves, unplanned))).scalar_one())


@dataclass(frozen=True, slots=True)
class Contents:
    """The stored rows, by names that another store of the same world has too.

    Attributes:
        pages: (URL, hash of its content).
        links: (product, URL of a page, what the page is to the product).
        reviews: (URL of the page, key on it, body).
        partitions: (product, site, keywords, first chunk, pages read, hits listed): what was counted.
    """

    pages: Counter[tuple[str, ...]]
    links: Counter[tuple[str, ...]]
    reviews: Counter[tuple[str, ...]]
    partitions: Counter[tuple[str, ...]]


def contents(tx: Transaction) -> Contents:
    """All pages and reviews; held in memory."""
    return Contents(
        *(Counter(tuple(map(str, row)) for row in tx.engine_connection.execute(of)) for of in _CONTENTS)
    )


_CONTENTS = (
    select(pages.c.url, pages.c.content_hash),
    select(products.c.name, pages.c.url, page_products.c.verdict)
    .join_from(page_products, pages, pages.c.id == page_products.c.page_id)
    .join(products, products.c.id == page_products.c.product_id),
    select(pages.c.url, reviews.c.key, reviews.c.body)
    .join_from(reviews, pages, pages.c.id == reviews.c.page_id)
    .where(reviews.c.refused.is_(None)),
    select(
        products.c.name,
        tasks.c.site,
        task_parts.c.keywords,
        task_parts.c.first_chunk,
        task_parts.c.pages_read,
        task_parts.c.listed,
    )
    .join_from(task_parts, tasks, tasks.c.id == task_parts.c.task_id)
    .join(products, products.c.id == tasks.c.product_id),
)
