"""The simulated web without faults: returns the response for a host and a path. It has no state except caches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

from app.lab.answers import HTML, JSON, LabAnswer, LabResponse, refusal
from app.lab.chrome import UTF8, Chrome, encoding_of
from app.lab.engines import EnginePage, Query, read_query, write_results
from app.lab.pages import Corpus, Listed
from app.lab.profile import HostRole
from app.lab.sites import find_sitemap, list_pages, number_in_list, write_content
from splitter.catalog.model import Catalog, Engine

_CACHED_RESPONSES = 2048
# Pages made by script
_SCRIPT_PATH = "/app.js"
_PART = "part=reviews"
_SHELL = f'<div id="app">加载中……</div>\n<script src="{_SCRIPT_PATH}"></script>'
_SCRIPT = f"""\
fetch(location.pathname + "?{_PART}").then(answer => answer.json()).then(part => {{
  document.getElementById("app").innerHTML = part.html;
}});
""".encode()


class LocalWeb:
    """The engines and sites of a catalog, with the pages of one corpus."""

    def __init__(self, catalog: Catalog, corpus: Corpus) -> None:
        """Set up the hosts. The corpus must be made from the same catalog."""
        self.catalog = catalog
        self._corpus = corpus
        self._engines: dict[str, list[str]] = {}
        self._lists: dict[str, list[str]] = {}
        for name, engine in catalog.engines.items():
            by_host = self._lists if engine.discover == "list" else self._engines
            by_host.setdefault(_bare(urlsplit(engine.url).hostname or ""), []).append(name)
        self._sites = {_bare(site): site for site in catalog.sites}
        self._chromes = {
            site: Chrome(site, entry.title or site, encoding_of(site, entry.encoding))
            for site, entry in catalog.sites.items()
        }
        self._engine_chromes = {
            name: Chrome(urlsplit(engine.url).hostname or "", name, UTF8)
            for name, engine in catalog.engines.items()
        }
        self.document = lru_cache(maxsize=_CACHED_RESPONSES)(self._document)

    def role(self, host: str) -> HostRole | None:
        """Return the role of a host (in lower case without port), or `None` if the catalog does not have the host."""
        if _bare(host) in self._engines:
            return "engine"
        return "site" if _bare(host) in self._sites else None

    def truth(self, site: str, keywords: tuple[str, ...], *, whole: bool = False) -> tuple[str, ...]:
        """Return the different URLs of pages that a crawl can find by reading all result pages of a query on a site.

        Args:
            whole: True to include URLs beyond the engine's cap.

        Raises:
            KeyError: The catalog does not have the site.
        """
        engine = self.catalog.engine_of(site)
        listed = self._find(engine, Query(keywords, site, 1))[: None if whole else engine.max_hits]
        return tuple(dict.fromkeys(self._corpus.url(entry.page) for entry in listed))

    def refusal(self, host: str, target: str, answer: LabAnswer) -> LabResponse:
        """Return the response of a host that refuses a page, in words that the host's rules recognise.

        Raises:
            KeyError: The answer has no document (see `app.lab.answers`).
        """
        name, site = self._engine_at(host, target), self._sites.get(_bare(host))
        if name is not None:
            return refusal(answer, self.catalog.engines[name].results.blocked)
        return refusal(answer, self.catalog.rules_of(site).blocked if site else ())

    def _document(self, host: str, target: str) -> LabResponse:
        """Return the response of a host in the catalog. `target` is the path with query string."""
        path, _, query_string = target.partition("?")
        name, site = self._engine_at(host, target), self._sites.get(_bare(host))
        if name is not None:
            return self._results(name, path, query_string)
        if site is None:
            return refusal(LabAnswer.NOT_FOUND)
        if (list_page := self._list_page(site, target)) is not None:
            return list_page
        return self._page(site, path, query_string)

    # --- engines ----------------------------------------------------------------------------------------------

    def _engine_at(self, host: str, target: str) -> str | None:
        """Return the engine that has a result page at this address, or `None`.

        If several engines have this address, their fixed parameters decide.
        """
        path, _, query_string = target.partition("?")
        engines = self.catalog.engines
        names = [
            name
            for name in self._engines.get(_bare(host), ())
            if (urlsplit(engines[name].url).path or "/") == path
        ]
        given = set(parse_qsl(query_string, keep_blank_values=True)) if len(names) > 1 else set()
        return max(names, key=lambda name: _count_matching(engines[name], given), default=None)

    def _results(self, name: str, path: str, query_string: str) -> LabResponse:
        engine = self.catalog.engines[name]
        query = read_query(engine, query_string)
        listed = self._find(engine, query)
        return self._result_page(name, query, listed, _next_url(engine, path, query_string, query))

    def _list_page(self, site: str, target: str) -> LabResponse | None:
        """Return the response for a sitemap or a page of a site's list, or `None` if the target is neither."""
        for name in self._lists.get(_bare(site), ()):
            engine = self.catalog.engines[name]
            sitemap = find_sitemap(engine, self._corpus, site, target.partition("?")[0])
            if sitemap is not None:
                return sitemap
            if number := number_in_list(engine, target):
                listed = list_pages(self._corpus, site)
                return self._result_page(name, Query((), site, number), listed, target)
        return None

    def _result_page(self, name: str, query: Query, listed: Sequence[Listed], next_url: str) -> LabResponse:
        engine = self.catalog.engines[name]
        start, end = (query.page - 1) * engine.hits_per_page, query.page * engine.hits_per_page
        shown = listed[: engine.max_hits][start:end]
        has_more = bool(shown) and end < min(len(listed), engine.max_hits)
        page = EnginePage(
            number=query.page,
            found=min(len(listed), engine.count_cap or len(listed)),
            hits=[(entry.url, self._corpus.content(entry.page)) for entry in shown],
            next_url=next_url if has_more else "",
        )
        content_type, text = write_results(name, engine.results, page)
        if content_type == HTML:
            body = self._engine_chromes[name].page(" ".join(query.keywords), text)
        else:
            body = text.encode()
        return LabResponse(200, content_type, body)

    def _find(self, engine: Engine, query: Query) -> tuple[Listed, ...]:
        """Return all hits of a query, on its site or on all sites of the engine.

        Of these, the engine lists only the first ones.
        """
        if query.site is None:
            sites = [site for site in self.catalog.sites if self.catalog.engine_of(site) is engine]
        else:
            sites = [site for site in (self._sites.get(_bare(query.site)),) if site is not None]
        return tuple(
            entry for site in sites for entry in self._corpus.list_entries(site, query.keywords, query.span)
        )

    # --- sites ------------------------------------------------------------------------------------------------

    def _page(self, site: str, path: str, query_string: str) -> LabResponse:
        is_rendered = self.catalog.renders(site)
        if is_rendered and path == _SCRIPT_PATH:
            return LabResponse(200, "text/javascript", _SCRIPT, headers=(("Cache-Control", "max-age=600"),))
        if path == "/":
            title = self.catalog.sites[site].title or site
            return self._html(site, title, f"<h1>{escape(title)}</h1>")
        page = self._corpus.find(site, path)
        if page is None:
            return refusal(LabAnswer.NOT_FOUND)
        content, rules = self._corpus.content(page), self.catalog.rules_of(site)
        text = write_content(rules, content)
        if is_rendered and query_string == _PART:
            return LabResponse(200, JSON, json.dumps({"html": text}).encode())
        if is_rendered:
            return self._html(site, content.title, _SHELL)
        if rules.format == "json" and not rules.embedded:
            return LabResponse(200, JSON, text.encode())
        return self._html(site, content.title, text)

    def _html(self, site: str, title: str, content: str) -> LabResponse:
        chrome = self._chromes[site]
        return LabResponse(200, chrome.content_type, chrome.page(title, content))


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _count_matching(engine: Engine, given: set[tuple[str, str]]) -> int:
    """Return the number of an engine's fixed URL parameters that a request has, minus the number that it lacks."""
    fixed = {(name, value) for name, value in engine.params.items() if "{" not in value}
    return len(fixed & given) - len(fixed - given)


def _next_url(engine: Engine, path: str, query_string: str, query: Query) -> str:
    """Return the address of the next result page: the same request with another page number."""
    given = dict(parse_qsl(query_string, keep_blank_values=True, encoding=engine.encoding, errors="replace"))
    offset = engine.first + query.page * engine.step
    for name in engine.paging_params:
        given[name] = engine.params[name].format(query="", page=query.page + 1, offset=offset)
    return f"{path}?{urlencode(given, encoding=engine.encoding, errors='xmlcharrefreplace')}"
