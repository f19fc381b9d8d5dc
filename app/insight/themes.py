"""List the themes of complaints in a period, with share, state, trend and quotes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from app.insight.counts import ChosenCounts, Selection, choose_themes, load_counts
from app.insight.quotes import list_different, widen_quote
from app.insight.rows import TREND_WEEKS, QuoteRow, Rise, RiseRow, RisesView, ThemeRow, ThemeState, ThemesView
from app.insight.sites import find_sites_with_praise
from app.insight.states import judge_weeks
from app.insight.weekly import (
    WEEKS,
    Groups,
    Rises,
    Weekly,
    find_cutoffs,
    find_rise,
    find_rises,
    last_whole_week,
    make_weekly,
)
from app.views.fields import extend_row
from app.views.moments import local_time
from tasks.domain.themes import ALL_THEMES
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import NO_WEEK, Period, ThemeWeek, day_of_number, monday_of, week_of
from tasks.store.sql.transaction import Transaction

QUOTES = 3
_LONGEST_QUOTE = 60
"""Maximum number of characters quoted from a complaint without a theme."""
_LOOKED_AT = 12
"""Number of newest complaints from which `QUOTES` different quotes are chosen."""


def list_themes(
    tx: Transaction, products: Mapping[int, str], period: Period, today: date, groups: Groups
) -> ThemesView:
    """Return the themes of products in a period.

    Args:
        products: names by number.
        groups: kind of each site of the catalog.
    """
    counts = load_counts(tx, sorted(products), Selection(period), today)
    return view_themes(tx, products, counts, today, groups)


def view_themes(
    tx: Transaction, products: Mapping[int, str], counts: ChosenCounts, today: date, groups: Groups
) -> ThemesView:
    """Return the themes of products from counts that are already loaded. States always cover all sites."""
    choice = counts.choice
    last_week = last_whole_week(today)
    with_praise = find_sites_with_praise(counts.every.reviews, groups)
    buyers: Counter[int] = Counter()
    for one in counts.reviews:
        if (one.product_id, one.site) in with_praise:
            buyers[one.product_id] += one.complaints + one.praise
    weekly = make_weekly(tx, counts.every, today, groups)
    archived = {
        (one.product_id, one.theme): one.archived_at
        for one in theme_queries.list_archived(tx, sorted(products))
    }
    cutoffs = theme_queries.load_cutoffs(tx, last_week)
    states = _judge(weekly, cutoffs or find_cutoffs(weekly, theme_queries.count_series(tx)), archived)
    quotes = _list_quotes(tx, sorted(products), choice.period, choice.site)
    chosen = _group_by_theme(counts.themes)
    rows = []
    for key, weeks in _group_by_theme(choose_themes(counts.every.themes, choice)).items():
        in_share = sum(one.n for one in chosen[key] if (key[0], one.site) in with_praise)
        share = in_share / buyers[key[0]] if buyers[key[0]] else None
        row = _row(products[key[0]], weeks, chosen[key], states.get(key, _UNSEEN), last_week)
        rows.append(replace(row, share=share, quotes=quotes[key]))
    shown = {one.product_id for one in counts.every.themes}
    rows.sort(key=_order)
    complained = {(one.product_id, one.site) for one in counts.themes}
    complained |= {(one.product_id, one.site) for one in counts.reviews if one.complaints}
    rises = {key: of.rise for key, of in states.items() if key[1] == ALL_THEMES and of.rise is not None}
    return ThemesView(
        since=choice.period.since,
        until=choice.period.until,
        themes=rows,
        undated=sum(one.n for one in counts.every.reviews if one.week == NO_WEEK),
        incomplete_days={
            name: weekly.incomplete_days.get(number) for number, name in products.items() if number in shown
        },
        unread=sum(one.n for one in theme_queries.count_unread(tx, sorted(products), choice.period)),
        sites_without_share=sorted({site for _, site in complained - with_praise}),
        rises_of_all=_list_rise_rows(tx, rises, products, today, groups),
        counted=theme_queries.get_counted_share(tx),
        all_judged=bool(cutoffs),
    )


def _order(row: ThemeRow) -> tuple[str, bool, bool, int, str]:
    """Return the sort key of a row: by product, then rising themes, other themes, and archived themes.

    Within each of these, themes with more complaints come first.
    """
    return row.product, row.archived, row.state is not ThemeState.RISING, -row.complaints, row.theme


def _group_by_theme(counts: Sequence[ThemeWeek]) -> dict[tuple[int, str], list[ThemeWeek]]:
    found: dict[tuple[int, str], list[ThemeWeek]] = defaultdict(list)
    for one in counts:
        found[one.product_id, one.theme].append(one)
    return found


def _list_quotes(
    tx: Transaction, numbers: Sequence[int], period: Period, site: str = ""
) -> Mapping[tuple[int, str], list[QuoteRow]]:
    """Return the newest quotes by (product number, theme). Of nearly equal quotes, only one is returned."""
    found = list_complaints(tx, numbers, period, _LOOKED_AT, site)
    quotes = {key: list(islice(list_different(rows), QUOTES)) for key, rows in found.items()}
    return defaultdict(list, quotes)


def list_complaints(
    tx: Transaction, numbers: Sequence[int], period: Period, most: int, site: str = ""
) -> Mapping[tuple[int, str], list[QuoteRow]]:
    """Return the newest complaints as quotes by (product number, theme), at most `most` for each key."""
    found: dict[tuple[int, str], list[QuoteRow]] = defaultdict(list)
    for one in theme_queries.list_quotes(tx, numbers, period, most, site):
        text = widen_quote(one.before, one.text, one.after)
        row = QuoteRow(text, day_of_number(one.day), one.site, one.url, one.review)
        found[one.product_id, one.theme].append(row)
    return found


@dataclass(frozen=True, slots=True)
class _JudgedTheme:
    """Current state of a theme.

    Attributes:
        since: Monday of the first week in this state; `None` if unknown.
        weeks: number of consecutive weeks in this state.
        rise: the rise; `None` if the theme does not rise.
        archived: True if a person archived the theme.
    """

    state: ThemeState = ThemeState.WATCHING
    since: date | None = None
    weeks: int = 0
    rise: Rise | None = None
    archived: bool = False


_UNSEEN = _JudgedTheme()
"""State of a theme whose complaints have no day or are older than `WEEKS`."""


def _judge(
    weekly: Weekly, cutoffs: Sequence[float], archived: Mapping[tuple[int, str], datetime]
) -> Mapping[tuple[int, str], _JudgedTheme]:
    """Return the state of each theme by (product number, theme).

    Args:
        cutoffs: for each week, the largest p value that counts as a rise.
        archived: times at which themes were archived.
    """
    judged = judge_weeks(weekly.series, cutoffs)
    found = {key: _JudgedTheme(archived=True) for key in archived}
    for row, key in enumerate(weekly.keys):
        weeks = judged.count_weeks_in_state(row)
        since = monday_of(weekly.last_week - weeks + 1) if weeks < WEEKS else None
        is_archived = key in archived
        if is_archived:
            week = week_of(local_time(archived[key]).date()) - (weekly.last_week - WEEKS + 1)
            is_archived = not judged.has_risen_since(row, week)
        rise = find_rise(weekly, judged, row)
        found[key] = _JudgedTheme(judged.state_of(row), since, weeks, rise, is_archived)
    return found


def _row(
    product: str,
    weeks: Sequence[ThemeWeek],
    chosen: Sequence[ThemeWeek],
    judged: _JudgedTheme,
    last_week: int,
) -> ThemeRow:
    """Return the row of a theme. Share and quotes are still empty.

    Args:
        weeks: counts of all days.
        chosen: counts of the period.
        last_week: number of the last week in the trend.
    """
    dated = [one for one in weeks if one.week != NO_WEEK]
    by_week = Counter[int]()
    for one in dated:
        by_week[one.week] += one.n
    return ThemeRow(
        product=product,
        theme=weeks[0].theme,
        complaints=sum(one.n for one in chosen),
        undated=sum(one.n for one in chosen if one.week == NO_WEEK),
        share=None,
        first_day=day_of_number(min(one.first for one in dated)) if dated else None,
        last_day=day_of_number(max(one.last for one in dated)) if dated else None,
        state=judged.state,
        state_since=judged.since,
        state_weeks=judged.weeks,
        rise=judged.rise,
        archived=judged.archived,
        trend=[by_week[week] for week in range(last_week - TREND_WEEKS + 1, last_week + 1)],
        quotes=(),
    )


def list_rises(tx: Transaction, today: date, groups: Groups) -> RisesView:
    """Return the rising themes of all products."""
    cutoffs = theme_queries.load_cutoffs(tx, last_whole_week(today))
    return _view_rises(tx, find_rises(tx, today, groups, cutoffs), today, groups)


def judge_rises(tx: Transaction, today: date, groups: Groups) -> dict[str, Any]:
    """Return the rises of all products as JSON values for the store.

    The cutoffs are stored with them. They allow judging a single product later without reading all products.
    """
    found = find_rises(tx, today, groups)
    rises = [
        asdict(row)
        | {
            "since": row.since.isoformat(),
            "surest": row.surest.isoformat(),
            "quotes": [{"text": one.text, "url": one.url} for one in row.quotes],
        }
        for row in _view_rises(tx, found, today, groups).rises
    ]
    return {"last_week": found.last_week, "cutoffs": list(found.cutoffs), "rises": rises}


def _view_rises(tx: Transaction, found: Rises, today: date, groups: Groups) -> RisesView:
    names = theme_queries.get_product_names(tx, {number for number, _ in found.rises})
    return RisesView(
        until=monday_of(found.last_week + 1) - timedelta(days=1),
        rises=_list_rise_rows(tx, found.rises, names, today, groups),
        counted=theme_queries.get_counted_share(tx),
    )


def _list_rise_rows(
    tx: Transaction,
    rises: Mapping[tuple[int, str], Rise],
    names: Mapping[int, str],
    today: date,
    groups: Groups,
) -> list[RiseRow]:
    """Return the rises as rows, with quotes from the last 4 weeks."""
    monday = monday_of(last_whole_week(today) + 1)
    period = Period(monday - timedelta(weeks=4), monday - timedelta(days=1))
    quotes = _list_quotes(tx, sorted({number for number, _ in rises}), period)
    rows = []
    for (number, theme), rise in rises.items():
        found = quotes[number, theme]
        if theme == ALL_THEMES:
            found = _quote_all(tx, number, quotes, period, groups)
        rows.append(extend_row(RiseRow, rise, product=names[number], theme=theme, quotes=found))
    return rows


def _quote_all(
    tx: Transaction,
    number: int,
    quotes: Mapping[tuple[int, str], Sequence[QuoteRow]],
    period: Period,
    groups: Groups,
) -> list[QuoteRow]:
    """Return the newest quotes from all complaints about a product at sites that publish praise.

    Args:
        quotes: quotes by (product number, theme). If the product has none, the beginnings of complaints are quoted.
    """
    reviews = theme_queries.count_review_weeks(tx, [number], Period())
    with_praise = find_sites_with_praise(reviews, groups)
    found = {
        one.review: one
        for key, of_theme in quotes.items()
        for one in of_theme
        if key[0] == number and (number, one.site) in with_praise
    }
    if not found:
        found = {
            one.review: QuoteRow(
                one.text[:_LONGEST_QUOTE], day_of_number(one.day), one.site, one.url, one.review
            )
            for one in theme_queries.list_complaints(tx, number, period, _LOOKED_AT)
            if (number, one.site) in with_praise
        }
    newest = sorted(found.values(), key=lambda one: (one.day or date.min, one.review), reverse=True)
    return list(islice(list_different(newest), QUOTES))
