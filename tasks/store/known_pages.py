"""Stored pages: those of some keys, or the keys of all (for `tasks.worker.redis_seen`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, func, select

from tasks.domain.product_match import Verdict
from tasks.store.database import Store, columns_of
from tasks.store.prepared import Prepared
from tasks.store.tables import page_products, pages

_BATCH = 500
"""Keys that Redis adds to the shared set in a few milliseconds; it answers no other client meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownPage:
    """A page that is stored.

    Attributes:
        checked_at: when it was asked for last.
        etag, last_modified: as answered then.
        reviews, withheld: how many reviews of it are stored, and how many are kept back.
        linked_to: the products it is linked to, of those asked about.
    """

    id: int
    title: str
    content_hash: str
    checked_at: datetime
    etag: str | None
    last_modified: str | None
    reviews: int
    withheld: int
    linked_to: frozenset[int]

    def time_of(self, now: datetime) -> datetime:
        """Return the time at which a transaction of `now` changes this page: never before its last request."""
        return max(now, self.checked_at)


def known_pages(
    conn: Connection, keys: Collection[bytes], product_ids: Collection[int] = ()
) -> dict[bytes, KnownPage]:
    """Those of these pages that are stored, by key.

    Args:
        product_ids: the products of which it is wanted whether the pages are linked to them.
    """
    if not keys:
        return {}
    rows = _WITH_LINKS.rows(conn, {"keys": list(keys), "products": list(product_ids)})
    known: dict[bytes, KnownPage] = {}
    for row in rows:
        columns = row._asdict()
        key, product_id = bytes(columns.pop("url_key")), columns.pop("product_id")
        linked = frozenset([product_id] if product_id is not None else [])
        known[key] = KnownPage(**columns, linked_to=linked | known[key].linked_to if key in known else linked)
    return known


ASKED = func.coalesce(pages.c.checked_at, pages.c.fetched_at, type_=pages.c.fetched_at.type)
"""When a page was requested for the last time."""
_KNOWN = (
    pages.c.url_key,
    *(column for column in columns_of(KnownPage, pages) if column.name != "checked_at"),
    ASKED.label("checked_at"),
)
_LINK = and_(
    page_products.c.page_id == pages.c.id,
    page_products.c.product_id.in_(bindparam("products", expanding=True)),
    page_products.c.verdict != Verdict.REMOVED.value,
)
_WITH_LINKS = Prepared(
    select(*_KNOWN, page_products.c.product_id)
    .select_from(pages.outerjoin(page_products, _LINK))
    .where(pages.c.url_key.in_(bindparam("keys", expanding=True)))
)


def page_count(store: Store) -> int:
    """How many pages are stored, about: the highest number, which costs no counting."""
    with store.read() as conn:
        return conn.scalar(select(func.max(pages.c.id))) or 0


def page_keys(store: Store, batch: int = _BATCH) -> Iterator[list[bytes]]:
    """The keys of all pages that are stored when it begins, and perhaps of some that come meanwhile.

    Each batch is read in a short transaction of its own, so that millions of keys keep no transaction open for long.
    """
    after = 0
    while True:
        with store.read() as conn:
            rows = conn.execute(
                select(pages.c.id, pages.c.url_key)
                .where(pages.c.id > after)
                .order_by(pages.c.id)
                .limit(batch)
            ).all()
        if not rows:
            return
        yield [bytes(row.url_key) for row in rows]
        after = rows[-1].id
