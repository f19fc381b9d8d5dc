"""The keys of all stored pages, in batches: what the cluster's shared set is made from (`tasks.worker.redis_seen`)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select

from tasks.store.database import Store
from tasks.store.tables import pages

_BATCH = 500
"""Keys the shared set takes in a few milliseconds, in which it answers nobody else."""


def page_count(store: Store) -> int:
    """How many pages are stored, about: the highest number, which costs no counting."""
    with store.read() as conn:
        return conn.scalar(select(func.max(pages.c.id))) or 0


def page_keys(store: Store, batch: int = _BATCH) -> Iterator[list[bytes]]:
    """The keys of all pages that are stored when it begins, and perhaps of some that come meanwhile.

    Each batch is a short transaction of its own, so that going through millions is in nobody's way.
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
