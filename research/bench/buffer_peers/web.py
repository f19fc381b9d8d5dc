"""The web of the buffer bench: result pages of 40 hits, 32 of them stored before. `python -m ... web RESULTS` serves it.

Result page n belongs to one product and one site. Its known hits are drawn from the pool of its site, so that pages
come up again and again, as popular ones do; its new hits are its own.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from random import Random
from urllib.parse import unquote_plus

from research.bench.crawl_peers.web import keyword, site
from research.tools.pages import catalog_of, result_page, review_page
from research.tools.pageserver import LOST, ROBOTS, answered, serve
from splitter.catalog.model import Catalog

SITES = 10
HITS = 40
KNOWN = 32
POOL_OF_A_SITE = 1000
"""Pages of a site that are stored before the bench begins."""

ENGINE_HOST = "search.example"
_NEW = re.compile(rb"GET (?:http://[^/]+)?/n/(\d+)\.html ")
_SEARCH = re.compile(rb"GET (?:http://[^/]+)?/s\?q=(\S+) ")
_QUERY = re.compile(r"product(\d+) site:shop(\d+)\.example")
# A small page: the bench measures the way to Redis and the database, not reading.
_REVIEWS, _BYTES = 2, 3000


def catalog() -> Catalog:
    """Return one engine and its sites, one result page a task."""
    return catalog_of([site(n) for n in range(SITES)], (ENGINE_HOST,), hits_per_page=HITS)


def known_url(site_number: int, place: int) -> str:
    """A page of a site's pool."""
    return f"http://{site(site_number)}/k/{place}.html"


def new_url(result: int, place: int) -> str:
    """A page only this result page leads to."""
    return f"http://{site(result % SITES)}/n/{result * HITS + place}.html"


def result_url(result: int) -> str:
    """A result page as the splitter's search URL has it, but for the product's name."""
    return f"http://{ENGINE_HOST}/s?q={keyword(result // SITES)}+site%3A{site(result % SITES)}"


@cache
def hits(result: int) -> tuple[str, ...]:
    """The addresses on a result page, known and new ones mixed."""
    rng = Random(result)
    own = result % SITES
    found = [known_url(own, place) for place in rng.sample(range(POOL_OF_A_SITE), KNOWN)]
    found += [new_url(result, place) for place in range(HITS - KNOWN)]
    rng.shuffle(found)
    return tuple(found)


class Answers:
    """Answers to requests; those to the first `results` searches are made at once."""

    def __init__(self, results: int) -> None:
        self._results = [answered(result_page(number, hits(number))) for number in range(results)]

    def to(self, request: bytes) -> bytes:
        """Return the answer to a request's head."""
        if (match := _NEW.match(request)) is not None:
            number = int(match[1])
            found_by = keyword(number // HITS // SITES)
            return answered(review_page(number, found_by, records=_REVIEWS, size=_BYTES))
        if (match := _SEARCH.match(request)) is not None:
            query = _QUERY.fullmatch(unquote_plus(match[1].decode("ascii")))
            number = int(query[1]) * SITES + int(query[2]) if query is not None else -1
            if 0 <= number < len(self._results):
                return self._results[number]
        return ROBOTS if request.startswith(b"GET /robots.txt ") else LOST


if __name__ == "__main__":
    serve(Answers(int(sys.argv[1])).to)
