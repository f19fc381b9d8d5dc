"""The well-behaved web: host and path in, document out, with no state but caches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from html import escape
from urllib.parse import urlencode, urlsplit

from app.lab.chrome import UTF8, Chrome, encoding_of
from app.lab.corpus import Corpus, Listed
from app.lab.query import Query, read_query
from app.lab.render import Results, engine_format, entry_of, site_format
from splitter.catalog.model import Catalog, Engine

_CACHED_DOCUMENTS = 2048
UTF8_HTML = "text/html; charset=utf-8"


class Role(StrEnum):
    """What a host is in the catalog; one that is both (a site's own search) counts as engine."""

    ENGINE = "engine"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Document:
    """An answer: status, value of Content-Type, body as sent."""

    status: int
    content_type: str
    body: bytes


class LocalWeb:
    """Every engine and site of a catalog, filled by one corpus."""

    def __init__(self, catalog: Catalog, corpus: Corpus) -> None:
        """Set up the hosts; the corpus is of the same catalog."""
        self.catalog = catalog
        self._corpus = corpus
        self._engines: dict[str, dict[str, str]] = {}
        for name, engine in catalog.engines.items():
            address = urlsplit(engine.url)
            self._engines.setdefault(_bare(address.hostname or ""), {})[address.path or "/"] = name
        self._sites = {_bare(site): site for site in catalog.sites}
        self._chromes = {
            site: Chrome(site, entry.title or site, encoding_of(site))
            for site, entry in catalog.sites.items()
        }
        self._engine_chromes = {
            name: Chrome(urlsplit(engine.url).hostname or "", name, UTF8)
            for name, engine in catalog.engines.items()
        }
        self.document = lru_cache(maxsize=_CACHED_DOCUMENTS)(self._document)

    def role(self, host: str) -> Role | None:
        """What a host (lower case, no port) is; None where the catalog does not know it."""
        if _bare(host) in self._engines:
            return Role.ENGINE
        return Role.SITE if _bare(host) in self._sites else None

    def truth(self, site: str, keywords: tuple[str, ...]) -> tuple[str, ...]:
        """The page URLs that paging through the result pages of a query on a site gives, repeats left out.

        Raises:
            KeyError: the catalog has no such site.
        """
        engine = self.catalog.engine_of(site)
        listed = self._found(engine, Query(keywords, site, 1))[: engine.max_hits]
        return tuple(dict.fromkeys(self._corpus.url(entry.page) for entry in listed))

    def captcha(self, host: str) -> str:
        """What the captcha page of a host says: an engine's own words, or those of every site."""
        engine = next(iter(self._engines.get(_bare(host), {}).values()), None)
        return (
            engine_format(engine, self.catalog.engines[engine].kind).captcha
            if engine
            else "请输入验证码后继续访问。"
        )

    def _document(self, host: str, target: str) -> Document:
        """What a host of the catalog answers to a request for a path with query string."""
        path, _, query_string = target.partition("?")
        engine = self._engines.get(_bare(host), {}).get(path)
        if engine is not None:
            return self._results(engine, path, query_string)
        site = self._sites.get(_bare(host))
        return self._missing(host) if site is None else self._page(site, path)

    def _page(self, site: str, path: str) -> Document:
        chrome = self._chromes[site]
        if path == "/":
            title = self.catalog.sites[site].title or site
            return Document(200, chrome.content_type, chrome.page(title, f"<h1>{escape(title)}</h1>"))
        page = self._corpus.find(site, path)
        if page is None:
            return self._missing(site)
        content = self._corpus.content(page)
        write = site_format(self.catalog.sites[site].rules, self.catalog.kind_of(site))
        return Document(200, chrome.content_type, chrome.page(content.title, write(content)))

    def _results(self, name: str, path: str, query_string: str) -> Document:
        engine = self.catalog.engines[name]
        query = read_query(engine, query_string)
        found = self._found(engine, query)
        listed = found[: engine.max_hits]
        start = (query.page - 1) * engine.hits_per_page
        shown = listed[start : start + engine.hits_per_page]
        results = Results(
            keywords=query.keywords,
            found=len(found),
            entries=tuple(entry_of(entry.url, self._corpus.content(entry.page)) for entry in shown),
            next_url=_next_url(engine, path, query) if start + len(shown) < len(listed) and shown else "",
        )
        html = engine_format(name, engine.kind).results(results)
        return Document(200, UTF8_HTML, self._engine_chromes[name].page(" ".join(query.keywords), html))

    def _found(self, engine: Engine, query: Query) -> tuple[Listed, ...]:
        """What an engine has for a query: of one site, or of all reached through it; it lists the first."""
        if query.site is None:
            sites = [site for site in self.catalog.sites if self.catalog.engine_of(site) is engine]
        else:
            sites = [site for site in (self._sites.get(_bare(query.site)),) if site is not None]
        return tuple(entry for site in sites for entry in self._corpus.listing(site, query.keywords))

    def _missing(self, host: str) -> Document:
        body = f"<html><head><title>404</title></head><body>404 Not Found: {escape(host)}</body></html>"
        return Document(404, UTF8_HTML, body.encode())


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _next_url(engine: Engine, path: str, query: Query) -> str:
    offset = engine.first + query.page * engine.step
    words = engine.join.join((*query.keywords, *engine.extra_words))
    text = words if query.site is None else engine.site.format(words=words, site=query.site)
    values = {
        name: template.format(query=text, page=query.page + 1, offset=offset)
        for name, template in engine.params.items()
    }
    return f"{path}?{urlencode(values, encoding=engine.encoding, errors='replace')}"
