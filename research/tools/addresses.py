"""What lies where on the page server (`research.tools.pageserver`).

Review page n has the same path on every host. Products and sites are numbered from 0; each site shows its own pages
of each product, `HITS` on a result page, so that a crawl of all result pages of the first p products meets the review
pages 0 to p * `PAGES_OF_A_PRODUCT` - 1 once.
"""

from __future__ import annotations

SITES = 8
PAGES_OF_A_TASK = 5
HITS = 50
PAGES_OF_A_SITE = PAGES_OF_A_TASK * HITS
"""Review pages the searches for one product find on one site."""

PAGES_OF_A_PRODUCT = SITES * PAGES_OF_A_SITE
"""Review pages the searches for one product find, over all sites."""


def review_path(number: int) -> str:
    """Path of a review page."""
    return f"/p/{number}.html"


def number_of(url: str) -> int:
    """The number of the review page at an address."""
    return int(url.rpartition("/")[2].removesuffix(".html"))


def keyword(product: int) -> str:
    """What is searched for to find the pages of a product (numbered from 0)."""
    return f"product{product}"


def found_for(number: int) -> str:
    """What is searched for to find a review page."""
    return keyword(number // PAGES_OF_A_PRODUCT)


def site(number: int) -> str:
    """Name of a site (numbered from 0)."""
    return f"shop{number}.example"
