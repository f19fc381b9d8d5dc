"""What buyers of products complain about: themes in a period, with their share, state, trend and quotes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from app.insight.rows import QuoteRow, RiseRow, RisesView, ThemeRow, ThemeState, ThemesView
from app.insight.sites import find_sites_with_praise
from app.insight.states import judge_weeks
from app.insight.weekly import Groups, find_rises, judge_alone, last_whole_week, load_weekly
from tasks.domain.voices import Voice
from tasks.store.queries import themes as theme_queries
from tasks.store.queries.themes import Period, Quote, ThemeCount, VoiceCount, day_of_number, monday_of
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
    voices = theme_queries.count_voices(tx, numbers, period)
    counts = theme_queries.count_themes(tx, numbers, period)
    quotes: dict[tuple[int, str], list[QuoteRow]] = defaultdict(list)
    for one in theme_queries.list_quotes(tx, numbers, period, QUOTES):
        quotes[one.product_id, one.theme].append(_quote_row(one))
    with_praise = find_sites_with_praise([(one.site, one.voice, one.n) for one in voices], groups)
    buyers = _count_buyers(voices, with_praise)
    states = _judge(tx, numbers, today, groups)
    rows = []
    for key, of_theme in sorted(_by_theme(counts).items()):
        product_id, _ = key
        in_share = sum(one.n for one in of_theme if one.site in with_praise)
        share = in_share / buyers[product_id] if buyers[product_id] else None
        judged = states.get(key, _UNSEEN)
        rows.append(_row(products[product_id], of_theme, share, judged, quotes[key]))
    rows.sort(key=lambda row: (row.product, -row.complaints))
    return ThemesView(
        since=period.since,
        until=period.until,
        themes=rows,
        undated=theme_queries.count_undated(tx, numbers),
        sites_without_share=sorted({one.site for one in counts} - with_praise),
        counted=theme_queries.get_counted_share(tx),
    )


def _by_theme(counts: Sequence[ThemeCount]) -> dict[tuple[int, str], list[ThemeCount]]:
    found: dict[tuple[int, str], list[ThemeCount]] = defaultdict(list)
    for one in counts:
        found[one.product_id, one.theme].append(one)
    return found


def _count_buyers(voices: Sequence[VoiceCount], sites: frozenset[str]) -> Counter[int]:
    """Return the number of buyers' reviews of each product at some sites."""
    buyers: Counter[int] = Counter()
    for one in voices:
        if one.site in sites and one.voice in (Voice.COMPLAINT, Voice.PRAISE):
            buyers[one.product_id] += one.n
    return buyers


@dataclass(frozen=True, slots=True)
class _JudgedTheme:
    """State and trend of a theme."""

    state: ThemeState
    trend: Sequence[int]


_UNSEEN = _JudgedTheme(ThemeState.WATCHING, (0,) * TREND_WEEKS)
"""A theme whose complaints have no day, or are older than `WEEKS`."""


def _judge(
    tx: Transaction, numbers: Sequence[int], today: date, groups: Groups
) -> Mapping[tuple[int, str], _JudgedTheme]:
    """Return state and trend of each theme of products."""
    weekly = load_weekly(tx, numbers, last_whole_week(today), groups)
    cutoffs = theme_queries.load_cutoffs(tx, weekly.last_week) or judge_alone(weekly)
    judged = judge_weeks(weekly.series, cutoffs)
    trends = weekly.series.counts[:, -TREND_WEEKS:].astype(int).tolist()
    return {key: _JudgedTheme(judged.state_of(row), trends[row]) for row, key in enumerate(weekly.keys)}


def _row(
    product: str,
    counts: Sequence[ThemeCount],
    share: float | None,
    judged: _JudgedTheme,
    quotes: Sequence[QuoteRow],
) -> ThemeRow:
    days = [day for one in counts for day in (one.first, one.last) if day is not None]
    return ThemeRow(
        product=product,
        theme=counts[0].theme,
        complaints=sum(one.n for one in counts),
        undated=sum(one.undated for one in counts),
        share=share,
        first_day=day_of_number(min(days)) if days else None,
        last_day=day_of_number(max(days)) if days else None,
        state=judged.state,
        trend=judged.trend,
        quotes=quotes,
    )


def _quote_row(quote: Quote) -> QuoteRow:
    return QuoteRow(quote.text, day_of_number(quote.day), quote.site, quote.url, quote.review)


def list_rises(tx: Transaction, today: date, groups: Groups) -> RisesView:
    """Return the themes that rise among those of all products."""
    found = find_rises(tx, last_whole_week(today), groups)
    names = theme_queries.get_product_names(tx, {rise.product_id for rise in found.rises})
    until = monday_of(found.last_week + 1) - timedelta(days=1)
    quotes: dict[tuple[int, str], list[QuoteRow]] = defaultdict(list)
    recent = Period(until - timedelta(weeks=4), until)
    for one in theme_queries.list_quotes(tx, sorted(names), recent, QUOTES):
        quotes[one.product_id, one.theme].append(_quote_row(one))
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
