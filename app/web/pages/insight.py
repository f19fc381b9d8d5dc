"""The page of a product as an analyst opens it: what buyers complain about, since when, and whether it rises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from markupsafe import Markup
from pydantic import BaseModel
from starlette.responses import Response

from app.insight.product import FEWEST_REVIEWS, ComplaintsView, read_product
from app.insight.rows import ThemeState
from app.reports import charts
from app.reports.charts import HeatCell
from app.views.moments import local_time
from app.views.theme_names import name_theme
from app.views.words import translate
from app.web.base.context import Here
from app.web.base.query import ProductId
from app.web.pages.products import name_of
from splitter.errors import InputError
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queries.themes import Period
from tasks.store.sql.transaction import Transaction

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


class PeriodQuery(BaseModel):
    """The period of a page.

    Attributes:
        days: the last days up to today, or all.
        since, until: first and last day; they win over `days`.
    """

    days: Literal["7", "30", "90", "all"] = "90"
    since: date | Literal[""] = ""
    until: date | Literal[""] = ""

    @property
    def is_own(self) -> bool:
        """Return True if the days were given one by one."""
        return bool(self.since or self.until)

    def period(self, today: date) -> Period:
        """Return the period. Raises InputError if it ends before it begins."""
        if self.is_own:
            since, until = self.since or None, self.until or today
            if since is not None and since > until:
                raise InputError("{since} is later than {until}", since=since, until=until)
            return Period(since, until)
        return Period() if self.days == "all" else Period(today - timedelta(days=int(self.days) - 1), today)


@router.get("/products/{product}")
def show_product(page: Here, number: ProductId, sent: Annotated[PeriodQuery, Query()]) -> Response:
    """Show what buyers complain about in a period."""
    name = name_of(page, number)
    groups = {site: one.group for site, one in page.context.catalog.sites.items()}

    def read(tx: Transaction) -> ComplaintsView:
        today = local_time(tx.now).date()
        return read_product(tx, (number, name), sent.period(today), today, groups)

    view = page.context.read(("insight", number, sent.days, sent.since, sent.until), read)
    few = []
    if view.is_sparse:
        with page.context.store.read() as tx:
            wanted = ReviewFilter(products=(name,), day_from=view.since, day_to=view.until)
            few = list(islice(list_reviews(tx, wanted), FEWEST_REVIEWS))
    return page.html(
        "product.html",
        number=number,
        name=name,
        view=view,
        sent=sent,
        few=few,
        fewest=FEWEST_REVIEWS,
        meanings=MEANINGS,
        name_theme=name_theme,
        sparkline=charts.sparkline,
        weekly_chart=charts.columns(view.counted, translate("Complaints over time"), width=960),
        site_chart=_heat(view.by_site, translate("Complaints by theme and site"), by_size=True),
        month_chart=_heat(view.by_month, translate("Complaints by theme and month")),
        most_columns=_MOST_COLUMNS,
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
