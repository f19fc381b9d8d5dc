"""Write the report on complaints about products as one HTML page that can be mailed or printed.

It contains findings, themes with quotes, limits of the data and rows. It has no scripts and loads nothing from the
network. Each sentence has its figures in the attribute `data-claim`, and a link to the rows behind them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.files.harmless import shown, web_link
from app.insight.counts import Selection
from app.insight.details import (
    describe_archived,
    describe_silent,
    describe_theme,
    join_names,
    list_details,
    list_limits,
)
from app.insight.findings import Finding, describe_period, list_findings
from app.insight.product import FEWEST_REVIEWS, ComplaintsView, read_product
from app.insight.rows import MEANINGS, QuoteRow, ThemeRow
from app.insight.themes import list_complaints
from app.reports import charts
from app.reports.complaint_charts import HeatMaps, draw_months, draw_sites, draw_weeks
from app.views.loop_state import describe_state, read_state
from app.views.moments import clock_text, clock_text_with_zone, local_time, written_text
from app.views.theme_names import name_theme
from app.views.words import TAGS, describe, language, plural, translate
from splitter.catalog.model import Catalog
from tasks.domain.states import State
from tasks.fetching.hosts import HostCatalog
from tasks.store.content import products
from tasks.store.content.products import Product
from tasks.store.queries import products as product_queries
from tasks.store.queries.product_counts import count_complaints
from tasks.store.queries.products import Coverage, SiteProgress
from tasks.store.queries.themes import NewestReview, Period, day_of_number, list_newest
from tasks.store.sql.transaction import Transaction

_ALL_DAYS = Period()
_PRODUCTS = 10
"""Number of products in a report without named products: those with most complaints."""
_ROWS = 30
"""Maximum number of rows per theme."""
_ASKED_LATER = {State.PRIORITY, State.WAIT}
_ENDED = {State.DONE, State.CANCELLED}


def page(template: str, **values: object) -> str:
    """Render a template of this package. All values are escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"t": translate, "p": plural, "lang": TAGS[language()]}
    environment.filters["shown"] = lambda text: shown(str(text))
    environment.filters |= {
        "describe": describe,
        "written": written_text,
        "clock": clock_text,
        "web_link": web_link,
    }
    return environment.get_template(template).render(values)


@dataclass(frozen=True, slots=True)
class ProductPart:
    """The part of a report about one product."""

    product: Product
    view: ComplaintsView
    findings: Sequence[Finding]
    details: Sequence[Finding]
    limits: Sequence[Finding]
    themes: Sequence[tuple[ThemeRow, Finding]]
    silent: Finding | None
    rows: Mapping[str, Sequence[QuoteRow]]
    few: Sequence[NewestReview]
    weeks: str
    sites: HeatMaps
    months: HeatMaps
    coverage: Coverage


def report(
    tx: Transaction,
    catalog: Catalog,
    names: Sequence[str] = (),
    period: Period = _ALL_DAYS,
    address: str = "",
    silent_after: timedelta = timedelta(seconds=15),
) -> str:
    """Return the report as HTML.

    Args:
        names: names of products; if empty, the report covers the products with the most complaints.
        address: public address of the dashboard for links; empty if there is none.
        silent_after: age of the last heartbeat after which a node counts as not running.

    Raises:
        InputError: a name is unknown.
    """
    today = local_time(tx.now).date()
    chosen, left_out = _choose_products(tx, names, period)
    coverages = product_queries.get_coverages(tx, catalog.most_hits)
    sections = [_read_part(tx, catalog, product, period, today, coverages) for product in chosen]
    links = _RowLinks(address, period)
    return page(
        "report.html",
        at=clock_text_with_zone(tx.now),
        state=describe_state(read_state(tx, HostCatalog(catalog).site_hosts, silent_after).system),
        sections=sections,
        period=describe_period(sections[0].view) if sections else "",
        left_out=left_out,
        link=links.find,
        review_link=links.find_review,
        claim=partial(_write_claim, period),
        meanings=MEANINGS.values(),
        name_theme=name_theme,
        sparkline=charts.sparkline,
        day_of_number=day_of_number,
        fewest=FEWEST_REVIEWS,
        most_rows=_ROWS,
    )


def _choose_products(
    tx: Transaction, names: Sequence[str], period: Period
) -> tuple[Sequence[Product], Finding | None]:
    """Return the products of the report. Without names, these are the ones with the most complaints.

    In this case a sentence about the other products is returned as well, else `None`.
    """
    if names:
        named = [products.find_counted(tx, name) for name in names]
        return list({one.id: one for one in named}.values()), None
    counts = count_complaints(tx, period)
    of_all = [one for one in product_queries.list_settings(tx) if one.counted_as is None]
    counted = sorted(of_all, key=lambda one: (-counts.get(one.id, 0), one.name))
    others = counted[_PRODUCTS:]
    chosen = [products.find(tx, one.name) for one in counted[:_PRODUCTS]]
    if not others:
        return chosen, None
    complaints = sum(counts.get(one.id, 0) for one in others)
    text = plural(
        "{n} other product with {complaints:,} complaints is left out: name it to have it in the report.",
        "{n:,} other products with {complaints:,} complaints together are left out: name those to have in it.",
        len(others),
        complaints=complaints,
    )
    return chosen, Finding("products_left_out", text, {"products": len(others), "complaints": complaints})


