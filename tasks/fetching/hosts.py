"""Hosts by the name that limits, rests and statistics use, and how often each may be asked."""

from __future__ import annotations

from urllib.parse import urlsplit

from splitter.catalog.model import Catalog, Limits

from tasks.domain.address import authority_of


class HostCatalog:
    """Names and limits of hosts, from the catalog.

    The catalog's own name is used if a URL's host is that site or one of its subdomains (www.cca.org.cn is
    cca.org.cn): limits, rests and statistics then meet in one place.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._default = catalog.limits
        self._limits: dict[str, Limits] = {
            name: site.limits or catalog.limits for name, site in catalog.sites.items()
        }
        self._engine_host: dict[str, str] = {}
        for name, engine in catalog.engines.items():
            host = (urlsplit(engine.url).hostname or "").lower()
            self._engine_host[name] = host
            if engine.limits is not None or host not in self._limits:
                self._limits[host] = engine.limits or catalog.limits
        self._engine_of = {name: site.engine for name, site in catalog.sites.items()}
        self._private_sites = {name for name, site in catalog.sites.items() if site.private}
        engines = {name: engine for name, engine in catalog.engines.items() if engine.private}
        self._private = self._private_sites | {self._engine_host[name] for name in engines}
        self._private_searches = {_place(engine.url) for engine in engines.values()}
        decided = {name: site.robots for name, site in catalog.sites.items()}
        # If an engine's host is also a site, the site's decision applies.
        decided = {self._engine_host[name]: one.robots for name, one in catalog.engines.items()} | decided
        self._unruly = {name for name, robots in decided.items() if robots is not None and not robots.obey}
        self._named: dict[str, str] = {}

    def may_be_private(self, url: str) -> bool:
        """Return True if the host of a URL may be on a private address according to the catalog.

        Whether it may be asked there is another question: `is_private_search`, `is_private_page`.
        """
        return bool(self._private) and self.name(url) in self._private

    def is_private_search(self, url: str) -> bool:
        """True for the search of an engine that may be private: its scheme, host, port and path, whatever the query."""
        return bool(self._private_searches) and _place(url) in self._private_searches

    def is_private_page(self, site: str, url: str) -> bool:
        """True for an address of a site that may be private (or of its subdomains), on the port of its scheme."""
        if site not in self._private_sites or self.name(url) != site:
            return False
        return urlsplit(url).port in (None, {"http": 80, "https": 443}[url.partition(":")[0]])

    def is_private_robots(self, url: str) -> bool:
        """True for the robots.txt of either."""
        if not self.may_be_private(url) or not url.endswith("/robots.txt"):
            return False
        scheme, authority, path = _place(url)
        searched = any((scheme, authority) == place[:2] for place in self._private_searches)
        return path == "/robots.txt" and (searched or self.is_private_page(self.name(url), url))

    def is_private(self, url: str) -> bool:
        """Return True for a URL of any private host. A person may request such URLs by hand."""
        return (
            self.is_private_search(url)
            or self.is_private_robots(url)
            or self.is_private_page(self.name(url), url)
        )

    def obeys_robots(self, url: str) -> bool:
        """True unless the catalog decides that the robots.txt of a URL's host is not obeyed."""
        return not self._unruly or self.name(url) not in self._unruly

    def name(self, url: str) -> str:
        """Return the catalog's name for the host of a URL; the plain host name if the catalog has none."""
        # Kept, as the pages of a crawl are on few hosts.
        authority = authority_of(url)
        named = self._named.get(authority)
        if named is None or not authority:
            host = (urlsplit(url).hostname or "").lower().rstrip(".")
            if len(self._named) > 100_000:
                self._named.clear()
            named = self._named[authority] = self._look_up(host)
        return named

    def _look_up(self, host: str) -> str:
        rest = host
        while rest:
            if rest in self._limits:
                return rest
            _, _, rest = rest.partition(".")
        return host

    def limits(self, host: str) -> Limits:
        """How often a host (by `name`) may be asked."""
        return self._limits.get(host, self._default)

    def engine_host(self, engine: str) -> str:
        """Return the host of an engine's result pages."""
        return self._engine_host[engine]

    def site_hosts(self, site: str) -> tuple[str, str]:
        """(engine's host, site's host) of a site; a site that left the catalog has only itself."""
        engine = self._engine_of.get(site)
        return (self.engine_host(engine) if engine is not None else site), site


def _place(url: str) -> tuple[str, str, str]:
    """Scheme, host with port, and path of an address."""
    scheme, authority = url.partition(":")[0], authority_of(url)
    return scheme, authority, urlsplit(url).path or "/"


def slower(limits: Limits, crawl_delay_s: float | None) -> Limits:
    """The limits, slowed down per address to a robots.txt's Crawl-delay; never faster."""
    if not crawl_delay_s:
        return limits
    rate = 1.0 / crawl_delay_s
    return Limits(
        per_address_per_s=min(limits.per_address_per_s, max(rate, 0.001)), total_per_s=limits.total_per_s
    )
