"""Products as people see them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.views.fields import extend_row
from tasks.store.queries import products
from tasks.store.queries.products import Coverage, ProductRow, Relaxed
from tasks.store.sql.transaction import Transaction

PRODUCT_FIELDS = (
    "id name category keywords aliases priority recrawl_every_s recrawl_cron is_paused pages reviews coverage "
    "found_by fewer_words"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductView(ProductRow):
    """A product with how much of what can be reached is stored.

    Attributes:
        coverage: share of the reachable hits that is stored; `coverage_rests_on` has the sums behind it.
        relaxed: searches with fewer words, as all of its words had no hit.
    """

    coverage: float | None
    coverage_rests_on: Coverage
    relaxed: Sequence[Relaxed]

    @property
    def is_paused(self) -> bool:
        """Return True if it is crawled at no site."""
        return not self.looked_for

    @property
    def found_by(self) -> Mapping[str, int]:
        """Number of tasks by the source of their number of hits."""
        return dict(sorted(self.coverage_rests_on.rests_on.items()))

    @property
    def fewer_words(self) -> Sequence[str]:
        """The words of its relaxed searches, each with the number of sites."""
        sites = Counter("&".join(one.keywords) for one in self.relaxed)
        return [f"{words} ({n})" for words, n in sites.most_common()]


@dataclass(frozen=True, slots=True)
class ProductsView:
    """All products, those of a higher priority first."""

    products: Sequence[ProductView]


def get_products_view(tx: Transaction, most_hits: Callable[[str], int]) -> ProductsView:
    """Return the products.

    Args:
        most_hits: the number of hits that an engine lists at most.
    """
    relaxed: defaultdict[int, list[Relaxed]] = defaultdict(list)
    for one in products.list_relaxed(tx):
        relaxed[one.product_id].append(one)
    coverages = products.get_coverages(tx, most_hits)
    views = []
    for row in sorted(products.list_products(tx), key=lambda row: -row.priority):
        covered = coverages.get(row.id, Coverage())
        views.append(
            extend_row(
                ProductView, row, coverage=covered.share, coverage_rests_on=covered, relaxed=relaxed[row.id]
            )
        )
    return ProductsView(views)
