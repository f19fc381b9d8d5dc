"""How many reviews there are by product, site and day, for reports. Reads only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, tzinfo

from sqlalchemy import select

from tasks.domain.product_match import Verdict
from tasks.domain.voices import Voice
from tasks.store.content.reviews import ReviewFilter
from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.sql.tables import page_products, pages, products, reviews
from tasks.store.sql.transaction import Transaction

_AT_ONCE = 5_000


@dataclass(slots=True)
class ReviewCounts:
    """Reviews, each counted for every product it is about.

    Attributes:
        by_voice: as of `queues.by_voice`.
        by_day: of those with a readable date.
        complaints: of these, buyers' complaints.
    """

    by_product: Counter[str] = field(default_factory=Counter)
    by_site: Counter[str] = field(default_factory=Counter)
    by_voice: Counter[str] = field(default_factory=Counter)
    by_day: Counter[tuple[str, date]] = field(default_factory=Counter)
    complaints: Counter[tuple[str, date]] = field(default_factory=Counter)


def counted(conn: Transaction, wanted: ReviewFilter, zone: tzinfo) -> ReviewCounts:
    """Count the reviews of a filter; days are (site, day).

    Args:
        zone: of the days.
    """
    rows = conn.execute(
        select(products.c.name, reviews.c.site, reviews.c.voice, reviews.c.published_at)
        .select_from(reviews)
        .join(pages, pages.c.id == reviews.c.page_id)
        .join(page_products, page_products.c.page_id == pages.c.id)
        .join(products, products.c.id == page_products.c.product_id)
        .where(page_products.c.verdict == Verdict.REVIEW, *wanted.conditions()),
        execution_options={"yield_per": _AT_ONCE},
    )
    counts = ReviewCounts()
    for product, site, voice, written in rows:
        counts.by_product[product] += 1
        counts.by_site[site] += 1
        counts.by_voice[voice or NOT_JUDGED] += 1
        if written is not None:
            day = site, written.astimezone(zone).date()
            counts.by_day[day] += 1
            if voice == Voice.COMPLAINT:
                counts.complaints[day] += 1
    return counts
