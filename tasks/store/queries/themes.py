"""Counts of reviews and themes by product, week and site, and quotes. Reads `review_days` and `review_themes`.

A week is numbered by its Monday: 0 is the one of 1969-12-29. Reviews without a day are counted apart, in no week.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from tasks.domain.voices import Voice
from tasks.store.content.counted_reviews import LEFT_OUT, NO_DAY, get_filled_share
from tasks.store.queries.reviews import READ_TEXT
from tasks.store.queue.upkeep import load_value
from tasks.store.sql.transaction import Transaction

_FIRST_DAY = date(1970, 1, 1)
_FIRST_MONDAY = date(1969, 12, 29)
NO_WEEK = -1
"""The week of reviews without a day."""
WEEK_OF_DAY = "(day + 3) / 7"
"""Number of the week of a day that is known; 1970-01-01 was a Thursday."""
PRODUCT_BY_PRODUCT = "products p CROSS JOIN review_days d"
"""Tables of a statement with the condition `d.product_id = p.id`.

The rows of each product are in the order of their days: SQLite finds those of a period product by product. It does not
change the order of tables in a `CROSS JOIN`; in any other it would read the days of all years.
"""
_WEEK = f"CASE WHEN day = {NO_DAY} THEN {NO_WEEK} ELSE {WEEK_OF_DAY} END"
_IS_COMPLAINT = "sentiment = -1"


def number_of_day(day: date) -> int:
    """Return the number of a day as the tables have it."""
    return (day - _FIRST_DAY).days


def day_of_number(number: int) -> date | None:
    """Return the day of a number; `None` for that of reviews without a day."""
    return None if number == NO_DAY else _FIRST_DAY + timedelta(days=number)


def week_of(day: date) -> int:
    """Return the number of a day's week."""
    return (day - _FIRST_MONDAY).days // 7


def monday_of(week: int) -> date:
    """Return the first day of a week."""
    return _FIRST_MONDAY + timedelta(weeks=week)


@dataclass(frozen=True, slots=True)
class Period:
    """A range of days; `None` leaves an end open. Reviews without a day are in the period that is open at both ends."""

    since: date | None = None
    until: date | None = None

    @property
    def is_open(self) -> bool:
        """Return True if it has neither a first nor a last day."""
        return self.since is None and self.until is None

    @property
    def first(self) -> int:
        """Return the number of its first day."""
        if self.since is not None:
            return number_of_day(self.since)
        return NO_DAY if self.is_open else NO_DAY + 1

    @property
    def last(self) -> int:
        """Return the number of its last day."""
        return number_of_day(date.max if self.until is None else self.until)


class ThemeWeek(NamedTuple):
    """Complaints of a product about a theme at a site in a week; `first` and `last` are the numbers of days."""

    product_id: int
    theme: str
    site: str
    week: int
    n: int
    first: int
    last: int


class ReviewWeek(NamedTuple):
    """Reviews of a product at a site in a week, and those of buyers among them.

    Attributes:
        first, last: numbers of the days of the first and the last complaint; `None` if there are none.
        left_out: reviews that do not count for the product; not in `n`.
    """

    product_id: int
    site: str
    week: int
    n: int
    complaints: int
    praise: int
    first: int | None = None
    last: int | None = None
    left_out: int = 0


def count_theme_weeks(tx: Transaction, product_ids: Collection[int], period: Period) -> list[ThemeWeek]:
    """Return complaints of products in a period by product, theme, site and week."""
    given = {"products": product_ids, "first": period.first, "last": period.last}
    return tx.records(ThemeWeek, _THEME_WEEKS, **given) if product_ids else []


def count_review_weeks(tx: Transaction, product_ids: Collection[int], period: Period) -> list[ReviewWeek]:
    """Return reviews of products in a period by product, site and week."""
    given = {"products": product_ids, "first": period.first, "last": period.last}
    return tx.records(ReviewWeek, _REVIEW_WEEKS, **given) if product_ids else []


