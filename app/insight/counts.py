"""Weekly counts of products, of all days and of a choice: asked once, and used by everything that is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import Period, ReviewWeek, ThemeWeek
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person wants to see: a period, and one site or theme; empty for all."""

    period: Period
    site: str = ""
    theme: str = ""


@dataclass(frozen=True, slots=True)
class ChosenCounts:
    """Weekly counts of products.

    Attributes:
        reviews, themes: all of them.
        chosen_reviews, chosen_themes: at the chosen site, about the chosen theme, in the period.
    """

    choice: Choice
    reviews: Sequence[ReviewWeek]
    themes: Sequence[ThemeWeek]
    chosen_reviews: Sequence[ReviewWeek]
    chosen_themes: Sequence[ThemeWeek]


def load_counts(tx: Transaction, product_ids: Sequence[int], choice: Choice) -> ChosenCounts:
    """Load the counts of products."""
    reviews = theme_queries.count_review_weeks(tx, product_ids, Period())
    themes = theme_queries.count_theme_weeks(tx, product_ids, Period())
    chosen_reviews, chosen_themes = reviews, themes
    if not choice.period.is_open:
        chosen_reviews = theme_queries.count_review_weeks(tx, product_ids, choice.period)
        chosen_themes = theme_queries.count_theme_weeks(tx, product_ids, choice.period)
    return ChosenCounts(
        choice, reviews, themes, choose_reviews(chosen_reviews, choice), choose_themes(chosen_themes, choice)
    )


def choose_reviews(weeks: Sequence[ReviewWeek], choice: Choice) -> Sequence[ReviewWeek]:
    """Return the counts at the chosen site."""
    return [one for one in weeks if one.site == choice.site] if choice.site else weeks


def choose_themes(weeks: Sequence[ThemeWeek], choice: Choice) -> Sequence[ThemeWeek]:
    """Return the counts about the chosen theme at the chosen site."""
    return [one for one in weeks if choice.site in ("", one.site) and choice.theme in ("", one.theme)]
