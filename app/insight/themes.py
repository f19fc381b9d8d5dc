"""What buyers of products complain about: themes in a period, with their share, state, trend and quotes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from app.insight.rows import QuoteRow, RiseRow, RisesView, ThemeRow, ThemeState, ThemesView
from app.insight.sites import find_sites_with_praise
from app.insight.states import judge_weeks
from app.insight.weekly import Groups, Rises, Weekly, find_rises, judge_alone, last_whole_week, make_weekly
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import NO_WEEK, Period, ThemeWeek, day_of_number, monday_of
from tasks.store.sql.transaction import Transaction

TREND_WEEKS = 26
QUOTES = 3


def list_themes(
    tx: Transaction, products: Mapping[int, str], period: Period, today: date, groups: Groups
) -> ThemesView:
    """Return the themes of products in a period.

    Args:
        products: names by number.
        groups: kind of each site of the catalog.
    """
    numbers = sorted(products)
    all_themes = theme_queries.count_theme_weeks(tx, numbers, Period())
    all_reviews = theme_queries.count_review_weeks(tx, numbers, Period())
    themes = all_themes if period.is_open else theme_queries.count_theme_weeks(tx, numbers, period)
    reviews = all_reviews if period.is_open else theme_queries.count_review_weeks(tx, numbers, period)
    with_praise = find_sites_with_praise(all_reviews, groups)
    buyers: Counter[int] = Counter()
    for one in reviews:
        if one.site in with_praise:
            buyers[one.product_id] += one.complaints + one.praise
    states = _judge(make_weekly(tx, all_themes, all_reviews, last_whole_week(today), groups), tx)
    quotes = _list_quotes(tx, numbers, period)
    rows = []
    for key, weeks in sorted(_by_theme(themes).items()):
        product_id = key[0]
        in_share = sum(one.n for one in weeks if one.site in with_praise)
        share = in_share / buyers[product_id] if buyers[product_id] else None
        judged = states.get(key, _UNSEEN)
        rows.append(_row(products[product_id], weeks, share, judged, quotes[key]))
    rows.sort(key=lambda row: (row.product, -row.complaints))
    return ThemesView(
        since=period.since,
        until=period.until,
        themes=rows,
        undated=sum(one.n for one in all_reviews if one.week == NO_WEEK),
        unread=sum(one.n for one in theme_queries.count_unread(tx, numbers, period)),
        sites_without_share=sorted({one.site for one in themes} - with_praise),
        counted=theme_queries.get_counted_share(tx),
    )


def _by_theme(counts: Sequence[ThemeWeek]) -> dict[tuple[int, str], list[ThemeWeek]]:
    found: dict[tuple[int, str], list[ThemeWeek]] = defaultdict(list)
    for one in counts:
        found[one.product_id, one.theme].append(one)
    return found


def _list_quotes(
    tx: Transaction, numbers: Sequence[int], period: Period
) -> Mapping[tuple[int, str], list[QuoteRow]]:
    """Return the newest quotes of each theme of products."""
    quotes: dict[tuple[int, str], list[QuoteRow]] = defaultdict(list)
    for one in theme_queries.list_quotes(tx, numbers, period, QUOTES):
        row = QuoteRow(one.text, day_of_number(one.day), one.site, one.url, one.review)
        quotes[one.product_id, one.theme].append(row)
    return quotes


@dataclass(frozen=True, slots=True)
class _JudgedTheme:
    """State and trend of a theme."""

    state: ThemeState
    trend: Sequence[int]


_UNSEEN = _JudgedTheme(ThemeState.WATCHING, (0,) * TREND_WEEKS)
"""A theme whose complaints have no day, or are older than `WEEKS`."""


def _judge(weekly: Weekly, tx: Transaction) -> Mapping[tuple[int, str], _JudgedTheme]:
    """Return state and trend of each theme."""
    cutoffs = theme_queries.load_cutoffs(tx, weekly.last_week) or judge_alone(weekly)
    judged = judge_weeks(weekly.series, cutoffs)
    trends = weekly.series.counts[:, -TREND_WEEKS:].astype(int).tolist()
    return {key: _JudgedTheme(judged.state_of(row), trends[row]) for row, key in enumerate(weekly.keys)}


def _row(
    product: str,
    weeks: Sequence[ThemeWeek],
    share: float | None,
    judged: _JudgedTheme,
    quotes: Sequence[QuoteRow],
) -> ThemeRow:
    dated = [one for one in weeks if one.week != NO_WEEK]
    return ThemeRow(
        product=product,
        theme=weeks[0].theme,
        complaints=sum(one.n for one in weeks),
        undated=sum(one.n for one in weeks if one.week == NO_WEEK),
        share=share,
        first_day=day_of_number(min(one.first for one in dated)) if dated else None,
        last_day=day_of_number(max(one.last for one in dated)) if dated else None,
        state=judged.state,
        trend=judged.trend,
        quotes=quotes,
    )


def list_rises(tx: Transaction, today: date, groups: Groups) -> RisesView:
    """Return the themes that rise among those of all products."""
    return _view_rises(tx, find_rises(tx, last_whole_week(today), groups))


def judge_rises(tx: Transaction, today: date, groups: Groups) -> dict[str, Any]:
    """Return the rises of all products to be stored: with the cutoffs, by which each product is judged alike."""
    found = find_rises(tx, last_whole_week(today), groups)
    rises = [
        asdict(row)
        | {
            "since": row.since.isoformat(),
            "quotes": [{"text": one.text, "url": one.url} for one in row.quotes],
        }
        for row in _view_rises(tx, found).rises
    ]
    return {"last_week": found.last_week, "cutoffs": list(found.cutoffs), "rises": rises}


def _view_rises(tx: Transaction, found: Rises) -> RisesView:
    names = theme_queries.get_product_names(tx, {rise.product_id for rise in found.rises})
    until = monday_of(found.last_week + 1) - timedelta(days=1)
    quotes = _list_quotes(tx, sorted(names), Period(until - timedelta(weeks=4), until))
    rows = [
        RiseRow(
            product=names[rise.product_id],
            theme=rise.theme,
            since=monday_of(rise.week),
            count=rise.count,
            baseline=round(rise.baseline, 2),
            p_value=rise.p_value,
            quotes=quotes[rise.product_id, rise.theme],
        )
        for rise in found.rises
    ]
    return RisesView(until=until, rises=rows, counted=theme_queries.get_counted_share(tx))
