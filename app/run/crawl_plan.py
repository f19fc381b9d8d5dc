"""Count the requests that a crawl will make, and the time that they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.run.preflight import Preflight
from app.views.crawl_plan import CrawlPlan, SitePlan, missing, site_obstacles
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.store.content.products import NewProduct
from tasks.store.queue.tasks import VirtualTask


def crawl_plan(
    catalog: Catalog, found: Preflight, wanted: Sequence[VirtualTask], addresses: int
) -> CrawlPlan:
    """Return the number of searches and pages to fetch at each site that can be crawled, and the time that they take.

    Args:
        wanted: products to crawl, as virtual tasks. If empty, the plan lists every site with zero searches.
        addresses: number of addresses that requests come from. A host limits each address and their sum.
    """
    hosts = HostCatalog(catalog)
    searches: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    alike = Counter((len({one.keywords, *one.aliases}), one.pages, one.sites, one.category) for one in wanted)
    wanted_at = set() if wanted else {*catalog.sites}
    for (keyword_sets, most_pages, only, category), products in alike.items():
        of_product = catalog.sites_for(only, category)
        wanted_at.update(of_product)
        for site in filter(of_product.__contains__, found.asked):
            entry, engine = catalog.sites[site], catalog.engine_of(site)
            asked = products * keyword_sets * (most_pages or entry.pages)
            behind = 0 if engine.inline else asked * engine.hits_per_page
            searches[site] += asked
            pages[site] += behind
            requests[hosts.engine_host(entry.engine)] += asked
            requests[site] += behind
    seconds = {host: n / _requests_per_s(hosts, host, addresses) for host, n in requests.items()}
    slowest = max(seconds, key=lambda host: seconds[host], default="")
    unasked = {site: those for site, those in found.unasked.items() if site in wanted_at}
    return CrawlPlan(
        products=len(wanted),
        asked=tuple(
            SitePlan(site=site, engine=catalog.sites[site].engine, searches=searches[site], pages=pages[site])
            for site in found.asked
            if searches[site] or not wanted
        ),
        not_asked=site_obstacles(unasked),
        missing=missing(unasked),
        requests=requests.total(),
        seconds=round(seconds.get(slowest, 0.0), 1),
        slowest_host=slowest,
    )


def _requests_per_s(hosts: HostCatalog, host: str, addresses: int) -> float:
    limits = hosts.limits(host)
    return min(limits.per_address_per_s * addresses, limits.total_per_s)


def as_virtual_task(product: NewProduct) -> VirtualTask:
    """Return a product that is not stored yet as a virtual task: the order to crawl one product at all its sites."""
    return VirtualTask(
        id=0,
        product_id=0,
        product=product.name,
        keywords=product.keywords,
        aliases=product.alias_keywords,
        pages=product.pages,
        priority=product.priority,
        own_keywords=bool(product.own_keywords),
        sites=product.sites,
        category=product.category,
    )
