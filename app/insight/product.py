"""Read the complaints about a product in a period: number and change, themes, sites and days."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from app.insight.counts import ChosenCounts, Selection, choose_reviews, choose_themes, load_counts
from app.insight.delays import estimate_incomplete_days
from app.insight.periods import find_period_before
from app.insight.rows import ThemeRow, ThemesView
from app.insight.sites import find_sites_with_praise
from app.insight.states import gather_evidence
from app.insight.themes import view_themes
from app.insight.weekly import WEEKS, Groups, last_whole_week, make_empty_series
from tasks.store.queries.themes import (
    NO_WEEK,
    ReviewWeek,
    ThemeWeek,
    count_review_weeks,
    count_theme_months,
    count_theme_weeks,
    day_of_number,
    monday_of,
    number_of_day,
    week_of,
)
from tasks.store.sql.transaction import Transaction

FEWEST_REVIEWS = 10
"""Number of reviews below which the page shows the reviews instead of trends."""
SERIOUS = ("safety", "foreign_matter")
"""Themes whose quotes are shown first."""
LEAST_WEEKS = 26


class WeekRow(NamedTuple):
    """Number of complaints in one week.

    Attributes:
        monday: first day of the week.
        expected: number expected from earlier weeks and from the other reviews of the week; `None` if the product was
            not watched long enough.
    """

    monday: date
    complaints: int
    expected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplaintsView:
    """Complaints about a product in a period, at all sites or one site, about all themes or one theme.

    Attributes:
        site, theme: chosen site and theme; an empty text stands for all.
        all_sites, all_themes: sites with a review and themes with a complaint, for a person to choose.
        today: the day on which the data was read.
        reviews: number of reviews in the period at the chosen sites.
        matching: number of these reviews about the chosen theme; equal to `reviews` without a theme.
        undated: number of reviews without a date, which count only in the period that is open at both ends.
        left_out: number of reviews in the period that don't count: hidden, not about the product, or with an excluded
            word.
        complaints: number of complaints in the period.
        compared, compared_before: complaints in this period and the one before, at sites with reviews in both; `None`
            for a period with an open end.
        sites: sites with reviews in the period.
        compared_sites: sites with reviews in both periods.
        sites_left_out: sites with reviews in only one of the two periods.
        share, share_before: complaints / buyers' reviews, both at sites that publish praise, in this period and the one
            before; `None` without such reviews.
        first_day, last_day: days of the first and the last complaint, in any period.
        incomplete_days: number of newest days, including today, that still miss late reviews
            (`app.insight.delays`); `None` if it can't be estimated.
        weeks: whole weeks of the period; if it has fewer than `LEAST_WEEKS`, earlier ones are added.
        by_site, by_month: complaints by theme and site, and by theme and month.
    """

    site: str
    theme: str
    all_sites: Sequence[str]
    all_themes: Sequence[str]
    since: date | None
    until: date | None
    today: date
    reviews: int
    matching: int
    undated: int
    left_out: int
    complaints: int
    compared: int | None
    compared_before: int | None
    sites: Sequence[str]
    compared_sites: Sequence[str]
    sites_left_out: Sequence[str]
    share: float | None
    share_before: float | None
    first_day: date | None
    last_day: date | None
    incomplete_days: int | None
    weeks: Sequence[WeekRow]
    themes: ThemesView
    by_site: Mapping[tuple[str, str], int]
    by_month: Mapping[tuple[str, str], int]

    @property
    def change(self) -> float | None:
        """Return the change since the period before: 0.41 is 41 % more.

        `None` if the period has an open end or there were no complaints before.
        """
        if self.compared is None or not self.compared_before:
            return None
        return self.compared / self.compared_before - 1

    @property
    def days(self) -> int | None:
        """Return the number of days in the period; `None` if it has an open end."""
        if self.since is None or self.until is None:
            return None
        return (self.until - self.since).days + 1

    @property
    def incomplete_from(self) -> date | None:
        """Return the earliest of the incomplete days, which end today; `None` if today is complete."""
        return self.today - timedelta(days=self.incomplete_days - 1) if self.incomplete_days else None

    @property
    def has_incomplete_week(self) -> bool:
        """Return True if the last week of `weeks` contains an incomplete day."""
        begin = self.incomplete_from
        return begin is not None and begin < self.weeks[-1].monday + timedelta(weeks=1)

    @property
    def is_sparse(self) -> bool:
        """Return True if there are too few reviews for trends."""
        return self.reviews < FEWEST_REVIEWS

    @property
    def serious(self) -> Sequence[ThemeRow]:
        """Return the serious themes (`SERIOUS`)."""
        return [row for row in self.shown_themes if row.theme in SERIOUS]

    @property
    def shown_themes(self) -> Sequence[ThemeRow]:
        """Return the themes that are not archived."""
        return [row for row in self.themes.themes if not row.archived]

    @property
    def archived_themes(self) -> Sequence[ThemeRow]:
        """Return the themes that are archived."""
        return [row for row in self.themes.themes if row.archived]


def read_product(
    tx: Transaction, product: tuple[int, str], choice: Selection, today: date, groups: Groups
) -> ComplaintsView:
    """Return the complaints about a product.

    Args:
        product: number and name.
        groups: kind of each site of the catalog.
    """
    number, name = product
    counts = load_counts(tx, [number], choice, today)
    before = _load_before(tx, number, counts)
    with_praise = frozenset(site for _, site in find_sites_with_praise(counts.every.reviews, groups))
    found, found_before = _list_complaints(counts), _list_complaints(before) if before else []
    sites = {one.site for one in counts.reviews if one.n}
    sites_before = {one.site for one in before.reviews if one.n} if before else set()
    both = sites & sites_before
    every = _list_complaints(_take_all_days(counts))
    dated = [one for one in every if one.week != NO_WEEK and one.n]
    complaints = sum(one.n for one in found)
    reviews = sum(one.n for one in counts.reviews)
    return ComplaintsView(
        site=choice.site,
        theme=choice.theme,
        all_sites=sorted({one.site for one in counts.every.reviews}),
        all_themes=sorted({one.theme for one in counts.every.themes}),
        since=choice.period.since,
        until=choice.period.until,
        today=today,
        reviews=reviews,
        matching=complaints if choice.theme else reviews,
        undated=sum(one.n for one in choose_reviews(counts.every.reviews, choice) if one.week == NO_WEEK),
        left_out=sum(one.left_out for one in counts.reviews),
        complaints=complaints,
        compared=_sum_at(found, both) if before else None,
        compared_before=_sum_at(found_before, both) if before else None,
        sites=sorted(sites),
        compared_sites=sorted(both),
        sites_left_out=sorted(sites ^ sites_before) if before else (),
        share=_share(found, counts.reviews, with_praise),
        share_before=_share(found_before, before.reviews, with_praise) if before else None,
        first_day=day_of_number(min(one.first for one in dated)) if dated else None,
        last_day=day_of_number(max(one.last for one in dated)) if dated else None,
        incomplete_days=estimate_incomplete_days(
            (one for one in counts.every.seen if choice.site in ("", one.site)), number_of_day(today)
        ),
        weeks=_list_weeks(every, counts, last_whole_week(today)),
        themes=view_themes(tx, {number: name}, counts, today, groups),
        by_site=_count_sites(counts.themes),
        by_month={
            (row.theme, row.month): row.n
            for row in count_theme_months(tx, number, choice.period, choice.site, choice.theme)
        },
    )


class _Complaints(NamedTuple):
    """Number of complaints at a site in a week, with the numbers of the days of the first and the last one."""

    site: str
    week: int
    n: int
    first: int
    last: int


def _load_before(tx: Transaction, number: int, counts: ChosenCounts) -> ChosenCounts | None:
    """Return the counts of the period of equal length just before the chosen one; `None` if that has an open end."""
    choice = counts.choice
    before = find_period_before(choice.period)
    if before is None:
        return None
    reviews = choose_reviews(count_review_weeks(tx, [number], before), choice)
    themes = choose_themes(count_theme_weeks(tx, [number], before), choice) if choice.theme else ()
    return ChosenCounts(choice, counts.every, reviews, themes)


def _take_all_days(counts: ChosenCounts) -> ChosenCounts:
    """Return the choice with the counts of all days, not only of the period."""
    choice = counts.choice
    reviews, themes = choose_reviews(counts.every.reviews, choice), choose_themes(counts.every.themes, choice)
    return ChosenCounts(choice, counts.every, reviews, themes)


def _list_complaints(counts: ChosenCounts) -> list[_Complaints]:
    """Return the complaints by site and week: about the chosen theme, or all if no theme is chosen."""
    if counts.choice.theme:
        return [_Complaints(one.site, one.week, one.n, one.first, one.last) for one in counts.themes]
    return [
        _Complaints(one.site, one.week, one.complaints, one.first or 0, one.last or 0)
        for one in counts.reviews
    ]


def _sum_at(complaints: Iterable[_Complaints], sites: set[str]) -> int:
    return sum(one.n for one in complaints if one.site in sites)


def _share(
    complaints: Iterable[_Complaints], reviews: Iterable[ReviewWeek], with_praise: frozenset[str]
) -> float | None:
    buyers = sum(one.complaints + one.praise for one in reviews if one.site in with_praise)
    return sum(one.n for one in complaints if one.site in with_praise) / buyers if buyers else None


def _list_weeks(complaints: Sequence[_Complaints], counts: ChosenCounts, last_week: int) -> list[WeekRow]:
    """Return the whole weeks of the period, at least `LEAST_WEEKS`, each with its actual and expected complaints."""
    period = counts.choice.period
    found: Counter[int] = Counter()
    for one in complaints:
        if one.week != NO_WEEK:
            found[one.week] += one.n
    last = last_week if period.until is None else min(last_week, max(week_of(period.until), LEAST_WEEKS))
    first = min(found, default=last)
    if period.since is not None:  # years before the first review are not drawn week by week
        first = max(week_of(period.since), min(first, last_week - WEEKS + 1))
    expected = _expect(found, {one.site for one in complaints if one.n}, counts.every.reviews, last_week)
    return [
        WeekRow(monday_of(week), found[week], expected.get(week))
        for week in range(min(first, last - LEAST_WEEKS + 1), last + 1)
    ]


def _expect(
    complaints: Mapping[int, int], sites: set[str], reviews: Iterable[ReviewWeek], last_week: int
) -> dict[int, float]:
    """Return the expected number of complaints in each watched week, by week number.

    Computed as in the search for rises: from the complaints of earlier weeks and the other reviews at the same sites.
    """
    series = make_empty_series(1)
    first = last_week - WEEKS + 1
    for week, n in complaints.items():
        if first <= week <= last_week:
            series.counts[0, week - first] = n
            series.others[0, week - first] -= n
    for one in reviews:
        if first <= one.week <= last_week:
            series.has_reviews[0, one.week - first] = True
            series.others[0, one.week - first] += one.n if one.site in sites else 0
    evidence = gather_evidence(series)
    mean, is_watched = evidence.baseline.mean[0].tolist(), evidence.is_watched[0].tolist()
    return {first + at: mean[at] for at in range(WEEKS) if is_watched[at]}


def _count_sites(weeks: Iterable[ThemeWeek]) -> dict[tuple[str, str], int]:
    """Return the number of complaints by (theme, site)."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in weeks:
        found[one.theme, one.site] += one.n
    return dict(found)
