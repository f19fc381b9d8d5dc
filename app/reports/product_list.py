"""The list of products with their complaints in a period. It can be filtered, sorted, or summed up by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeVar

from app.insight.periods import PeriodChoice, find_period_before, last_whole_week
from app.insight.rows import TREND_WEEKS
from app.insight.sites import Groups, make_praise_rule
from app.reports.product_choice import UNKNOWN, ProductChoice, find_brand, list_chosen
from app.views.fields import extend_row
from app.views.moments import local_time
from splitter.catalog.model import Catalog
from tasks.store.content.products import ids
from tasks.store.queries.product_counts import (
    ProductCount,
    count_complaint_weeks,
    count_complaints,
    count_products,
)
from tasks.store.queries.products import ProductKey, ProductRow, ProductSettings, list_keys, list_numbered
from tasks.store.queries.themes import Period, list_archived, load_rises, week_of
from tasks.store.sql.transaction import Transaction

T = TypeVar("T")
_NO_TREND = (0,) * TREND_WEEKS


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of complaints about one product, or about several together, in a period.

    Attributes:
        count: numbers of complaints and reviews in the period, and in the period of equal length before it.
        has_before: False if the period has an open end, so that there is no period before it.
        trend: number of complaints in each of the last `TREND_WEEKS` whole weeks; zeros if trends were not loaded.
    """

    count: ProductCount
    has_before: bool
    trend: Sequence[int] = _NO_TREND

    @property
    def complaints_before(self) -> int | None:
        """Return the number of complaints in the period before; `None` if the period has an open end."""
        return self.count.complaints_before if self.has_before else None

    @property
    def change(self) -> float | None:
        """Return the change since the period before: 0.41 is 41 % more; `None` if unknown.

        Only sites with reviews in both periods count.
        """
        before = self.count.compared_before
        return self.count.compared / before - 1 if self.has_before and before else None

    @property
    def share(self) -> float | None:
        """Return complaints / buyers' reviews, at sites that also publish praise; `None` without such reviews."""
        return self.count.shared / self.count.buyers if self.count.buyers else None


def sum_figures(figures: Sequence[Figures]) -> Figures:
    """Add up the figures of several products. The sum has the number of the first product."""
    first = figures[0]
    sums = map(sum, zip(*(one.count[1:] for one in figures), strict=True))
    trends = [one.trend for one in figures if one.trend is not _NO_TREND]
    trend = tuple(map(sum, zip(*trends, strict=True))) or _NO_TREND
    return Figures(ProductCount(first.count.product_id, *sums), first.has_before, trend)


def load_figures(
    tx: Transaction, numbers: Collection[int] | None, period: Period, groups: Groups
) -> dict[int, Figures]:
    """Return figures by product number, for products with reviews in the period or the one before.

    Trends are not loaded.

    Args:
        numbers: numbers of the products; `None` for all.
        groups: group of each site of the catalog.
    """
    before = find_period_before(period)
    counts = count_products(tx, numbers, period, before, make_praise_rule(groups))
    return {one.product_id: Figures(one, before is not None) for one in counts}


def load_trends(tx: Transaction, numbers: Collection[int] | None, today: date) -> dict[int, Sequence[int]]:
    """Return the number of complaints in each of the last `TREND_WEEKS` whole weeks, by product number."""
    last = last_whole_week(today)
    first = last - TREND_WEEKS + 1
    trends: dict[int, list[int]] = {}
    for product_id, week, n in count_complaint_weeks(tx, numbers, first, last):
        trends.setdefault(product_id, [0] * TREND_WEEKS)[week - first] = n
    return dict(trends)


def make_empty(number: int, *, has_before: bool) -> Figures:
    """Return the figures of a product without reviews."""
    return Figures(ProductCount(number, 0, 0, 0, 0, 0, 0, 0), has_before)


class ProductSort(StrEnum):
    """Orders of the list. The order by name is ascending, all others put the greatest value first."""

    COMPLAINTS = "complaints"
    NAME = "name"
    CHANGE = "change"
    SHARE = "share"
    PRIORITY = "priority"


