"""Products with their names. `tasks.store.queue.tasks` holds their virtual tasks and tasks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from splitter.normalize import name_key
from sqlalchemy import Row, Text, cast, insert, or_, select, update

from tasks.domain.recurrence import Recurrence
from tasks.store.content.review_removal import restore_links
from tasks.store.queue import schedules
from tasks.store.sql.bulk import rows_with
from tasks.store.sql.database import insert_new
from tasks.store.sql.tables import products, virtual_tasks
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProduct:
    """A product to add.

    Attributes:
        keywords: its AND keywords (the splitter's, or what a person set).
        own_keywords: what a person set; empty where the splitter decided.
        aliases: alternative names; `alias_keywords` are theirs.
        pages: result pages a site; None = the site's own.
        recrawl_every: None = once.
        category: of `splitter.catalog.names.Category`; None = unknown.
        sites: only these; None = all of its category; empty = none: it came by an import, and is not crawled.
        line: of the file that it came from; it is not stored.
    """

    name: str
    keywords: tuple[str, ...]
    own_keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    alias_keywords: tuple[tuple[str, ...], ...] = ()
    priority: int = 0
    pages: int | None = None
    recrawl_every: timedelta | None = None
    category: str | None = None
    sites: tuple[str, ...] | None = None
    line: int | None = None


def add(conn: Transaction, now: datetime, product: NewProduct) -> bool:
    """Add a product and its first virtual task; False if a product of that name is there already.

    A product that came by an import is added by its name a second time: from then on it is crawled.
    """
    nowhere = product.sites == ()
    named = {"name": product.name, "name_key": name_key(product.name)}
    row = insert_new(conn.dialect, products).values(**named, created_at=now, **_given(product))
    product_id = conn.execute(row.returning(products.c.id)).scalar_one_or_none()
    round_, created_at = 1, now
    if product_id is None:
        if nowhere or (product_id := _imported(conn, product.name)) is None:
            return False
        conn.execute(update(products).where(products.c.id == product_id).values(**_given(product)))
        restore_links(conn, product_id)
        last = _last_round(conn, product_id)
        round_, created_at = last.round + 1, max(now, last.created_at)
    conn.execute(
        insert(virtual_tasks).values(
            product_id=product_id,
            keywords=list(product.keywords),
            aliases=[list(words) for words in product.alias_keywords],
            round=round_,
            created_at=created_at,
            planned_at=created_at if nowhere else None,  # no task is made of it
        )
    )
    if (every := product.recrawl_every) is not None:
        schedules.recrawl(conn, product_id, Recurrence(every=every), now + every)
    return True


def _given(product: NewProduct) -> dict[str, Any]:
    """The columns that a person decides on."""
    return {
        "keywords": list(product.own_keywords),
        "aliases": list(product.aliases),
        "sites": None if product.sites is None else list(product.sites),
        "priority": product.priority,
        "pages": product.pages,
        "category": product.category,
    }


def _imported(conn: Transaction, name: str) -> int | None:
    """The product of that name, where it only came by an import."""
    row = conn.execute(select(products.c.id, products.c.sites).where(products.c.name == name)).one()
    return int(row.id) if row.sites == [] else None


def name_keys_to_crawl(conn: Transaction) -> set[str]:
    """Return the `splitter.normalize.name_key` of all products but those that only came by an import of reviews."""
    rows = conn.execute(select(products.c.name_key, products.c.sites))
    return {key for key, sites in rows if sites != []}


def names_by_key(conn: Transaction) -> dict[str, str]:
    """Return the names of all products by `splitter.normalize.name_key`."""
    rows = conn.execute(select(products.c.name_key, products.c.name))
    return {row.name_key: row.name for row in rows}


def keeps_out(conn: Transaction, product: NewProduct) -> bool:
    """Whether a product of that name is looked for, but not at all the sites that are wanted now."""
    kept = conn.execute(select(products.c.sites).where(products.c.name == product.name)).scalar_one_or_none()
    return bool(kept and (product.sites is None or not set(product.sites) <= set(kept)))


def _last_round(conn: Transaction, product_id: int) -> Row[Any]:
    """A product's last virtual task."""
    of_product = select(virtual_tasks).where(virtual_tasks.c.product_id == product_id)
    return conn.execute(of_product.order_by(virtual_tasks.c.round.desc()).limit(1)).one()


@dataclass(frozen=True, slots=True)
class KnownName:
    """A product by its names: its own and its aliases, and the keyword sets of each."""

    name: str
    aliases: tuple[str, ...]
    keyword_sets: tuple[tuple[str, ...], ...]


def known_names(conn: Transaction) -> list[KnownName]:
    """The names of every product, in the order they were added; the keywords of its last round."""
    rows = conn.execute(
        select(
            products.c.id,
            products.c.name,
            products.c.aliases,
            virtual_tasks.c.keywords,
            virtual_tasks.c.aliases,
        )
        .join(virtual_tasks, virtual_tasks.c.product_id == products.c.id)
        .order_by(products.c.id, virtual_tasks.c.round)
    )
    last = {
        product_id: KnownName(name, tuple(aliases), tuple(tuple(words) for words in (keywords, *sets)))
        for product_id, name, aliases, keywords, sets in rows
    }
    return list(last.values())


def ids(conn: Transaction, names: Collection[str]) -> dict[str, int]:
    """The numbers of products, by name."""
    return dict(rows_with(conn, products, "name, id", "name", names))


def any_to_crawl(conn: Transaction) -> bool:
    """Whether there is any product but those that only came by an import."""
    wanted = or_(products.c.sites.is_(None), cast(products.c.sites, Text) != "[]")
    return conn.execute(select(products.c.id).where(wanted).limit(1)).one_or_none() is not None
