"""Pages that are stored already: result pages that list them link them, and a node's memory knows their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import func, select

from tasks.store.content import near_links
from tasks.store.queue import result_pages
from tasks.store.queue.result_pages import ResultPageToStore, StoredHits
from tasks.store.sql.database import Store
from tasks.store.sql.tables import pages
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation

_BATCH = 500
"""Keys that Redis adds to the shared set in a few milliseconds; it answers no other client meanwhile."""


def save_result_pages(
    conn: Transaction, now: datetime, items: Sequence[ResultPageToStore]
) -> list[StoredHits | None]:
    """Store result pages (`queue.result_pages.save_result_pages`) and link the known pages that they list."""
    stored, to_link = result_pages.save_result_pages(conn, items)
    near_links.link_known(conn, now, to_link)
    return stored


STORE_RESULT_PAGES: BatchOperation[ResultPageToStore, StoredHits | None] = BatchOperation(
    2, save_result_pages
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
