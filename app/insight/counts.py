"""Load the weekly counts of products once, to be used for all tables, charts and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from app.insight.delays import DELAY_DAYS
from app.views.moments import get_utc_offset
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import Period, ReviewWeek, SeenReviews, ThemeWeek, number_of_day
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Selection:
    """A person's choice of a period, and of one site or theme. An empty site or theme stands for all."""

    period: Period
    site: str = ""
    theme: str = ""


@dataclass(frozen=True, slots=True)
class AllCounts:
    """Counts of reviews and of complaints by theme, for each product, site and week.

    Attributes:
        seen: delays between the writing of the newest reviews and the crawl that found them (`app.insight.delays`).
    """

    reviews: Sequence[ReviewWeek]
    themes: Sequence[ThemeWeek]
    seen: Sequence[SeenReviews]


@dataclass(frozen=True, slots=True)
class ChosenCounts:
    """Counts by product, site and week: all of them, and those of a person's choice.

    Attributes:
        every: counts of all days, sites and themes.
        reviews, themes: counts in the chosen period, at the chosen site and about the chosen theme.
    """

    choice: Selection
    every: AllCounts
    reviews: Sequence[ReviewWeek]
    themes: Sequence[ThemeWeek]


def load_all(tx: Transaction, product_ids: Sequence[int], period: Period, today: date) -> AllCounts:
    """Load the counts of products in a period, at all sites and about all themes."""
    return AllCounts(
        reviews=theme_queries.count_review_weeks(tx, product_ids, period),
        themes=theme_queries.count_theme_weeks(tx, product_ids, period),
        seen=theme_queries.count_delays(
            tx, product_ids, number_of_day(today) - DELAY_DAYS, get_utc_offset(tx.now)
        ),
    )


def load_counts(tx: Transaction, product_ids: Sequence[int], choice: Selection, today: date) -> ChosenCounts:
    """Load the counts of products: of all days, sites and themes, and those that fit the choice."""
    every = load_all(tx, product_ids, Period(), today)
    reviews, themes = every.reviews, every.themes
    if not choice.period.is_open:
        reviews = theme_queries.count_review_weeks(tx, product_ids, choice.period)
        themes = theme_queries.count_theme_weeks(tx, product_ids, choice.period)
    return ChosenCounts(choice, every, choose_reviews(reviews, choice), choose_themes(themes, choice))


def choose_reviews(weeks: Sequence[ReviewWeek], choice: Selection) -> Sequence[ReviewWeek]:
    """Return the counts at the chosen site, or all if no site is chosen."""
    return [one for one in weeks if one.site == choice.site] if choice.site else weeks


def choose_themes(weeks: Sequence[ThemeWeek], choice: Selection) -> Sequence[ThemeWeek]:
    """Return the counts about the chosen theme at the chosen site.

    Without a chosen theme or site, those of all themes or sites are returned.
    """
    return [one for one in weeks if choice.site in ("", one.site) and choice.theme in ("", one.theme)]
