"""Views of products."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from app.insight.periods import PeriodChoice
from app.reports.product_choice import ProductChoice
from app.reports.product_list import ListedProduct, ListOrder, ProductGroup, read_product_list
from app.views.fields import extend_row
from splitter.catalog.model import Catalog
from tasks.store.queries import products
from tasks.store.queries.products import Coverage, Relaxed
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductView(ListedProduct):
    """A product with its coverage: how many of the hits for it are stored.

    Attributes:
        coverage: share of the reachable hits that are stored; `coverage_rests_on` has the sums behind it.
        relaxed: searches with fewer words, made because a search for all words had no hit.
    """

    coverage: float | None
    coverage_rests_on: Coverage
    relaxed: Sequence[Relaxed]

    @property
    def is_paused(self) -> bool:
        """Return True if no site is crawled for the product."""
        return not self.looked_for

    @property
    def found_by(self) -> Mapping[str, int]:
        """Number of tasks by the source of their hit count."""
        return dict(sorted(self.coverage_rests_on.rests_on.items()))

    @property
    def fewer_words(self) -> Sequence[str]:
        """Keywords of the searches with fewer words, with the number of sites: "光明&牛奶 × 3"."""
        sites = Counter("&".join(one.keywords) for one in self.relaxed)
        return [f"{words} × {n}" for words, n in sites.most_common()]


@dataclass(frozen=True, slots=True)
class ProductsView:
    """Products with their complaints in a period, or sums for groups of products."""

    since: date | None
    until: date | None
    products: Sequence[ProductView]
    groups: Sequence[ProductGroup]


def get_products_view(
    tx: Transaction, choice: ProductChoice, order: ListOrder, period: PeriodChoice, catalog: Catalog
) -> ProductsView:
    """Return the products that fit a choice, with their complaints in a period."""
    listed = read_product_list(tx, choice, order, period, catalog)
    if order.by is not None:
        return ProductsView(listed.since, listed.until, (), listed.groups)
    relaxed: defaultdict[int, list[Relaxed]] = defaultdict(list)
    for one in products.list_relaxed(tx):
        relaxed[one.product_id].append(one)
    coverages = products.get_coverages(tx, catalog.most_hits)
    views = []
    for row in listed.products:
        covered = coverages.get(row.id, Coverage())
        views.append(
            extend_row(
                ProductView, row, coverage=covered.share, coverage_rests_on=covered, relaxed=relaxed[row.id]
            )
        )
    return ProductsView(listed.since, listed.until, views, ())
