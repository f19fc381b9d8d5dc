"""The web of the crawl bench: review pages, and result pages that list them. `python -m research.bench.crawl_peers.web PAGES` serves it.

Review page n has the same path on every host. Products and sites are numbered from 0; each site shows its own pages
of each product, `HITS` on a result page, so that a crawl of all result pages of the first p products meets the review
pages 0 to p * `PAGES_OF_A_PRODUCT` - 1 once.
"""

from __future__ import annotations

import re
import sys
from urllib.parse import unquote_plus

from research.bench.crawl_peers.contest import review_path
from research.tools.pages import result_page, review_page
from research.tools.pageserver import LOST, ROBOTS, answered, serve

SITES = 8
PAGES_OF_A_TASK = 5
HITS = 50
PAGES_OF_A_SITE = PAGES_OF_A_TASK * HITS
"""Review pages that the searches for one product find on one site."""

PAGES_OF_A_PRODUCT = SITES * PAGES_OF_A_SITE
"""Review pages that the searches for one product find, over all sites."""

_REVIEW = re.compile(rb"GET /p/(\d+)\.html ")
_SEARCH = re.compile(rb"GET /s\?q=(\S+)&page=(\d+) ")
_QUERY = re.compile(r"product(\d+) site:shop(\d+)\.example")


def keyword(product: int) -> str:
    """Return the query that finds the pages of a product."""
    return f"product{product}"


def site(number: int) -> str:
    """Return the name of a site."""
    return f"shop{number}.example"


def answer_of_search(product: int, site_number: int, page: int) -> bytes:
    """Return the result page (from 1) of a product on a site, whose hits lead to that site."""
    place = (product * SITES + site_number) * PAGES_OF_A_TASK + page - 1
    numbers = range(place * HITS, (place + 1) * HITS)
    return result_page(page, [f"http://{site(site_number)}{review_path(n)}" for n in numbers])


class Answers:
    """Every answer. Review pages are made before the first request, so that the server never limits a crawl."""

    def __init__(self, pages: int) -> None:
        names = (keyword(number // PAGES_OF_A_PRODUCT) for number in range(pages))
        self._pages = [answered(review_page(number, name)) for number, name in enumerate(names)]

    def to(self, request: bytes) -> bytes:
        """Return the answer to a request's head."""
        if (match := _REVIEW.match(request)) is not None and int(match[1]) < len(self._pages):
            return self._pages[int(match[1])]
        if (match := _SEARCH.match(request)) is not None:
            query = _QUERY.fullmatch(unquote_plus(match[1].decode("ascii")))
            if query is not None:
                return answered(answer_of_search(int(query[1]), int(query[2]), int(match[2])))
        return ROBOTS if request.startswith(b"GET /robots.txt ") else LOST


if __name__ == "__main__":
    serve(Answers(int(sys.argv[1])).to)
