"""Products that are there already, changed: no longer looked for, or looked for otherwise.

A product's row stays as long as pages and the event log refer to it. One that is removed is looked for at no site, as
one that came by an import (`tasks.store.content.products`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from splitter.errors import InputError
from splitter.normalize import name_key
from sqlalchemy import Row, delete, func, insert, select, update

from tasks.domain.product_match import Verdict
from tasks.domain.recurrence import Recurrence
from tasks.domain.states import State
from tasks.store.content.products import NewProduct
from tasks.store.content.review_removal import restore_links
from tasks.store.queue import closing, schedules
from tasks.store.sql.database import later_of
from tasks.store.sql.tables import page_products, products, reviews, subtasks, unplanned_sites, virtual_tasks
from tasks.store.sql.transaction import Transaction

SETTLED = (State.DONE, State.CANCELLED)
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ProductSummary:
    """The work and the reviews of a product.

    Attributes:
        open: its subtasks that are not settled.
        reviews: stored on its pages.
        looked_for: False: at no site.
    """

    id: int
    name: str
    open: int
    reviews: int
    looked_for: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEdit:
    """Changes to a product by a person; None: no change.

    Attributes:
        name: another one, which no other product has; all that belongs to the product stays.
        category: of `splitter.catalog.names.Category`.
        keywords: its AND keywords; empty: those found in its name.
        aliases: its other names, all of them.
        recrawl_every: zero: no more.
        pages: result pages of each site.
        sites: only these.
        all_sites: those of the catalog, whichever it has.
    """

    name: str | None = None
    category: str | None = None
    keywords: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    priority: int | None = None
    recrawl_every: timedelta | None = None
    pages: int | None = None
    sites: Sequence[str] | None = None
    all_sites: bool = False

    @property
    def begins_again(self) -> bool:
        """True if the product is crawled again from the beginning."""
        changed = (self.keywords, self.aliases, self.pages, self.sites, self.category)
        return self.all_sites or any(one is not None for one in changed)


def find(conn: Transaction, name: str) -> Row[Any]:
    """Return a product's row by its exact name, else by its `name_key`. Raises InputError, which lists some names."""
    p = products.c
    same = select(products).where(p.name_key == name_key(name))
    row = conn.execute(same.order_by(p.name != name, p.id).limit(1)).one_or_none()
    if row is None:
        some = conn.scalars(select(products.c.name).order_by(products.c.id).limit(_NAMES_SHOWN)).all()
        raise InputError(f"there is no product {name!r}; there is {', '.join(some) or 'none yet'}")
    return row


def summary(conn: Transaction, name: str) -> ProductSummary:
    """The work and the reviews of a product. Raises InputError where there is none of that name."""
    row = find(conn, name)
    on_pages = select(func.count()).select_from(
        reviews.join(page_products, page_products.c.page_id == reviews.c.page_id)
    )
    its = page_products.c.product_id == row.id, page_products.c.verdict == Verdict.REVIEW
    stored = conn.execute(on_pages.where(*its)).scalar_one()
    return ProductSummary(row.id, row.name, len(_open(conn, row.id)), stored, row.sites != [])


def remove(conn: Transaction, now: datetime, name: str) -> ProductSummary:
    """Look for a product at no site any more, and cancel its work; what was collected stays.

    Returns:
        Its work and reviews before that.

    Raises:
        InputError: there is none of that name.
    """
    was = summary(conn, name)
    _end_work(conn, now, was.id, "the product was removed")
    schedules.recrawl(conn, was.id, None, now)
    conn.execute(update(products).where(products.c.id == was.id).values(sites=[]))
    return was


def edit(
    conn: Transaction, now: datetime, name: str, change: ProductEdit, again: NewProduct | None = None
) -> int:
    """Change a product.

    Args:
        again: the product with its words after the change, if that begins again: its work under way is cancelled.

    Returns:
        The number of subtasks that were cancelled.

    Raises:
        InputError: there is none of that name, or another product has the new name.
    """
    row = find(conn, name)
    columns = ("name", "category", "priority", "pages")
    values: dict[str, Any] = {key: one for key in columns if (one := getattr(change, key)) is not None}
    cancelled = 0
    if change.name is not None:
        p, key = products.c, name_key(change.name)
        others = select(p.name).where(p.name_key == key, p.id != row.id)
        if (other := conn.scalar(others.limit(1))) is not None:
            raise InputError(f"there is a product {other!r} already; give another name")
        values["name_key"] = key
    if change.sites is not None or change.all_sites:
        values["sites"] = None if change.all_sites else list(change.sites or ())
        restore_links(conn, row.id)
    if change.priority is not None:
        conn.execute(update(subtasks).where(subtasks.c.product_id == row.id).values(priority=change.priority))
    if again is not None:
        cancelled = _end_work(conn, now, row.id, "the product was changed")
        created_at = max(now, row.created_at)
        values |= {"keywords": list(again.own_keywords), "aliases": list(again.aliases)}
        conn.execute(
            insert(virtual_tasks).values(
                product_id=row.id,
                keywords=list(again.keywords),
                aliases=[list(words) for words in again.alias_keywords],
                round=_rounds(conn, row.id, func.max(virtual_tasks.c.round)) + 1,
                created_at=created_at,
                planned_at=created_at if values.get("sites", row.sites) == [] else None,
            )
        )
        schedules.begun_anew(conn, now, row.id)
    if (every := change.recrawl_every) is not None:
        of_last = func.max(virtual_tasks.c.created_at, type_=virtual_tasks.c.created_at.type)
        last = _rounds(conn, row.id, of_last)
        schedules.recrawl(conn, row.id, Recurrence(every=every) if every else None, last + every)
    if values:
        conn.execute(update(products).where(products.c.id == row.id).values(**values))
    return cancelled


def _rounds(conn: Transaction, product_id: int, what: Any) -> Any:
    return conn.execute(select(what).where(virtual_tasks.c.product_id == product_id)).scalar_one()


def _open(conn: Transaction, product_id: int) -> Sequence[int]:
    """The subtasks of a product that are not settled."""
    of_product = select(subtasks.c.id).where(subtasks.c.product_id == product_id)
    return conn.scalars(of_product.where(subtasks.c.state.not_in(SETTLED)).order_by(subtasks.c.id)).all()


def _end_work(conn: Transaction, now: datetime, product_id: int, why: str) -> int:
    """Cancel a product's subtasks, and make no more tasks of what is wanted of it; returns how many were cancelled."""
    found = _open(conn, product_id)
    for subtask_id in found:
        closing.cancel(conn, now, subtask_id, why)
    of_product = virtual_tasks.c.product_id == product_id
    waiting = select(virtual_tasks.c.id).where(of_product)
    conn.execute(delete(unplanned_sites).where(unplanned_sites.c.virtual_task_id.in_(waiting)))
    unplanned = update(virtual_tasks).where(of_product, virtual_tasks.c.planned_at.is_(None))
    conn.execute(unplanned.values(planned_at=later_of(virtual_tasks.c.created_at, now)))
    return len(found)
