"""Numbers of reviews by voice, site and day. Reads `review_days`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.queries.reviews import HAS_WORD, LOOKED_AT, ReviewFilter
from tasks.store.queries.themes import Period, day_of_number
from tasks.store.sql.transaction import Transaction, as_pattern


@dataclass(slots=True)
class ReviewCounts:
    """Numbers of reviews, each counted for every product it is about; of equal texts, one for each product.

    Attributes:
        by_voice: by voice or `NOT_JUDGED`.
        by_day: by voice or `NOT_JUDGED`, and day, of those with a readable date.
        undated: number of the others.
    """

    by_site: Counter[str] = field(default_factory=Counter)
    by_voice: Counter[str] = field(default_factory=Counter)
    by_day: Counter[tuple[str, date]] = field(default_factory=Counter)
    undated: int = 0

    @property
    def total(self) -> int:
        """Number of all."""
        return self.by_voice.total()


class _Counted(NamedTuple):
    day: int
    site: str
    voice: str
    n: int


def count_reviews(tx: Transaction, wanted: ReviewFilter) -> ReviewCounts:
    """Count the reviews of a filter on product, site, voice, days, words and corrections; hidden ones don't count.

    With words, only those among the newest 50,000 reviews, which a search looks at.
    """
    period = Period(wanted.day_from, wanted.day_to)
    values: dict[str, Any] = {"first": period.first, "last": period.last}
    asked = ["d.day >= :first", "d.day <= :last"]
    for name in ("product", "sites", "voices"):
        if given := getattr(wanted, name):
            values[name] = given
            asked.append(_COUNTED_BY[name])
    if wanted.words:
        values["looked_at"] = LOOKED_AT
        asked.append("d.review_id > (SELECT max(id) FROM reviews) - :looked_at")
    for n, word in enumerate(wanted.words):
        values[f"word_{n}"] = as_pattern(word)
        asked.append(HAS_WORD.format(n))
    if wanted.corrected:
        asked.append("r.correction_id IS NOT NULL")
    texts = "JOIN reviews r ON r.id = d.review_id" if wanted.words or wanted.corrected else ""
    counts = ReviewCounts()
    for day, site, voice, n in tx.records(_Counted, _write_count(texts, asked), **values):
        counts.by_site[site] += n
        counts.by_voice[voice or NOT_JUDGED] += n
        written = day_of_number(day)
        if written is None:
            counts.undated += n
        else:
            counts.by_day[voice or NOT_JUDGED, written] += n
    return counts


_COUNTED_BY = {
    "product": "d.product_id = :product",
    "sites": "d.site IN :sites",
    "voices": "d.voice IN :voices",
}


def _write_count(texts: str, asked: Sequence[str]) -> str:
    """Return the statement. Without `products`, SQLite would read the days of all years."""
    return f"""
        SELECT d.day, d.site, d.voice, count(*) AS n
        FROM products p JOIN review_days d ON d.product_id = p.id {texts}
        WHERE {" AND ".join(asked)} GROUP BY d.day, d.site, d.voice
    """
