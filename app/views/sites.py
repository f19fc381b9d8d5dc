"""Views of the sites of a catalog: limits, robots.txt, counts of stored rows, and the newest attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.views.fields import extend_row
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.jobs.planning import addresses, permission
from tasks.store.queries import pairs, queues
from tasks.store.queries.pairs import AttemptSums
from tasks.store.queries.queues import SiteRow
from tasks.store.queue.hosts import load_robots

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog
    from tasks.store.sql.transaction import Transaction

SITE_FIELDS = (
    "site title group kind engine per_address_per_s total_per_s robots tasks pages reviews manual "
    "outcomes reasons"
)
_ROBOTS_OF_ANY_AGE = timedelta(days=36_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView(SiteRow):
    """A site with its robots.txt, the counts of stored rows, and the outcomes of its newest attempts.

    Attributes:
        engine: name of its engine. It is empty, like `title`, `kind`, `rules` and `robots`, if the site left the
            catalog.
        per_address_per_s, total_per_s: maximum requests per second of one address and of all addresses; `None` if the
            site left the catalog.
        robots: "permitted", "not permitted" or "unknown"; `robots_why` is the reason.
        robots_obeyed: True if the site's robots.txt is obeyed; `robots_decision` is the catalog's reason.
        outcomes, reasons: number of the newest attempts by outcome, and by reason of failure.
    """

    title: str = ""
    group: str | None = None
    kind: str = ""
    engine: str = ""
    rules: str = ""
    per_address_per_s: float | None = None
    total_per_s: float | None = None
    robots: str = ""
    robots_why: str = ""
    robots_obeyed: bool = True
    robots_decision: str = ""
    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SitesView:
    """All sites of a catalog, and sites that are no longer in it but have attempts, ordered by name."""

    catalog: str
    sites: Sequence[SiteView]


def get_sites_view(tx: Transaction | None, catalog: Catalog) -> SitesView:
    """Return all sites as people see them.

    Args:
        tx: transaction of the store; `None` if there is no store yet.
    """
    rules: Mapping[str, RobotsRules] = {}
    rows: Mapping[str, SiteRow] = {}
    recent: Mapping[str, AttemptSums] = {}
    if tx is not None:
        rules, rows = _load_robots(tx, catalog), queues.count_by_site(tx)
        recent = pairs.sums_by(pairs.list_recent_attempts(tx), lambda one: one.site)
    views = []
    for name in sorted({*catalog.sites, *rows, *recent}):
        sums = recent.get(name, AttemptSums())
        views.append(
            extend_row(
                SiteView,
                rows.get(name, SiteRow(name)),
                outcomes=sums.outcomes,
                reasons=sums.reasons,
                **(_describe_entry(catalog, name, rules) if name in catalog.sites else {}),
            )
        )
    return SitesView(catalog.name, views)


def _load_robots(tx: Transaction, catalog: Catalog) -> dict[str, RobotsRules]:
    """Return the rules of each robots.txt file as it was fetched last, by the address of the file."""
    urls = {url for site in catalog.sites for url in addresses(catalog, site)}
    hosts = {urlsplit(url).netloc.lower() for url in urls}
    stored = load_robots(tx, hosts, tx.now - _ROBOTS_OF_ANY_AGE)
    found = {url: stored.get(urlsplit(url).netloc.lower()) for url in urls}
    return {url: RobotsRules.parse(one.text, one.status) for url, one in found.items() if one is not None}


def _describe_entry(catalog: Catalog, name: str, rules: Mapping[str, RobotsRules]) -> dict[str, object]:
    """Return those fields of a site's view that come from the catalog."""
    site, limits = catalog.sites[name], HostCatalog(catalog).limits(name)
    allowed = permission(catalog, name, rules, ROBOTS_TOKEN)
    return {
        "title": site.title,
        "group": site.group,
        "kind": str(catalog.kind_of(name)),
        "engine": site.engine,
        "rules": site.rules,
        "per_address_per_s": limits.per_address_per_s,
        "total_per_s": limits.total_per_s,
        "robots": allowed.state,
        "robots_why": str(allowed.because),
        "robots_obeyed": site.robots is None or site.robots.obey,
        "robots_decision": site.robots.reason if site.robots else "",
    }