def _read_part(
    tx: Transaction,
    catalog: Catalog,
    product: Product,
    period: Period,
    today: date,
    coverages: Mapping[int, Coverage],
) -> ProductPart:
    numbers = [product.id, *(one.id for one in product_queries.list_counted_with(tx, product.id))]
    coverage = sum((coverages[number] for number in numbers if number in coverages), Coverage())
    progress = [one for number in numbers for one in product_queries.list_progress(tx, number)]
    groups = {site: one.group for site, one in catalog.sites.items()}
    view = read_product(tx, (product.id, product.name), Selection(period), today, groups)
    found = list_complaints(tx, [product.id], period, _ROWS)
    listed = view.shown_themes
    silent = [row for row in listed if not row.complaints and row.last_day]
    archived = [row for row in view.archived_themes if row.complaints]
    sites, months = draw_sites(view), draw_months(view)
    limits = [
        *map(describe_archived, [archived] if archived else ()),
        *list_limits(view),
        *sites.left_out,
        *months.left_out,
        *_list_crawl_limits(catalog, product, coverage, progress),
    ]
    return ProductPart(
        product=product,
        view=view,
        findings=list_findings(view),
        details=list(list_details(view)),
        limits=limits,
        themes=[(row, describe_theme(row)) for row in listed if row.complaints],
        silent=describe_silent(silent) if silent else None,
        rows={theme: rows for (_, theme), rows in found.items()},
        few=list_newest(tx, product.id, period, FEWEST_REVIEWS) if view.is_sparse else (),
        weeks=draw_weeks(view, width=800),
        sites=sites,
        months=months,
        coverage=coverage,
    )


def _list_crawl_limits(
    catalog: Catalog, product: Product, coverage: Coverage, progress: Sequence[SiteProgress]
) -> Iterator[Finding]:
    """Yield findings about missing data: hits not collected, and sites not crawled or not finished."""
    if not progress:
        yield Finding("not_searched", translate("No site was searched for it: its reviews were imported."))
        return
    yield _describe_coverage(coverage)
    asked = {one.site for one in progress if not _ASKED_LATER.issuperset(one.states)}
    missing = [site for site in catalog.sites_for(product.sites, product.category) if site not in asked]
    if missing:
        text = plural(
            "{n} of the sites for its category was not asked: {sites}.",
            "{n} of the sites for its category were not asked: {sites}.",
            len(missing),
            sites=join_names(missing),
        )
        yield Finding("not_asked", text, {"sites": missing})
    unfinished = sorted(
        {one.site for one in progress if one.site in asked and not _ENDED.issuperset(one.states)}
    )
    if unfinished:
        text = plural(
            "{n} site was not crawled to the end: {sites}.",
            "{n} sites were not crawled to the end: {sites}.",
            len(unfinished),
            sites=join_names(unfinished),
        )
        yield Finding("unfinished", text, {"sites": unfinished})


def _describe_coverage(coverage: Coverage) -> Finding:
    if coverage.share is None:
        text = translate("How many hits its searches have is not known, nor the share that was collected.")
        return Finding("coverage_unknown", text)
    values = {"stored": coverage.stored, "hits": coverage.reachable}
    if coverage.at_least:
        text = translate(
            "Its searches have at least {hits:,} hits; {stored:,} of them were collected ({share:.0%}).",
            share=coverage.share,
            **values,
        )
    else:
        text = translate(
            "Its searches have {hits:,} hits; {stored:,} of them were collected ({share:.0%}).",
            share=coverage.share,
            **values,
        )
    return Finding("coverage", text, values)


@dataclass(frozen=True, slots=True)
class _RowLinks:
    """Makes links from sentences to the rows behind them: on the dashboard if it has an address, else in the report."""

    address: str
    period: Period

    def find(self, product: int, finding: Finding) -> str:
        """Return the link to the rows behind a sentence about a product."""
        theme = finding.values.get("theme", "")
        if not self.address:
            return f"#rows-{product}-{theme}" if theme else f"#rows-{product}"
        days = {"from": self.period.since, "to": self.period.until}
        chosen = {name: day.isoformat() for name, day in days.items() if day is not None} or {"days": "all"}
        if theme:
            chosen["theme"] = theme
        return f"{self.address.rstrip('/')}/products/{product}?{urlencode(chosen)}"

    def find_review(self, review: int) -> str:
        """Return the link to a review on the dashboard; empty if the dashboard has no address."""
        return f"{self.address.rstrip('/')}/reviews/{review}" if self.address else ""


def _write_claim(period: Period, product: int, finding: Finding) -> str:
    """Return JSON with the figures of a sentence, and the filter that finds the counted rows."""
    chosen: dict[str, Any] = {"kind": finding.kind, "product": product}
    chosen |= {"from": _day_text(period.since), "to": _day_text(period.until)}
    return json.dumps({**chosen, **finding.values}, ensure_ascii=False)


def _day_text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
