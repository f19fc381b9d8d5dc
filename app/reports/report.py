"""The report on what was collected: one HTML page to mail, with charts as SVG, no script and no outside address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app.files.harmless import shown, web_link
from app.reports.charts import HeatCell, bars, columns, heat_map
from app.reports.summary import readable
from app.views.loop_state import describe_state, read_state
from app.views.moments import clock_text, clock_text_with_zone, written_text
from app.views.words import TAGS, describe, language, plural, translate
from splitter.catalog.model import Catalog
from tasks.domain.voices import Voice
from tasks.fetching.hosts import HostCatalog
from tasks.reading.copies.near_duplicates import plain, shingles, similarity_if_near
from tasks.store.queries import products as product_queries
from tasks.store.queries.products import list_products
from tasks.store.queries.queues import NOT_JUDGED
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, check_products, count_reviews, list_reviews
from tasks.store.sql.transaction import Transaction

_SHOWN = 30
"""Products and sites in a chart, those with most reviews."""
_DAYS, _MONTHS_FROM = 60, 92
"""Columns of the heat map at most; days from the first to the last, above which months are shown."""
_SAMPLES, _LOOKED_AT = 3, 2_000
"""Reviews that are shown, and looked at, for a product or a voice."""

_VOICES = (*Voice, NOT_JUDGED)


def page(template: str, **values: object) -> str:
    """Return a page from a template of this package. All values are escaped and steer nothing."""
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


def report(
    tx: Transaction,
    catalog: Catalog,
    names: Sequence[str] = (),
    silent_after: timedelta = timedelta(seconds=15),
) -> str:
    """Return the report as HTML.

    Args:
        names: names of products. Without any, the report is about all products.
        silent_after: a node whose last heartbeat is older does not run.

    Raises:
        InputError: there is no product of a name.
    """
    wanted = ReviewFilter(products=tuple(names))
    check_products(tx, wanted.products)
    counts = count_reviews(tx, wanted)
    listed = [row for row in list_products(tx) if not names or row.name in names]
    covered = product_queries.get_coverages(tx, catalog.most_hits)
    label = _period(counts.by_day)
    by_period = _count_periods(counts.by_day, label)
    complaints = _count_periods(counts.complaints, label)
    periods = _list_periods(counts.by_day, label)
    every = Counter[str]()
    for (_, period), n in by_period.items():
        every[period] += n
    sites = [site for site, _ in counts.by_site.most_common(_SHOWN)]
    told = sorted(listed, key=lambda row: (-counts.by_product[row.name], row.name))
    sampled = [row.name for row in told[:_SHOWN] if counts.by_product[row.name]]
    samples = _Samples(tx)
    titles = _name_charts(by_month=label == "month")
    return page(
        "report.html",
        at=clock_text_with_zone(tx.now),
        state=describe_state(read_state(tx, HostCatalog(catalog).of_site, silent_after).system),
        names=names,
        total=sum(counts.by_product.values()),
        dated=sum(counts.by_day.values()),
        sites=len(counts.by_site),
        products=[(row, counts.by_product[row.name], covered.get(row.id)) for row in told],
        product_chart=bars(counts.by_product.most_common(_SHOWN), translate("Reviews by product")),
        site_chart=bars(counts.by_site.most_common(_SHOWN), translate("Reviews by site")),
        titles=titles,
        period_chart=columns([(one, every[one]) for one in periods], titles["period"]),
        heat_chart=_heat(by_period, sites, periods, titles["heat"]),
        voice_chart=bars(
            [(translate(one), counts.by_voice[one]) for one in _VOICES if counts.by_voice[one]],
            translate("Reviews by voice"),
        ),
        complaint_chart=_heat(complaints, sites, periods, titles["complaints"]),
        by_voice=[
            (translate(one), samples.take(replace(wanted, voices=(one,))))
            for one in Voice
            if counts.by_voice[one]
        ],
        samples=[one for name in sampled for one in samples.take(ReviewFilter(products=(name,)))],
    )


def _name_charts(*, by_month: bool) -> Mapping[str, str]:
    if by_month:
        return {
            "period": translate("Reviews by month"),
            "heat": translate("Reviews by site and month"),
            "complaints": translate("Complaints by site and month"),
        }
    return {
        "period": translate("Reviews by day"),
        "heat": translate("Reviews by site and day"),
        "complaints": translate("Complaints by site and day"),
    }


class _Samples:
    """Takes reviews for a page on which no two texts are nearly the same."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._taken: list[tuple[str, frozenset[int]]] = []

    def take(self, wanted: ReviewFilter) -> Sequence[ReviewRow]:
        """Return some reviews of a filter: readable ones, else one of those that are left."""
        rows = list(islice(list_reviews(self._tx, wanted), _LOOKED_AT))
        found = list(islice(filter(self._add, readable(rows)), _SAMPLES))
        if not found:
            longest = sorted(rows, key=lambda row: -len(row.body))
            found = list(islice(filter(self._add, longest), 1))
        return found

    def _add(self, row: ReviewRow) -> bool:
        """Note the text of a review; return False if it is nearly the same as an earlier one."""
        text = plain(row.body)
        hashes = frozenset(shingles(text))
        for earlier, of_earlier in self._taken:
            if text == earlier or similarity_if_near(hashes, of_earlier) is not None:
                return False
        self._taken.append((text, hashes))
        return True


def _heat(
    by_period: Counter[tuple[str, str]], sites: Sequence[str], periods: Sequence[str], title: str
) -> Markup:
    if not by_period:
        return Markup("")
    most = max(by_period.values())
    cells = {key: HeatCell(n / most, f"{n:,}") for key, n in by_period.items()}
    return heat_map(sites, periods[-_DAYS:], cells, title)


def _period(by_day: Counter[tuple[str, date]]) -> str:
    """Return the period of a chart's column: a day, or a month if there are many days."""
    days = [day for _, day in by_day]
    return "month" if days and max(days) - min(days) > timedelta(days=_MONTHS_FROM) else "day"


def _count_periods(by_day: Counter[tuple[str, date]], label: str) -> Counter[tuple[str, str]]:
    """Return counts by (site, day), or by (site, month)."""
    counts: Counter[tuple[str, str]] = Counter()
    for (site, day), n in by_day.items():
        counts[site, f"{day:%Y-%m}" if label == "month" else day.isoformat()] += n
    return counts


def _list_periods(by_day: Counter[tuple[str, date]], label: str) -> list[str]:
    """Return each day or month from the first to the last, also those without a review."""
    days = sorted({day for _, day in by_day})
    if not days:
        return []
    if label == "day":
        return [(days[0] + timedelta(days=n)).isoformat() for n in range((days[-1] - days[0]).days + 1)]
    first, last = (12 * day.year + day.month - 1 for day in (days[0], days[-1]))
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in range(first, last + 1)]
