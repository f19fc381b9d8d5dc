"""The well-behaved web: host and path in, document out, with no state but caches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from app.lab.answers import HTML, JSON, Answer, Document, redirect, refusal
from app.lab.chrome import UTF8, Chrome, encoding_of
from app.lab.corpus import Corpus, Listed
from app.lab.engines.formats import engine_format
from app.lab.engines.model import Results, address, hit_of
from app.lab.lists import listed, page_of, sitemap
from app.lab.profile import Role
from app.lab.query import Query, read_query
from app.lab.sites import site_format
from splitter.catalog.model import Catalog, Engine

_CACHED_DOCUMENTS = 2048
# Of pages made by script.
_SCRIPT_PATH = "/app.js"
_PART = "part=reviews"
_SHELL = f'<div id="app">加载中……</div>\n<script src="{_SCRIPT_PATH}"></script>'
_SCRIPT = f"""\
fetch(location.pathname + "?{_PART}").then(answer => answer.json()).then(part => {{
  document.getElementById("app").innerHTML = part.html;
}});
""".encode()


class LocalWeb:
    """Every engine and site of a catalog, filled by one corpus."""

    def __init__(self, catalog: Catalog, corpus: Corpus) -> None:
        """Set up the hosts; the corpus is of the same catalog."""
        self.catalog = catalog
        self._corpus = corpus
        self._formats = {name: engine_format(name, engine) for name, engine in catalog.engines.items()}
        self._engines: dict[str, list[str]] = {}
        self._lists: dict[str, list[str]] = {}
        self._own: dict[tuple[str, str], Document] = {}
        for name, engine in catalog.engines.items():
            by_host = self._lists if engine.discover == "list" else self._engines
            by_host.setdefault(_bare(urlsplit(engine.url).hostname or ""), []).append(name)
            for (host, path), document in self._formats[name].own.items():
                self._own[_bare(host), path] = document
        self._sites = {_bare(site): site for site in catalog.sites}
        self._writers = {site: site_format(catalog.rules_of(site)) for site in catalog.sites}
        self._chromes = {
            site: Chrome(site, entry.title or site, encoding_of(site, entry.encoding))
            for site, entry in catalog.sites.items()
        }
        self._engine_chromes = {
            name: Chrome(urlsplit(engine.url).hostname or "", name, UTF8)
            for name, engine in catalog.engines.items()
        }
        self.document = lru_cache(maxsize=_CACHED_DOCUMENTS)(self._document)

    def role(self, host: str) -> Role | None:
        """The role of a host (lower case, no port); None where the catalog does not know it."""
        bare = _bare(host)
        if bare in self._engines or any(bare == own for own, _ in self._own):
            return Role.ENGINE
        return Role.SITE if bare in self._sites else None

    def truth(self, site: str, keywords: tuple[str, ...], *, whole: bool = False) -> tuple[str, ...]:
        """The page URLs that paging through the result pages of a query on a site gives, repeats left out.

        Args:
            whole: those beyond the engine's cap, too.

        Raises:
            KeyError: the catalog has no such site.
        """
        engine = self.catalog.engine_of(site)
        listed = self._found(engine, Query(keywords, site, 1))[: None if whole else engine.max_hits]
        return tuple(dict.fromkeys(self._corpus.url(entry.page) for entry in listed))

    def refusal(self, host: str, target: str, answer: Answer) -> Document:
        """A document that a host of the catalog answers instead of a page: an engine in its own way.

        Raises:
            KeyError: an answer that is no document (see `app.lab.answers`).
        """
        name = self._engine_at(host, target)
        if name is not None:
            engine = self.catalog.engines[name]
            own = self._formats[name].refusals.get(answer)
            return own or refusal(answer, engine.results.blocked)
        site = self._sites.get(_bare(host))
        return refusal(answer, self.catalog.rules_of(site).blocked if site else ())

    def _document(self, host: str, target: str) -> Document:
        """The document that a host of the catalog answers to a request for a path with query string."""
        path, _, query_string = target.partition("?")
        name = self._engine_at(host, target)
        if name is not None:
            return self._results(name, path, query_string)
        site = self._sites.get(_bare(host))
        if site is not None and (of_list := self._of_list(site, target)) is not None:
            return of_list
        if (own := self._own.get((_bare(host), path))) is not None:
            return own
        if (to := self._redirected(host, path, query_string)) is not None:
            return to
        if site is None:
            return refusal(Answer.NOT_FOUND)
        if self.catalog.renders(site):
            return self._made_by_script(site, path, query_string)
        return self._page(site, path)

    def _engine_at(self, host: str, target: str) -> str | None:
        """The engine whose result page is asked for: of several at one address, the one whose fixed parameters fit."""
        path, _, query_string = target.partition("?")
        engines = self.catalog.engines
        names = [
            name
            for name in self._engines.get(_bare(host), ())
            if (urlsplit(engines[name].url).path or "/") == path
        ]
        if len(names) < 2:
            return names[0] if names else None
        given = parse_qs(query_string, keep_blank_values=True)
        return max(names, key=lambda name: _fit(engines[name], given))

    def _redirected(self, host: str, path: str, query_string: str) -> Document | None:
        """The document that answers a redirect link of an engine's own; None for any other path."""
        for name in self._engines.get(_bare(host), ()):
            own_path, parameter = self._formats[name].link
            if parameter and path == own_path:
                to = address(parse_qs(query_string).get(parameter, [""])[0])
                return redirect(to) if to else refusal(Answer.NOT_FOUND)
        return None

    def _page(self, site: str, path: str) -> Document:
        chrome = self._chromes[site]
        if path == "/":
            title = self.catalog.sites[site].title or site
            return Document(200, chrome.content_type, chrome.page(title, f"<h1>{escape(title)}</h1>"))
        page = self._corpus.find(site, path)
        if page is None:
            return refusal(Answer.NOT_FOUND)
        content = self._corpus.content(page)
        rules = self.catalog.rules_of(site)
        if rules.format == "json" and not rules.embedded:
            return Document(200, JSON, self._writers[site](content).encode())
        return Document(200, chrome.content_type, chrome.page(content.title, self._writers[site](content)))

    def _made_by_script(self, site: str, path: str, query_string: str) -> Document:
        """A page of which the document says nothing: its script asks for what stands in it."""
        if path == _SCRIPT_PATH:
            return Document(200, "text/javascript", _SCRIPT, headers=(("Cache-Control", "max-age=600"),))
        page = self._corpus.find(site, path)
        if page is None:
            return self._page(site, path)
        content = self._corpus.content(page)
        if query_string == _PART:
            return Document(200, JSON, json.dumps({"html": self._writers[site](content)}).encode())
        chrome = self._chromes[site]
        return Document(200, chrome.content_type, chrome.page(content.title, _SHELL))

    def _results(self, name: str, path: str, query_string: str) -> Document:
        engine = self.catalog.engines[name]
        query = read_query(engine, query_string)
        found = self._found(engine, query)
        return self._page_of(name, query, found, lambda: _next_url(engine, path, query_string, query))

    def _of_list(self, site: str, target: str) -> Document | None:
        """A sitemap, or a page of a list, of a site; None for what is neither."""
        for name in self._lists.get(_bare(site), ()):
            engine = self.catalog.engines[name]
            if (document := sitemap(engine, self._corpus, site, target.partition("?")[0])) is not None:
                return document
            if number := page_of(engine, target):
                query, found = Query((), site, number), listed(self._corpus, site)
                return self._page_of(name, query, found, lambda: target)
        return None

    def _page_of(
        self, name: str, query: Query, found: Sequence[Listed], next_url: Callable[[], str]
    ) -> Document:
        engine = self.catalog.engines[name]
        shown_of = found[: engine.max_hits]
        start = (query.page - 1) * engine.hits_per_page
        shown = shown_of[start : start + engine.hits_per_page]
        more = bool(shown) and start + len(shown) < len(shown_of)
        results = Results(
            engine=engine,
            keywords=query.keywords,
            page=query.page,
            found=min(len(found), engine.count_cap or len(found)),
            entries=tuple(hit_of(entry.url, self._corpus.content(entry.page)) for entry in shown),
            next_url=next_url() if more else "",
        )
        written = self._formats[name]
        text = written.results(results)
        if written.content_type != HTML:
            return Document(200, written.content_type, text.encode(), headers=written.headers)
        page = self._engine_chromes[name].page(" ".join(query.keywords), text)
        return Document(200, HTML, page, headers=written.headers)

    def _found(self, engine: Engine, query: Query) -> tuple[Listed, ...]:
        """The hits that an engine has for a query: of one site, or of all reached through it; it lists the first."""
        if query.site is None:
            sites = [site for site in self.catalog.sites if self.catalog.engine_of(site) is engine]
        else:
            sites = [site for site in (self._sites.get(_bare(query.site)),) if site is not None]
        return tuple(
            entry for site in sites for entry in self._corpus.listed(site, query.keywords, query.span)
        )


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _fit(engine: Engine, given: dict[str, list[str]]) -> int:
    """How many of an engine's fixed parameters a request has, less those it lacks."""
    fixed = [(name, value) for name, value in engine.params.items() if "{" not in value]
    return sum(1 if value in given.get(name, ()) else -1 for name, value in fixed)


def _next_url(engine: Engine, path: str, query_string: str, query: Query) -> str:
    """The same request for the next page."""
    given = dict(parse_qsl(query_string, keep_blank_values=True, encoding=engine.encoding, errors="replace"))
    offset = engine.first + query.page * engine.step
    for name in engine.paging_params:
        given[name] = engine.params[name].format(query="", page=query.page + 1, offset=offset)
    return f"{path}?{urlencode(given, encoding=engine.encoding, errors='xmlcharrefreplace')}"
