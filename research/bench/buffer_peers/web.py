"""The web of the buffer bench: result pages of 40 hits, 32 of them stored before, and where everything lies.

Result page n belongs to one product and one site. Its known hits are drawn from the pool of its site, so that pages
come up again and again, as popular ones do; its new hits are its own.
"""

from __future__ import annotations

from functools import cache
from random import Random

from research.tools.addresses import keyword, site
from research.tools.pages import RESULT_RULES, RULES
from splitter.catalog.model import Catalog, Engine, Limits
from splitter.catalog.model import Site as CatalogSite
from splitter.catalog.names import Kind

SITES = 10
HITS = 40
KNOWN = 32
POOL_OF_A_SITE = 1000
"""Pages of a site that are stored before the bench begins."""

ENGINE_HOST = "search.example"


def catalog() -> Catalog:
    """One engine and its sites, one result page a task; limits as high as a catalog allows."""
    engine = Engine(
        kind=Kind.META,
        url=f"http://{ENGINE_HOST}/s",
        params={"q": "{query}"},
        hits_per_page=HITS,
        results=RESULT_RULES,
    )
    sites = {site(n): CatalogSite(engine="search", rules="list") for n in range(SITES)}
    return Catalog(
        name="buffers",
        limits=Limits(per_address_per_s=1000.0, total_per_s=10000.0),
        rules={"list": RULES},
        engines={"search": engine},
        sites=sites,
    )


def known_url(site_number: int, place: int) -> str:
    """A page of a site's pool."""
    return f"http://{site(site_number)}/k/{place}.html"


def new_url(result: int, place: int) -> str:
    """A page only this result page leads to."""
    return f"http://{site(result % SITES)}/n/{result * HITS + place}.html"


def found_for(new_page: int) -> str:
    """What is searched for to find a new page, by the number in its address."""
    return keyword(new_page // HITS // SITES)


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
