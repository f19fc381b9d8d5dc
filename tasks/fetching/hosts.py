"""Hosts by the name that limits, rests and statistics use, and how often each may be asked."""

from __future__ import annotations

from urllib.parse import urlsplit

from splitter.catalog.model import Catalog, Limits

from tasks.domain.address import authority_of


class HostBook:
    """Names and limits of hosts, from the catalog.

    The catalog's own name is used where a URL's host is that site or one of its subdomains (www.cca.org.cn is
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
        self._private = {name for name, site in catalog.sites.items() if site.private}
        self._private |= {
            self._engine_host[name] for name, engine in catalog.engines.items() if engine.private
        }
        decided = {name: site.robots for name, site in catalog.sites.items()}
        # An engine's host that is a site, too, goes by the site's decision.
        decided = {self._engine_host[name]: one.robots for name, one in catalog.engines.items()} | decided
        self._unruly = {name for name, robots in decided.items() if robots is not None and not robots.obey}
        self._named: dict[str, str] = {}

    def may_be_private(self, url: str) -> bool:
        """True where the catalog allows the host of a URL to be on a private address."""
        return bool(self._private) and self.name(url) in self._private

    def obeys_robots(self, url: str) -> bool:
        """True unless the catalog decides that the robots.txt of a URL's host is not obeyed."""
        return not self._unruly or self.name(url) not in self._unruly

    def name(self, url: str) -> str:
        """The host of a URL under the catalog's name for it; the plain host name where it has none."""
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

    def of_engine(self, engine: str) -> str:
        """The host an engine's result pages come from."""
        return self._engine_host[engine]

    def of_site(self, site: str) -> tuple[str, str]:
        """(engine's host, site's host) of a site; a site that left the catalog has only itself."""
        engine = self._engine_of.get(site)
        return (self.of_engine(engine) if engine is not None else site), site


def slower(limits: Limits, crawl_delay_s: float | None) -> Limits:
    """The limits, slowed down per address to a robots.txt's Crawl-delay; never faster."""
    if not crawl_delay_s:
        return limits
    rate = 1.0 / crawl_delay_s
    return Limits(
        per_address_per_s=min(limits.per_address_per_s, max(rate, 0.001)), total_per_s=limits.total_per_s
    )