class ProductGrouping(StrEnum):
    """The ways to group products."""

    BRAND = "brand"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder:
    """How the list is sorted and grouped, and which part of it is returned.

    Attributes:
        is_reversed: True to sort in the opposite direction. Products without a value stay last.
        by: what products are grouped by; `None` for a row per product.
        skip: number of rows to leave out at the beginning.
        most: maximum number of rows; `None` for all.
    """

    sort: ProductSort = ProductSort.COMPLAINTS
    is_reversed: bool = False
    by: ProductGrouping | None = None
    skip: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class FigureRow:
    """Numbers of complaints in the list's period, counted as on the page of a product.

    Attributes:
        complaints_before: number in the period before; `None` if the list's period has an open end.
        change: change since the period before, at sites with reviews in both: 0.41 is 41 % more. `None` if unknown.
        share: complaints / buyers' reviews, at sites that also publish praise; `None` if there is no such site.
        trend: number in each of the last 26 whole weeks.
    """

    complaints: int
    complaints_before: int | None
    change: float | None
    share: float | None
    trend: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProduct(ProductRow, FigureRow):
    """A row of the list: a product with its complaints.

    Attributes:
        brand: the brand among the product's keywords; empty if there is none.
    """

    brand: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductGroup(FigureRow):
    """A row of the list: a group of products, with the sums of their complaints.

    Attributes:
        name: the brand or category of the group; empty for products whose brand or category is unknown.
        products: number of products, without those that are counted under another one.
    """

    name: str
    products: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductList:
    """A part of the list: rows of products or of groups.

    Attributes:
        total: number of rows of the whole list.
    """

    since: date | None
    until: date | None
    total: int
    products: Sequence[ListedProduct] = ()
    groups: Sequence[ProductGroup] = ()


def read_product_list(
    tx: Transaction, choice: ProductChoice, order: ListOrder, days: PeriodChoice, catalog: Catalog
) -> ProductList:
    """Return the products that fit a choice, sorted, with their complaints in a period."""
    today = local_time(tx.now).date()
    reader = _Reader(tx, days.find(today), today, {name: site.group for name, site in catalog.sites.items()})
    if order.by is not None:
        found = reader.read_groups(list_chosen(tx, choice, catalog), order.by)
        groups = _sort(found, _GROUP_RANKS[order.sort], order)
        return reader.make_list(len(groups), groups=groups[order.skip :][: order.most])
    is_all = choice == ProductChoice()
    chosen: Sequence[Product] = list_keys(tx) if is_all else list_chosen(tx, choice, catalog)
    figures = reader.load_figures(None) if order.sort in _BY_FIGURES else None
    shown = _sort(chosen, reader.load_ranks(order.sort, figures), order)[order.skip :][: order.most]
    return reader.make_list(len(chosen), products=reader.read_products(shown, figures))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRise:
    """A rising theme of a product, as the last sweep found it.

    Attributes:
        theme: the theme; `tasks.domain.themes.ALL_THEMES` stands for all complaints about the product together.
        since: first day of the week in which the rise began.
    """

    product_id: int
    product: str
    theme: str
    since: date


def list_rising(tx: Transaction) -> list[ListedRise]:
    """Return the rising themes that are not archived, the surest first."""
    stored = load_rises(tx)
    numbers = ids(tx, {one["product"] for one in stored}) if stored else {}
    archived = {
        (one.product_id, one.theme): local_time(one.archived_at).date()
        for one in list_archived(tx, numbers.values())
    }
    rises = []
    for one in stored:
        if one["product"] not in numbers:
            continue
        found = ListedRise(
            product_id=numbers[one["product"]],
            product=one["product"],
            theme=one["theme"],
            since=date.fromisoformat(one["since"]),
        )
        archived_on = archived.get((found.product_id, found.theme), date.min)
        if week_of(found.since) >= week_of(archived_on):
            rises.append(found)
    return rises


Product = ProductKey | ProductSettings
Rank = Callable[[T], Any]
"""Gives the value that rows are sorted by; `None` comes last."""


