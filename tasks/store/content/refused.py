"""Records of pages that are not among the reviews, kept word for word for a while: what was refused can be taken in.

A record is here because it is no review (`tasks.reading.relevance`), or because its page is about no product that it
was found for (`wrong_product`). A page has those of the last time it was read; `tasks.store.queue.upkeep` drops old
ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete, select

from tasks.domain.pages import Review
from tasks.domain.product_match import Verdict
from tasks.store.sql.prepared import defer
from tasks.store.sql.tables import refused_reviews
from tasks.store.sql.transaction import Transaction

MOST_OF_PAGE = 200
"""Records of a page that are kept."""

Refused = tuple[str, Review]
"""A reason, and the record."""

_TEXTS = ("key", "title", "body", "author", "date_text")
_COLUMNS = ("page_id", "reason", *_TEXTS, "published_at", "rating", "variant")


def of_another_product(reviews: Sequence[Review]) -> list[Refused]:
    """Reviews of a page that is about no product it was found for."""
    return [(Verdict.WRONG_PRODUCT.value, one) for one in reviews]


def save(
    conn: Transaction, now: datetime, of: Mapping[int, Sequence[Refused]], *, again: bool = False
) -> None:
    """Keep refused records, by page; `again`: in place of those that are there."""
    if again and of:
        defer(conn, delete(refused_reviews).where(refused_reviews.c.page_id.in_(list(of))))
    rows = [
        (page_id, reason, *one[:5], one.date, one.rating, one.variant)
        for page_id, records in of.items()
        for reason, one in records[:MOST_OF_PAGE]
    ]
    conn.insert("refused_reviews", _COLUMNS, rows, shared={"refused_at": now})


def of_pages(conn: Transaction, page_ids: Collection[int]) -> dict[int, list[Refused]]:
    """Refused records by page, in the order they were read."""
    r = refused_reviews.c
    columns = [r[name] for name in _TEXTS] + [r.published_at, r.rating, r.variant]
    found: dict[int, list[Refused]] = {}
    asked = select(r.page_id, r.reason, *columns).where(r.page_id.in_(page_ids)).order_by(r.id)
    for page_id, reason, *record in conn.execute(asked):
        found.setdefault(page_id, []).append((reason, Review(*record)))
    return found
