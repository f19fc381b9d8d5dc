"""Numbers of reviews by voice, site and day, and the reviews that they count. Reads `review_days`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from tasks.domain.verdicts import Verdict
from tasks.store.content.counted_reviews import LEFT_OUT, NO_DAY
from tasks.store.queries import reviews
from tasks.store.queries.products import get_counted_as
from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.queries.reviews import HAS_WORD, LOOKED_AT, ReviewFilter
from tasks.store.queries.themes import PRODUCT_BY_PRODUCT, Period, day_of_number
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
    """Count the reviews of a filter on product, theme, site, voice, days, words and corrections, and on what counts.

    With words and neither product nor theme, only those among the newest 50,000 reviews, which a search looks at.
    """
    asked, values = _write_asked(tx, wanted)
    statement = f"SELECT d.day, d.site, d.voice, count(*) AS n {asked} GROUP BY d.day, d.site, d.voice"
    counts = ReviewCounts()
    for day, site, voice, n in tx.records(_Counted, statement, **values):
        counts.by_site[site] += n
        counts.by_voice[voice or NOT_JUDGED] += n
        written = day_of_number(day)
        if written is None:
            counts.undated += n
        else:
            counts.by_day[voice or NOT_JUDGED, written] += n
    return counts


def search_reviews(
    tx: Transaction, wanted: ReviewFilter, *, before: int | None = None, most: int
) -> reviews.Search:
    """Return the newest reviews that are wanted, at most `most`, before a number.

    Of one product or theme, these are the reviews that `count_reviews` counts; others are searched as `reviews.search`
    says.

    Args:
        before: only reviews with lower numbers; `None`: from the newest on.
    """
    if not _is_narrow(wanted):
        return reviews.search(tx, wanted, before=before, most=most)
    asked, values = _write_asked(tx, wanted)
    end = int(tx.value("SELECT coalesce(max(id), 0) FROM reviews")) + 1
    top = end if before is None else min(before, end)
    statement = (
        f"SELECT DISTINCT d.review_id {asked} AND d.review_id < :top ORDER BY d.review_id DESC LIMIT :more"
    )
    numbers = [number for (number,) in tx.rows(statement, top=top, more=most + 1, **values)]
    rows = reviews.get_rows(tx, numbers[:most], wanted.product)
    last = numbers[most - 1] if len(numbers) > most else None
    return reviews.Search(rows, last, top - (last or 1))


def _is_narrow(wanted: ReviewFilter) -> bool:
    """Return True if a filter asks for one product or theme: then no search goes through the numbers of reviews."""
    return wanted.product is not None or bool(wanted.theme)


_ASKED = {
    "product": "p.id = (SELECT coalesce(counted_as, id) FROM products WHERE id = :product)",
    "sites": "d.site IN :sites",
    "voices": "d.voice IN :voices",
}
# `+` lets SQLite find the day of a theme, in place of all days of the period.
_DAYS = (PRODUCT_BY_PRODUCT, ("d.product_id = p.id", "d.day >= :first", "d.day <= :last"))
_DAYS_OF_THEME = (
    "products p CROSS JOIN review_themes t CROSS JOIN review_days d",
    (
        *("t.product_id = p.id", "t.theme = :theme", "t.sentiment = -1", "t.day >= :first", "t.day <= :last"),
        *("d.product_id = t.product_id", "d.day = +t.day", "d.site = t.site", "d.review_id = t.review_id"),
    ),
)
"""Tables, and how they are joined: the days of reviews, or of those that complain about a theme."""

_ON_ITS_PAGE = f"""
    EXISTS (
        SELECT 1 FROM page_products l
        WHERE l.page_id = r.page_id AND l.product_id = :product AND l.verdict = '{Verdict.REVIEW}'
    )
"""


def _write_asked(tx: Transaction, wanted: ReviewFilter) -> tuple[str, dict[str, Any]]:
    """Return FROM and WHERE of the rows `d` of `review_days` that a filter asks for, and its values."""
    period = Period(wanted.day_from, wanted.day_to)
    values: dict[str, Any] = {"first": period.first, "last": period.last}
    if wanted.theme:
        values["theme"] = wanted.theme
    tables, joined = _DAYS_OF_THEME if wanted.theme else _DAYS
    asked = [*joined]
    for name, condition in _ASKED.items():
        if given := getattr(wanted, name):
            values[name] = given
            asked.append(condition)
    if wanted.undated:
        asked.append(f"d.day = {NO_DAY}")
    if wanted.counted is not None:
        asked.append(f"d.voice {'<>' if wanted.counted else '='} '{LEFT_OUT}'")
    if wanted.words and not _is_narrow(wanted):
        values["looked_at"] = LOOKED_AT
        asked.append("d.review_id > (SELECT max(id) FROM reviews) - :looked_at")
    for n, word in enumerate(wanted.words):
        values[f"word_{n}"] = as_pattern(word)
        asked.append(HAS_WORD.format(n))
    if wanted.corrected:
        asked.append("r.correction_id IS NOT NULL")
    is_part = wanted.product is not None and get_counted_as(tx, wanted.product) is not None
    if is_part:
        asked.append(_ON_ITS_PAGE)
    if wanted.words or wanted.corrected or is_part:
        tables += " JOIN reviews r ON r.id = d.review_id"
    return f"FROM {tables} WHERE {' AND '.join(asked)}", values
