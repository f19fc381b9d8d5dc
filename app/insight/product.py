"""Complaints about a product in a period: their number against the period before, their themes, sites and days."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from app.insight.periods import find_period_before
from app.insight.rows import ThemeRow, ThemesView
from app.insight.sites import find_sites_with_praise
from app.insight.themes import list_themes
from app.insight.weekly import Groups, last_whole_week
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import (
    NO_WEEK,
    Period,
    ReviewWeek,
    ThemeWeek,
    day_of_number,
    monday_of,
    week_of,
)
from tasks.store.sql.transaction import Transaction

FEWEST_REVIEWS = 10
"""Number of reviews below which the page shows them instead of trends."""
SERIOUS = ("safety", "foreign_matter")
"""Themes whose quotes are shown first."""
LEAST_WEEKS, MOST_WEEKS = 26, 104


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplaintsView:
    """Complaints about a product in a period.

    Attributes:
        reviews: reviews in the period; `undated` more have no day and are in no period but the open one.
        complaints: in the period.
        compared, compared_before: complaints in the period and in the one before, at the sites with reviews in both;
            `None` for an open period.
        sites_left_out: sites with reviews in one of the two periods only.
        share, share_before: complaints among buyers' reviews at sites that publish praise; `None` if there are none.
        first_day, last_day: of complaints, whatever the period.
        counted: complaints of each whole week of the period by its Monday, for at least `LEAST_WEEKS`; of each month
            if there are more than `MOST_WEEKS`.
        by_site, by_month: complaints by theme and site, by theme and month.
    """

    since: date | None
    until: date | None
    reviews: int
    undated: int
    complaints: int
    compared: int | None
    compared_before: int | None
    sites: Sequence[str]
    sites_left_out: Sequence[str]
    share: float | None
    share_before: float | None
    first_day: date | None
    last_day: date | None
    counted: Sequence[tuple[str, int]]
    themes: ThemesView
    by_site: Mapping[tuple[str, str], int]
    by_month: Mapping[tuple[str, str], int]

    @property
    def change(self) -> float | None:
        """Return the change against the period before, 0.41 for 41 % more; `None` if there is nothing to compare."""
        if self.compared is None or not self.compared_before:
            return None
        return self.compared / self.compared_before - 1

    @property
    def is_sparse(self) -> bool:
        """Return True if trends would be drawn from too few reviews."""
        return self.reviews < FEWEST_REVIEWS

    @property
    def serious(self) -> Sequence[ThemeRow]:
        """Return the themes of this product that are serious."""
        return [row for row in self.themes.themes if row.theme in SERIOUS]


def read_product(
    tx: Transaction, product: tuple[int, str], period: Period, today: date, groups: Groups
) -> ComplaintsView:
    """Return what a product's page says of a period.

    Args:
        product: number and name.
        groups: kind of each site of the catalog.
    """
    number, name = product
    every = theme_queries.count_review_weeks(tx, [number], Period())
    inside = theme_queries.count_review_weeks(tx, [number], period)
    before = find_period_before(period)
    earlier = theme_queries.count_review_weeks(tx, [number], before) if before is not None else []
    with_praise = find_sites_with_praise(every, groups)
    sites, sites_before = {one.site for one in inside}, {one.site for one in earlier}
    both = sites & sites_before
    themes = theme_queries.count_theme_weeks(tx, [number], period)
    all_themes = themes if period.is_open else theme_queries.count_theme_weeks(tx, [number], Period())
    days = [day for one in all_themes if one.week != NO_WEEK for day in (one.first, one.last)]
    return ComplaintsView(
        since=period.since,
        until=period.until,
        reviews=sum(one.n for one in inside),
        undated=sum(one.n for one in every if one.week == NO_WEEK),
        complaints=_count_complaints(inside),
        compared=_count_complaints(inside, both) if before is not None else None,
        compared_before=_count_complaints(earlier, both) if before is not None else None,
        sites=sorted(sites),
        sites_left_out=sorted(sites ^ sites_before) if before is not None else (),
        share=_share(inside, with_praise),
        share_before=_share(earlier, with_praise),
        first_day=day_of_number(min(days)) if days else None,
        last_day=day_of_number(max(days)) if days else None,
        counted=_count_by_time(every, period, last_whole_week(today)),
        themes=list_themes(tx, {number: name}, period, today, groups),
        by_site=_count(themes, lambda one: one.site),
        by_month=_count(
            (one for one in themes if one.week != NO_WEEK), lambda one: f"{monday_of(one.week):%Y-%m}"
        ),
    )


def _count_complaints(weeks: Iterable[ReviewWeek], sites: set[str] | None = None) -> int:
    return sum(one.complaints for one in weeks if sites is None or one.site in sites)


def _share(weeks: Iterable[ReviewWeek], with_praise: frozenset[str]) -> float | None:
    complaints = buyers = 0
    for one in weeks:
        if one.site in with_praise:
            complaints += one.complaints
            buyers += one.complaints + one.praise
    return complaints / buyers if buyers else None


def _count_by_time(weeks: Iterable[ReviewWeek], period: Period, last: int) -> list[tuple[str, int]]:
    """Return the complaints of each whole week, or of each month if there are many weeks."""
    counts: Counter[int] = Counter()
    for one in weeks:
        if one.week != NO_WEEK and one.week <= last:
            counts[one.week] += one.complaints
    if period.until is not None:
        last = min(last, week_of(period.until))
    first = min(counts, default=last) if period.since is None else week_of(period.since)
    mondays = {week: monday_of(week) for week in range(min(first, last - LEAST_WEEKS + 1), last + 1)}
    if len(mondays) <= MOST_WEEKS:
        return [(f"{monday:%Y-%m-%d}", counts[week]) for week, monday in mondays.items()]
    by_month: Counter[str] = Counter()
    for week, monday in mondays.items():
        by_month[f"{monday:%Y-%m}"] += counts[week]
    return list(by_month.items())


def _count(weeks: Iterable[ThemeWeek], column_of: Callable[[ThemeWeek], str]) -> dict[tuple[str, str], int]:
    """Return complaints by theme and a column."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in weeks:
        found[one.theme, column_of(one)] += one.n
    return dict(found)
