"""Make series from the weekly counts of products, and find the rising themes of all products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta

import numpy as np

from app.insight.counts import AllCounts, load_all
from app.insight.delays import estimate_incomplete_days
from app.insight.periods import last_whole_week as last_whole_week
from app.insight.rises import Counts
from app.insight.rows import Rise, ThemeState
from app.insight.sites import Groups as Groups
from app.insight.sites import find_sites_with_praise
from app.insight.states import NEW_COMPLAINTS, NEW_WEEKS, CutoffSearch, Judgement, ThemeSeries, judge_weeks
from tasks.domain.themes import ALL_THEMES
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import Period, SeenReviews, monday_of, number_of_day, week_of
from tasks.store.sql.transaction import Transaction

WEEKS = 260
"""Number of weeks in a series: the baseline and two years before it."""
_PRODUCTS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Weekly:
    """Weekly counts of complaints about one or more products. Each series belongs to one product and one theme.

    Attributes:
        keys: (product number, theme) of each series.
        last_week: number of the week in the last column.
        incomplete_days: for each product, the number of newest days that are incomplete; `None` if it can't be
            estimated.
    """

    keys: Sequence[tuple[int, str]]
    last_week: int
    series: ThemeSeries
    incomplete_days: Mapping[int, int | None]

    def select(self, rows: Sequence[int]) -> Weekly:
        """Return only the series of these row numbers."""
        series = ThemeSeries(*(getattr(self.series, field.name)[rows] for field in fields(self.series)))
        return Weekly([self.keys[row] for row in rows], self.last_week, series, self.incomplete_days)


def load_weekly(tx: Transaction, product_ids: Sequence[int], today: date, groups: Groups) -> Weekly:
    """Load the series of products up to the last whole week."""
    last_week = last_whole_week(today)
    period = Period(monday_of(last_week - WEEKS + 1), monday_of(last_week + 1) - timedelta(days=1))
    return make_weekly(tx, load_all(tx, product_ids, period, today), today, groups)


def make_weekly(tx: Transaction, counts: AllCounts, today: date, groups: Groups) -> Weekly:
    """Make series up to the last whole week from counts that are already loaded."""
    last_week = last_whole_week(today)
    complaints: SiteCounts = defaultdict(_empty_sites)
    totals: dict[int, dict[str, Counts]] = defaultdict(_empty_sites)
    place = WEEKS - 1 - last_week
    for one in counts.themes:
        if 0 <= one.week + place < WEEKS:
            complaints[one.product_id, one.theme][one.site][one.week + place] = one.n
    reviews = [of for of in counts.reviews if 0 <= of.week + place < WEEKS]
    with_praise = find_sites_with_praise(reviews, groups)
    for of in reviews:
        totals[of.product_id][of.site][of.week + place] = of.n
        if of.complaints and (of.product_id, of.site) in with_praise:
            complaints[of.product_id, ALL_THEMES][of.site][of.week + place] = of.complaints
    keys = sorted(complaints)
    series = make_empty_series(len(keys))
    incomplete_days = _estimate_each(counts.seen, today)
    for row, key in enumerate(keys):
        of_product = totals[key[0]]
        sites = set(complaints[key])
        if key[1] == ALL_THEMES:
            sites = {site for site in of_product if (key[0], site) in with_praise}
        series.counts[row] = sum(complaints[key].values())
        series.others[row] = sum(of_product[site] for site in sites) - series.counts[row]
        series.has_reviews[row] = sum(of_product.values()) > 0
        series.incomplete[row] = count_incomplete_weeks(incomplete_days.get(key[0]), today)
    _count_pages(tx, keys, series, last_week)
    return Weekly(keys, last_week, series, incomplete_days)


def _count_pages(
    tx: Transaction, keys: Sequence[tuple[int, str]], series: ThemeSeries, last_week: int
) -> None:
    """Set `pages` of each series whose theme may be new."""
    lately = NEW_WEEKS + int(series.incomplete.max(initial=0))
    is_first = ~series.counts[:, :-lately].any(axis=1)
    rows = np.flatnonzero(is_first & (series.counts.sum(axis=1) >= NEW_COMPLAINTS)).tolist()
    products = sorted({keys[row][0] for row in rows})
    found = theme_queries.count_theme_pages(tx, products, last_week - lately + 1)
    pages = {(one.product_id, one.theme): one.n for one in found}
    for row in rows:
        series.pages[row] = pages.get(keys[row], 0)


def make_empty_series(n: int) -> ThemeSeries:
    """Return `n` series with zero complaints and reviews."""
    empty = np.zeros((n, WEEKS))
    return ThemeSeries(empty, empty.copy(), empty.astype(bool), np.zeros(n), np.zeros(n, int))


def _estimate_each(seen: Iterable[SeenReviews], today: date) -> dict[int, int | None]:
    by_product: dict[int, list[SeenReviews]] = defaultdict(list)
    for one in seen:
        by_product[one.product_id].append(one)
    day = number_of_day(today)
    return {number: estimate_incomplete_days(found, day) for number, found in by_product.items()}


def count_incomplete_weeks(days: int | None, today: date) -> int:
    """Return how many of the last whole weeks contain at least one of the newest `days`, counted back from today."""
    complete = week_of(today - timedelta(days=days or 0) + timedelta(days=1)) - 1
    return max(0, last_whole_week(today) - complete)


SiteCounts = dict[tuple[int, str], dict[str, Counts]]
"""Weekly counts of each product and theme, by site."""


def _empty_sites() -> dict[str, Counts]:
    return defaultdict(lambda: np.zeros(WEEKS))


@dataclass(frozen=True, slots=True)
class Rises:
    """The rises of all products at the end of a week.

    Attributes:
        cutoffs: for each of the last `WEEKS`, the largest p value that counts as a rise.
        rises: rises by (product number, theme), the most significant first. Rises with usual numbers again come last.
    """

    last_week: int
    cutoffs: Sequence[float]
    rises: Mapping[tuple[int, str], Rise]


def find_rises(tx: Transaction, today: date, groups: Groups, cutoffs: Sequence[float] = ()) -> Rises:
    """Find the rising themes of all products. Reads all weekly counts, in parts.

    Args:
        cutoffs: for each week, the largest p value that counts as a rise. Empty: computed from all series.
    """
    search = CutoffSearch()
    candidates: list[Weekly] = []
    for weekly in _load_parts(tx, today, groups):
        may_rise = search.add(weekly.series)
        candidates.append(weekly.select(np.flatnonzero(may_rise).tolist()))
    cutoffs = cutoffs or search.list_cutoffs() or [0.0] * WEEKS
    rises = {
        key: rise
        for weekly in candidates
        for key, rise in list_rises(weekly, judge_weeks(weekly.series, cutoffs))
    }
    surest = sorted(rises.items(), key=lambda one: (one[1].usual_weeks > 0, one[1].p_value))
    return Rises(last_whole_week(today), cutoffs, dict(surest))


def find_cutoffs(weekly: Weekly, series: int) -> Sequence[float]:
    """Return for each week the largest p value that counts as a rise, if only these series are judged.

    The result corrects for `series` series. Series that are not judged count as if their p values were large, so the
    result is at most as large as if all series were judged.

    Args:
        series: number of all series.
    """
    search = CutoffSearch(series)
    search.add(weekly.series)
    return search.list_cutoffs()


def _load_parts(tx: Transaction, today: date, groups: Groups) -> Iterator[Weekly]:
    numbers = theme_queries.list_products_with_reviews(tx)
    for at in range(0, len(numbers), _PRODUCTS_AT_ONCE):
        yield load_weekly(tx, numbers[at : at + _PRODUCTS_AT_ONCE], today, groups)


def list_rises(weekly: Weekly, judged: Judgement) -> Iterator[tuple[tuple[int, str], Rise]]:
    """Yield the rises in the last week, each with its (product number, theme)."""
    for row, key in enumerate(weekly.keys):
        rise = find_rise(weekly, judged, row)
        if rise is not None:
            yield key, rise


def find_rise(weekly: Weekly, judged: Judgement, row: int) -> Rise | None:
    """Return the rise of a series; `None` if it does not rise."""
    if judged.state_of(row) is not ThemeState.RISING:
        return None
    weeks = judged.count_weeks_in_state(row)
    begin, last = WEEKS - weeks, int(weekly.series.last[row])
    surest = begin + int(np.argmin(judged.p[row, begin:]))
    is_usual = judged.evidence.is_usual[row, begin : last + 1]
    lately = slice(last - 3, last + 1)
    first_week = weekly.last_week - WEEKS + 1
    return Rise(
        since=monday_of(first_week + begin),
        weeks=weeks,
        count=int(weekly.series.counts[row, lately].sum()),
        baseline=round(float(judged.evidence.baseline.mean[row, lately].sum()), 2),
        newest=int(weekly.series.counts[row, last]),
        p_value=float(judged.p[row, surest]),
        surest=monday_of(first_week + surest),
        usual_weeks=int(np.argmin(np.append(is_usual[::-1], False))),
    )
