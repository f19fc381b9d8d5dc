"""Plan of a crawl before its first request: sites, number of requests, and how long they take at the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.run.preflight import Preflight
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.content.products import NewProduct
from tasks.store.queue.tasks import VirtualTask


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """The most that a site will be asked for.

    Attributes:
        searches: result pages; `pages`: pages behind their hits, where these lie on other pages.
    """

    site: str
    engine: str
    searches: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One thing that is in the way, and what mends it."""

    kind: ObstacleKind
    why: str
    mend: str
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """The requests that a crawl of some products will make.

    Attributes:
        asked: the sites that can be asked; `unasked`: the others, and what is in their way.
        requests: at most: every result page is there, full, and none of its pages known.
        seconds: these requests take at the limits of their hosts.
        slowest: the host that takes so long; empty: nothing is asked.
        notes: what a person should know besides.
    """

    products: int
    asked: tuple[SitePlan, ...]
    unasked: Mapping[str, tuple[Obstacle, ...]]
    requests: int
    seconds: float
    slowest: str
    notes: tuple[str, ...]

    @property
    def missing(self) -> list[Missing]:
        """Obstacles, that of most sites first."""
        sites: dict[Obstacle, list[str]] = {}
        for site, those in self.unasked.items():
            for one in those:
                sites.setdefault(one, []).append(site)
        found = [
            Missing(kind=one.kind, why=one.why, mend=one.mend, sites=tuple(those))
            for one, those in sites.items()
        ]
        return sorted(found, key=lambda one: -len(one.sites))

    def document(self) -> dict[str, Any]:
        """The plan as `--json` prints it; times in seconds."""
        return {
            "products": self.products,
            "asked": list(self.asked),
            "not_asked": [
                {"site": site, "why": those[0].why, "mend": those[0].mend, "obstacles": list(those)}
                for site, those in self.unasked.items()
            ],
            "missing": self.missing,
            "requests": self.requests,
            "seconds": round(self.seconds, 1),
            "slowest_host": self.slowest,
            "notes": self.notes,
        }


def crawl_plan(
    catalog: Catalog, found: Preflight, wanted: Sequence[VirtualTask], addresses: int
) -> CrawlPlan:
    """Count the requests of virtual tasks on the sites that can be asked.

    Args:
        addresses: that requests come from; each host grants so much to each, and so much in all.
    """
    hosts = HostCatalog(catalog)
    searches: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    of_host: Counter[str] = Counter()
    alike = Counter((len({one.keywords, *one.aliases}), one.pages, one.sites) for one in wanted)
    for (keyword_sets, most, only), products in alike.items():
        for site in found.asked:
            if only is not None and site not in only:
                continue
            entry, engine = catalog.sites[site], catalog.engine_of(site)
            asked = products * keyword_sets * (most or entry.pages)
            behind = 0 if engine.inline else asked * engine.hits_per_page
            searches[site] += asked
            pages[site] += behind
            of_host[hosts.of_engine(entry.engine)] += asked
            of_host[site] += behind
    took_s = {host: n / _rate(hosts, host, addresses) for host, n in of_host.items()}
    slowest = max(took_s, key=lambda host: took_s[host], default="")
    return CrawlPlan(
        products=len(wanted),
        asked=tuple(
            SitePlan(site=site, engine=catalog.sites[site].engine, searches=searches[site], pages=pages[site])
            for site in found.asked
            if searches[site] or not wanted
        ),
        unasked={site: those for site, those in found.unasked.items() if _wanted(site, wanted)},
        requests=sum(of_host.values()),
        seconds=took_s.get(slowest, 0.0),
        slowest=slowest,
        notes=tuple(_notes(found)),
    )


def _rate(hosts: HostCatalog, host: str, addresses: int) -> float:
    """Requests a second that a host bears from so many addresses."""
    limits = hosts.limits(host)
    return min(limits.per_address_per_s * addresses, limits.total_per_s)


def as_virtual_task(product: NewProduct) -> VirtualTask:
    """The virtual task a product would begin with, not stored."""
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
    )


def _wanted(site: str, wanted: Sequence[VirtualTask]) -> bool:
    return not wanted or any(one.sites is None or site in one.sites for one in wanted)


def _notes(found: Preflight) -> Iterable[str]:
    for name, one in found.searxng.items():
        if one.why:
            continue
        if one.version or one.engines:
            yield f"{name}: SearXNG {one.version} with {', '.join(one.engines) or 'no engine of category general'}"
        if one.hits == 0 and one.silent:
            yield f"{name}: none of its engines answered a sample search"
        for engine, why in one.silent.items():
            yield f"{name}: {engine} did not answer ({why})"
