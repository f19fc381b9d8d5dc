"""The page of a product as an analyst opens it: what buyers complain about, since when, and whether it rises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta

from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import Response

from app.insight.counts import Choice
from app.insight.findings import list_findings
from app.insight.product import FEWEST_REVIEWS, ComplaintsView, read_product
from app.insight.rows import ThemeState
from app.reports import charts
from app.reports.charts import HeatCell, Line
from app.views.moments import local_time
from app.views.theme_names import find_theme, name_theme
from app.views.words import translate
from app.web.base.context import Here
from app.web.base.query import ProductId, RecentPeriod, Text, check_site
from app.web.pages.products import name_of
from tasks.store.queries.themes import NewestReview, day_of_number, list_newest

router = APIRouter()

_MOST_COLUMNS = 12

MEANINGS = {
    ThemeState.RISING: "rising: significantly more complaints than the last 3 years and the week's other reviews let "
    "expect, and at least 3 in 4 weeks; until 4 weeks in a row are usual again",
    ThemeState.NEW: "new: first seen less than 8 weeks ago, with at least 3 complaints from 2 pages",
    ThemeState.BACK: "back: it was quiet, and at least 2 complaints came in 4 weeks",
    ThemeState.QUIET: "quiet: no complaint for 8 weeks or more, which has a chance of 1 % at the usual rate",
    ThemeState.ONGOING: "ongoing: none of the others",
    ThemeState.WATCHING: "watching: reviews of less than 26 weeks, too few to judge",
}
"""What the states of themes mean, for people."""


@router.get("/products/{product}")
def show_product(
    page: Here, number: ProductId, period: RecentPeriod, site: Text = "", theme: Text = ""
) -> Response:
    """Show what buyers complain about in a period, at all sites or one, about all themes or one."""
    name = name_of(page, number)
    groups = {site: one.group for site, one in page.context.catalog.sites.items()}
    with page.context.store.read() as tx:
        check_site(tx, page.context.catalog, site)
        today = local_time(tx.now).date()
    choice = Choice(period.find(today), site, find_theme(theme) if theme else "")
    view = page.context.read(
        ("insight", number, choice, today), lambda tx: read_product(tx, (number, name), choice, today, groups)
    )
    few: Sequence[NewestReview] = ()
    if view.is_sparse:
        with page.context.store.read() as tx:
            few = list_newest(tx, number, choice.period, FEWEST_REVIEWS, choice.site)
    return page.html(
        "product.html",
        number=number,
        name=name,
        view=view,
        findings=list_findings(view),
        period=period,
        few=few,
        fewest=FEWEST_REVIEWS,
        meanings=MEANINGS,
        name_theme=name_theme,
        day_of_number=day_of_number,
        sparkline=charts.sparkline,
        weekly_chart=_draw_weeks(view),
        site_chart=_heat(view.by_site, translate("Complaints by theme and site"), by_size=True),
        month_chart=_heat(view.by_month, translate("Complaints by theme and month")),
        most_columns=_MOST_COLUMNS,
    )


def _draw_weeks(view: ComplaintsView) -> Markup:
    """Return the complaints of each week as a line, and what was expected as a dashed one."""
    if not any(one.complaints for one in view.weeks):
        return Markup("")
    times = [datetime.combine(one.monday, time(), UTC) for one in view.weeks]
    found = [(at, float(one.complaints)) for at, one in zip(times, view.weeks, strict=True)]
    expected = [(at, one.expected) for at, one in zip(times, view.weeks, strict=True)]
    series = [Line(translate("Complaints a week"), found)]
    if any(y is not None for _, y in expected):
        series.append(Line(translate("Expected by history"), expected))
    begin = view.incomplete_from
    grey_from = None if begin is None else datetime.combine(begin - timedelta(days=6), time(), UTC)
    return charts.lines(
        series, translate("Complaints over time"), width=1200, height=160, grey_from=grey_from
    )


def _heat(counts: Mapping[tuple[str, str], int], title: str, *, by_size: bool = False) -> Markup:
    """Return a heat map of themes by sites or months: the sites with most complaints, or the newest months."""
    totals = Counter[str]()
    themes = Counter[str]()
    for (theme, column), n in counts.items():
        totals[column] += n
        themes[theme] += n
    if by_size:
        across = sorted(totals, key=lambda column: (-totals[column], column))[:_MOST_COLUMNS]
    else:
        across = sorted(totals)[-_MOST_COLUMNS:]
    most = max(counts.values(), default=1)
    cells = {
        (name_theme(theme), column): HeatCell(n / most, f"{n:,}")
        for (theme, column), n in counts.items()
        if column in across
    }
    rows = sorted(themes, key=lambda theme: (-themes[theme], theme))
    return charts.heat_map([name_theme(theme) for theme in rows], across, cells, title)
