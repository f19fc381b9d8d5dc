"""Which pages are stored: those of some keys, or the keys of all (for `tasks.worker.redis_seen`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from tasks.store.database import Store
from tasks.store.tables import pages

KnownPage = Row[*tuple[Any, ...]]
"""A page that is stored: its number, key, hash, validators, and how many reviews it has or withholds."""

_BATCH = 500
"""Keys that Redis adds to the shared set in a few milliseconds; it answers nobody else meanwhile."""


def known_pages(conn: Connection, keys: Collection[bytes]) -> Sequence[KnownPage]:
    """Those of these pages that are stored, as far as storing them again needs."""
    if not keys:
        return ()
    return conn.execute(
        select(
            pages.c.url_key,
            pages.c.id,
            pages.c.content_hash,
            func.coalesce(pages.c.checked_at, pages.c.fetched_at, type_=pages.c.fetched_at.type).label(
                "checked_at"
            ),
            pages.c.etag,
            pages.c.last_modified,
            pages.c.reviews,
            pages.c.withheld,
        ).where(pages.c.url_key.in_(keys))
    ).all()


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