def _count(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


_IN_PERIOD = "product_id IN :products AND day >= :first AND day <= :last"
_THEME_WEEKS = f"""
    SELECT product_id, theme, site, {_WEEK} AS week, count(*) AS n, min(day) AS first, max(day) AS last
    FROM review_themes WHERE {_IN_PERIOD} AND {_IS_COMPLAINT} GROUP BY product_id, theme, site, {_WEEK}
"""
_REVIEW_WEEKS = f"""
    SELECT product_id, site, {_WEEK} AS week, sum(n) AS n, sum(complaints) AS complaints, sum(praise) AS praise,
        min(CASE WHEN complaints > 0 THEN day END) AS first, max(CASE WHEN complaints > 0 THEN day END) AS last,
        sum(left_out) AS left_out
    FROM (
        SELECT product_id, day, site, {_count(f"voice <> '{LEFT_OUT}'")} AS n,
            {_count(f"voice = '{Voice.COMPLAINT}'")} AS complaints, {_count(f"voice = '{Voice.PRAISE}'")} AS praise,
            {_count(f"voice = '{LEFT_OUT}'")} AS left_out
        FROM review_days WHERE {_IN_PERIOD} GROUP BY product_id, day, site
    ) by_day
    GROUP BY product_id, site, {_WEEK}
"""
# Days come in the order of the table, so that SQLite sorts them instead of reviews.


class UnreadReviews(NamedTuple):
    """Number of a product's reviews that were not read for themes: in other languages, of apps, of services."""

    product_id: int
    n: int


def count_unread(tx: Transaction, product_ids: Collection[int], period: Period) -> list[UnreadReviews]:
    """Return how many reviews of each product in a period were not read for themes; products with none are left out."""
    given = {"products": product_ids, "first": period.first, "last": period.last}
    return tx.records(UnreadReviews, _UNREAD, **given) if product_ids else []


_UNREAD = f"""
    SELECT product_id, count(*) AS n FROM review_days
    WHERE {_IN_PERIOD} AND voice <> '{LEFT_OUT}' AND review_id IN (SELECT id FROM reviews WHERE themes = '[]')
        AND review_id NOT IN (
            SELECT r.id FROM corrections c JOIN reviews r ON r.correction_id = c.id WHERE c.themes IS NOT NULL
        )
    GROUP BY product_id
"""


class ThemeMonth(NamedTuple):
    """Complaints of a product about a theme in a month, such as `2026-11`."""

    theme: str
    month: str
    n: int


def count_theme_months(
    tx: Transaction, product_id: int, period: Period, site: str, theme: str
) -> list[ThemeMonth]:
    """Return the complaints of a product in a period by theme and month of their own day, at a site, about a theme.

    Args:
        site, theme: empty for all.
    """
    given = {
        "products": [product_id],
        "first": period.first,
        "last": period.last,
        "site": site,
        "theme": theme,
    }
    return tx.records(ThemeMonth, _THEME_MONTHS[tx.is_sqlite], **given)


_MONTH = {
    True: "strftime('%Y-%m', day * 86400, 'unixepoch')",
    False: "to_char(DATE '1970-01-01' + day, 'YYYY-MM')",
}
_THEME_MONTHS = {
    is_sqlite: f"""
    SELECT theme, {month} AS month, count(*) AS n FROM review_themes
    WHERE {_IN_PERIOD} AND {_IS_COMPLAINT} AND day <> {NO_DAY}
        AND (:site = '' OR site = :site) AND (:theme = '' OR theme = :theme)
    GROUP BY theme, {month}
    """
    for is_sqlite, month in _MONTH.items()
}


def list_products_with_reviews(tx: Transaction) -> list[int]:
    """Return the numbers of the products that have reviews."""
    return [number for (number,) in tx.rows(_WITH_REVIEWS)]


_WITH_REVIEWS = """
    SELECT p.id FROM products p WHERE EXISTS (SELECT 1 FROM review_days d WHERE d.product_id = p.id) ORDER BY p.id
"""


def get_product_names(tx: Transaction, product_ids: Collection[int]) -> dict[int, str]:
    """Return the names of products by number."""
    if not product_ids:
        return {}
    return dict(tx.rows("SELECT id, name FROM products WHERE id IN :ids", ids=product_ids))


def get_counted_share(tx: Transaction) -> float:
    """Return the share of the reviews of before an upgrade that these tables have, 0 to 1."""
    return get_filled_share(tx)


def load_rises(tx: Transaction) -> Sequence[Mapping[str, Any]]:
    """Return the rises that were found last, each an `app.insight.rows.RiseRow` as JSON has it."""
    stored = load_value(tx, RISES)
    return () if stored is None else stored.data["rises"]


def has_reviews_since(tx: Transaction, day: int) -> bool:
    """Return True if a review of any product was written on a day, given by its number, or later."""
    return tx.value(_SINCE, day=day) is not None


_SINCE = """
    SELECT p.id FROM products p
    WHERE EXISTS (SELECT 1 FROM review_days d WHERE d.product_id = p.id AND d.day >= :day) LIMIT 1
"""


def load_cutoffs(tx: Transaction, week: int) -> Sequence[float]:
    """Return the p values up to which themes rose in the weeks up to this one; empty if they are not known.

    They are not known if reviews were imported since they were stored. Weeks that ended since then have the last one's,
    until the sweep `rises` has judged them.
    """
    stored = load_value(tx, RISES)
    if stored is None or stored.data["last_week"] > week or has_new_import(tx, stored.at):
        return ()
    cutoffs: Sequence[float] = stored.data["cutoffs"]
    newer = min(week - stored.data["last_week"], len(cutoffs))
    return [*cutoffs[newer:], *cutoffs[-1:] * newer]


def has_new_import(tx: Transaction, since: datetime) -> bool:
    """Return True if an import of reviews began, ended or was undone after a time."""
    return tx.value(_NEW_IMPORT, since=since) is not None


_NEW_IMPORT = """
    SELECT id FROM imports WHERE kind = 'reviews' AND (begun_at > :since OR ended_at > :since OR undone_at > :since)
    LIMIT 1
"""


def count_series(tx: Transaction) -> int:
    """Return the number of series that may rise: themes of products, and all complaints of each product."""
    return int(tx.value(_SERIES))


_SERIES = """
    SELECT (SELECT count(*) FROM (SELECT DISTINCT product_id, theme FROM review_themes) t)
        + (SELECT count(*) FROM products)
"""


AROUND = 24
"""Characters of a text that are read before and after a quote."""

RISES = "rises"
"""Name of the stored value with the rises of all products (`app.insight.weekly.Rises`)."""


class Quote(NamedTuple):
    """A clause that shows a complaint about a theme, and where it is from.

    Attributes:
        before, after: at most `AROUND` characters of the text on either side of the clause.
    """

    product_id: int
    theme: str
    text: str
    before: str
    after: str
    day: int
    site: str
    url: str
    review: int


def list_quotes(
    tx: Transaction, product_ids: Collection[int], period: Period, most: int, site: str = ""
) -> list[Quote]:
    """Return the newest complaints about each theme of each product in a period, at most `most` of each.

    Args:
        site: only complaints at this site; empty for all.
    """
    given = {"products": product_ids, "first": period.first, "last": period.last}
    return tx.records(Quote, _QUOTES, most=most, site=site, **given) if product_ids else []


_QUOTES = f"""
    SELECT q.product_id, q.theme, substr({READ_TEXT}, q.quote_from + 1, q.quote_to - q.quote_from) AS text,
        CASE WHEN q.quote_from > {AROUND} THEN substr({READ_TEXT}, q.quote_from + 1 - {AROUND}, {AROUND})
            ELSE substr({READ_TEXT}, 1, q.quote_from) END AS before,
        substr({READ_TEXT}, q.quote_to + 1, {AROUND}) AS after, q.day, q.site, r.url, q.review_id AS review
    FROM (
        SELECT product_id, theme, day, site, review_id, quote_from, quote_to,
            row_number() OVER (PARTITION BY product_id, theme ORDER BY day DESC, review_id DESC) AS place
        FROM review_themes
        WHERE {_IN_PERIOD} AND {_IS_COMPLAINT} AND :site IN ('', site)
    ) q JOIN reviews r ON r.id = q.review_id
    WHERE q.place <= :most ORDER BY q.product_id, q.theme, q.place
"""


class NewestReview(NamedTuple):
    """A review of a product; `day` is a number, and `voice` is empty if it was not judged."""

    review: int
    day: int
    site: str
    voice: str
    text: str


def list_newest(
    tx: Transaction, product_id: int, period: Period, most: int, site: str = ""
) -> list[NewestReview]:
    """Return the newest reviews of a product in a period, at one site or (empty) all."""
    given = {"products": [product_id], "first": period.first, "last": period.last}
    return tx.records(NewestReview, _NEWEST, most=most, site=site, **given)


_NEWEST = f"""
    SELECT d.review_id AS review, d.day, d.site, d.voice, {READ_TEXT} AS text
    FROM (
        SELECT review_id, day, site, voice FROM review_days
        WHERE {_IN_PERIOD} AND :site IN ('', site) AND voice <> '{LEFT_OUT}'
        ORDER BY day DESC, review_id DESC LIMIT :most
    ) d JOIN reviews r ON r.id = d.review_id ORDER BY d.day DESC, d.review_id DESC
"""


class Complaint(NamedTuple):
    """A complaint, with its text.

    Attributes:
        original: number of the review that its text nearly equals; of a text of its own, its number.
    """

    review: int
    original: int
    page_id: int
    day: int
    site: str
    url: str
    author: str
    text: str


def list_complaints(tx: Transaction, product_id: int, period: Period, most: int) -> list[Complaint]:
    """Return complaints about a product in a period; of more than `most`, always the same sample."""
    given = {"product": product_id, "first": period.first, "last": period.last}
    return tx.records(Complaint, _COMPLAINTS, most=most, **given)


_COMPLAINTS_OF = f"product_id = :product AND day >= :first AND day <= :last AND voice = '{Voice.COMPLAINT}'"
_COMPLAINTS = f"""
    SELECT d.review_id AS review, coalesce(l.original_id, d.review_id) AS original, r.page_id, d.day, d.site, r.url,
        r.author, {READ_TEXT} AS text
    FROM (
        SELECT review_id, day, site FROM review_days
        WHERE {_COMPLAINTS_OF}
        ORDER BY review_id * 2654435761 % 4294967296 LIMIT :most
    ) d JOIN reviews r ON r.id = d.review_id LEFT JOIN review_links l ON l.review_id = d.review_id
    ORDER BY d.review_id
"""


def count_complaints(tx: Transaction, product_id: int, period: Period) -> int:
    """Return the number of complaints about a product in a period."""
    given = {"product": product_id, "first": period.first, "last": period.last}
    return int(tx.value(f"SELECT count(*) FROM review_days WHERE {_COMPLAINTS_OF}", **given))


class ThemePages(NamedTuple):
    """Number of pages with a complaint about a theme of a product."""

    product_id: int
    theme: str
    n: int


def count_theme_pages(tx: Transaction, product_ids: Collection[int], first_week: int) -> list[ThemePages]:
    """Return on how many pages each theme of products was complained about, from a week on."""
    first = number_of_day(monday_of(first_week))
    return tx.records(ThemePages, _THEME_PAGES, products=product_ids, first=first) if product_ids else []


_THEME_PAGES = f"""
    SELECT t.product_id, t.theme, count(DISTINCT r.page_id) AS n
    FROM review_themes t JOIN reviews r ON r.id = t.review_id
    WHERE t.product_id IN :products AND t.day >= :first AND t.{_IS_COMPLAINT} GROUP BY t.product_id, t.theme
"""


class SeenReviews(NamedTuple):
    """Reviews of a product at a site by the day they were written on, and by the days until they were first seen."""

    product_id: int
    site: str
    day: int
    delay: int
    n: int


def count_delays(
    tx: Transaction, product_ids: Collection[int], first: int, offset: timedelta
) -> list[SeenReviews]:
    """Return when reviews of products were seen that were written from a day on, and after the site's first page.

    Args:
        first: number of the day.
        offset: difference from UTC of the zone whose days count as the days of seeing.
    """
    if not product_ids:
        return []
    given = {"products": product_ids, "first": first, "offset_s": offset.total_seconds()}
    return tx.records(SeenReviews, _DELAYS[tx.is_sqlite], **given)


def _write_delays(day: str) -> str:
    """Return the statement, given the number of the day of a time as the database writes it."""
    seen, begun = day.format("r.collected_at"), day.format("b.at")
    return f"""
    WITH first AS (
        SELECT l.product_id, g.site, min(l.linked_at) AS at FROM page_products l JOIN pages g ON g.id = l.page_id
        WHERE l.product_id IN (
            SELECT id FROM products WHERE id IN :products
            UNION ALL SELECT id FROM products WHERE counted_as IN :products
        ) GROUP BY l.product_id, g.site
    ), begun AS (
        SELECT coalesce(p.counted_as, p.id) AS product_id, f.site, max(f.at) AS at
        FROM first f JOIN products p ON p.id = f.product_id GROUP BY coalesce(p.counted_as, p.id), f.site
    )
    SELECT d.product_id, d.site, d.day, {seen} - d.day AS delay, count(*) AS n
    FROM begun b JOIN review_days d ON d.product_id = b.product_id AND d.site = b.site
    JOIN reviews r ON r.id = d.review_id
    WHERE d.product_id IN :products AND d.day >= :first AND d.day > {begun}
    GROUP BY d.product_id, d.site, d.day, {seen} - d.day
    """


_DELAYS = {
    True: _write_delays("CAST(julianday({}) + :offset_s / 86400 - 2440587.5 AS integer)"),
    False: _write_delays(
        "(CAST({} AT TIME ZONE 'UTC' + :offset_s * interval '1 second' AS date) - DATE '1970-01-01')"
    ),
}


class ArchivedTheme(NamedTuple):
    """A theme of a product, and when a person archived it."""

    product_id: int
    theme: str
    archived_at: datetime


def list_archived(tx: Transaction, product_ids: Collection[int]) -> list[ArchivedTheme]:
    """Return the archived themes of products, with those that began to rise after that."""
    return tx.records(ArchivedTheme, _ARCHIVED, products=product_ids) if product_ids else []


_ARCHIVED = "SELECT product_id, theme, archived_at FROM archived_themes WHERE product_id IN :products"
