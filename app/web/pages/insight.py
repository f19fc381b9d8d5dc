"""The page of a product for analysts: themes of complaints, their history and rises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions.theme_archive import archive_theme
from app.insight.counts import Selection
from app.insight.details import list_limits
from app.insight.findings import list_findings
from app.insight.periods import PeriodChoice
from app.insight.product import FEWEST_REVIEWS, ComplaintsView, read_product
from app.insight.rows import MEANINGS
from app.reports import charts
from app.reports.complaint_charts import draw_months, draw_sites, draw_weeks
from app.views.moments import local_time
from app.views.theme_names import find_theme, name_theme
from app.web.base.context import Here, Notice
from app.web.base.query import ProductId, ShownPeriod, Text, check_site
from app.web.base.rendering import link
from app.web.pages.products import name_of
from splitter.catalog.names import WITHOUT_THEMES
from tasks.store.queries.products import get_category, get_counted_as, get_name, list_counted_with
from tasks.store.queries.themes import NewestReview, day_of_number, list_newest

router = APIRouter()


@router.get("/products/{product}")
def show_product(
    page: Here, number: ProductId, period: ShownPeriod, site: Text = "", theme: Text = ""
) -> Response:
    """Show the complaints about a product in a period: at all sites or one, about all themes or one.

    If the product is counted under another product, redirect to the page of that one.
    """
    groups = page.context.groups
    with page.context.store.read() as tx:
        check_site(tx, page.context.catalog, site)
        name, category = get_name(tx, number), get_category(tx, number)
        main, counted_with = get_counted_as(tx, number), list_counted_with(tx, number)
        today = local_time(tx.now).date()
    if main is not None:
        return page.html("counted_as.html", number=number, name=name, main=main, period=period)
    choice = Selection(period.find(today), site, find_theme(theme) if theme else "")
    view = page.context.read(
        ("insight", number, choice, today), lambda tx: read_product(tx, (number, name), choice, today, groups)
    )
    links = _CellLinks(page.root, number, view, period)
    few: Sequence[NewestReview] = ()
    if view.is_sparse:
        with page.context.store.read() as tx:
            few = list_newest(tx, number, choice.period, FEWEST_REVIEWS, choice.site)
    return page.html(
        "product.html",
        number=number,
        name=name,
        category=category,
        counted_with=counted_with,
        is_read=category not in WITHOUT_THEMES,
        view=view,
        findings=list_findings(view),
        limits=list(list_limits(view)),
        period=period,
        few=few,
        fewest=FEWEST_REVIEWS,
        meanings=MEANINGS,
        name_theme=name_theme,
        day_of_number=day_of_number,
        sparkline=charts.sparkline,
        weekly_chart=draw_weeks(view),
        sites=draw_sites(view, links.find_site),
        months=draw_months(view, links.find_month),
    )


@dataclass(frozen=True, slots=True)
class _CellLinks:
    """Makes links from cells of a heat map to the reviews that a cell counts."""

    root: str
    product: int
    view: ComplaintsView
    period: PeriodChoice

    def find_site(self, theme: str, site: str) -> str:
        return self._make(theme, site, self.period.values)

    def find_month(self, theme: str, month: str) -> str:
        first = date.fromisoformat(f"{month}-01")
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        first, last = max(first, self.view.since or first), min(last, self.view.until or last)
        return self._make(theme, self.view.site, {"from": first.isoformat(), "to": last.isoformat()})

    def _make(self, theme: str, site: str, days: Mapping[str, str]) -> str:
        return f"{self.root}/reviews?{link((), product=self.product, theme=theme, site=site, **days)}"


@router.get("/products/{product}/report")
def download_report(page: Here, number: ProductId, period: ShownPeriod) -> Response:
    """Return the report on a product in a period as an HTML file to mail or print."""
    from app.reports.report import report  # loads its own templates

    name = name_of(page, number)
    with page.context.store.read() as tx:
        days = period.find(local_time(tx.now).date())
        made = report(tx, page.context.catalog, (name,), days, page.context.settings.web_address)
    file = {"Content-Disposition": f'attachment; filename="report-{number}.html"'}
    return Response(made.encode(errors="replace"), media_type="text/html; charset=utf-8", headers=file)


@router.post("/products/{product}/archive")
def archive(
    page: Here,
    number: ProductId,
    theme: Annotated[str, Form(max_length=40)],
    query: Annotated[str, Form(max_length=1000)] = "",
    undo: Annotated[Literal["yes", ""], Form()] = "",
) -> Response:
    """Archive a theme of a product until it rises, or take it out of the archive.

    Args:
        query: query string of the page that sent the form. The same page is shown again.
    """
    done = archive_theme(page.context.store, name_of(page, number), theme, page.who, undo=bool(undo))
    return page.redirect_with(f"/products/{number}?{urlencode(parse_qsl(query))}", Notice(done.sentence))