@dataclass(frozen=True, slots=True)
class _Reader:
    tx: Transaction
    period: Period
    today: date
    groups: Groups

    def make_list(self, total: int, **rows: Any) -> ProductList:
        return ProductList(since=self.period.since, until=self.period.until, total=total, **rows)

    def load_figures(self, numbers: Collection[int] | None) -> dict[int, Figures]:
        return load_figures(self.tx, numbers, self.period, self.groups)

    def load_ranks(self, sort: ProductSort, figures: Mapping[int, Figures] | None) -> Rank[Product]:
        if sort is ProductSort.NAME:
            return lambda one: one.name
        if sort is ProductSort.PRIORITY:
            return lambda one: one.priority
        if sort is ProductSort.COMPLAINTS:
            counts = count_complaints(self.tx, self.period)
            return lambda one: counts.get(one.id, 0)
        known = {number: getattr(one, sort) for number, one in (figures or {}).items()}
        return lambda one: known.get(one.id)

    def add_trends(
        self,
        products: Sequence[Product],
        numbers: Collection[int] | None,
        found: Mapping[int, Figures],
    ) -> list[Figures]:
        """Return the figures of products with their trends.

        Args:
            numbers: numbers of the products whose trends are read; `None` reads those of all products.
            found: figures without trends by product number. A product that is missing here has no reviews.
        """
        trends = load_trends(self.tx, numbers, self.today)
        has_before = find_period_before(self.period) is not None
        empty = make_empty(0, has_before=has_before)
        return [
            Figures(found.get(one.id, empty).count, has_before, trends.get(one.id, _NO_TREND))
            for one in products
        ]

    def read_products(
        self, shown: Sequence[Product], known: Mapping[int, Figures] | None
    ) -> list[ListedProduct]:
        """Return the rows of products.

        Args:
            known: figures that are already loaded; `None` reads them from the store.
        """
        numbers = [one.id for one in shown]
        stored = {row.id: row for row in list_numbered(self.tx, numbers)}
        some = numbers if len(numbers) <= _FEW else None
        found = self.load_figures(some) if known is None else known
        figures = self.add_trends(shown, some, found)
        rows = [stored[number] for number in numbers]
        return [
            extend_row(ListedProduct, row, brand=find_brand(row.keywords), **_fields(of))
            for row, of in zip(rows, figures, strict=True)
        ]

    def read_groups(self, products: Sequence[ProductSettings], by: ProductGrouping) -> list[ProductGroup]:
        found: dict[str, list[Figures]] = defaultdict(list)
        products = [one for one in products if one.counted_as is None]
        for one, of in zip(products, self.add_trends(products, None, self.load_figures(None)), strict=True):
            found[_name_group(one, by)].append(of)
        return [
            ProductGroup(name=name, products=len(figures), **_fields(sum_figures(figures)))
            for name, figures in found.items()
        ]


_BY_FIGURES = (ProductSort.CHANGE, ProductSort.SHARE)
_FEW = 500
"""Maximum number of products whose figures are read one by one; more are read in one query."""


def _fields(figures: Figures) -> dict[str, Any]:
    return {
        "complaints": figures.count.complaints,
        "complaints_before": figures.complaints_before,
        "change": figures.change,
        "share": figures.share,
        "trend": figures.trend,
    }


def _name_group(product: ProductSettings, by: ProductGrouping) -> str:
    if by is ProductGrouping.BRAND:
        return find_brand(product.keywords)
    return product.category or UNKNOWN


_GROUP_RANKS: Mapping[ProductSort, Rank[ProductGroup]] = {
    ProductSort.COMPLAINTS: attrgetter("complaints"),
    ProductSort.NAME: attrgetter("name"),
    ProductSort.CHANGE: attrgetter("change"),
    ProductSort.SHARE: attrgetter("share"),
    ProductSort.PRIORITY: attrgetter("products"),
}


def _sort(rows: Sequence[T], rank: Rank[T], order: ListOrder) -> list[T]:
    """Return the rows sorted. Rows without a value come last.

    Args:
        rank: returns the value to sort a row by; `None` if it has none.
    """
    known = [row for row in rows if rank(row) is not None]
    is_falling = (order.sort is not ProductSort.NAME) is not order.is_reversed
    known.sort(key=rank, reverse=is_falling)
    return known + [row for row in rows if rank(row) is None]
