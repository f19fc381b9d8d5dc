"""From keywords to search URLs, in the form of each engine.

An engine's template is taken apart once; after that a URL is a handful of joined strings. A character that
the engine's encoding lacks is written as a browser writes it when it sends a form in that encoding (WHATWG
URL, "percent-encode after encoding"): as its HTML number, ``&#8364;``, percent-encoded. No word ever goes
missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from string import Formatter
from urllib.parse import quote_plus

from splitter.catalog.model import Catalog, Engine, TimeFilter
from splitter.query import KeywordSet, ProductQuery
from splitter.spans import Span, ceiling, floor

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_QUERY, _PAGE, _OFFSET = "query", "page", "offset"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One search URL of a task.

    Attributes:
        keywords: what it searches for.
        page: number of the result page, from 1; None: the engine's first page, asked without paging.
    """

    keywords: KeywordSet
    page: int | None
    url: str


def search_url(
    engine: Engine,
    keywords: Sequence[str],
    *,
    site: str | None,
    page: int | None,
    span: Span | None = None,
) -> str:
    """The URL of a result page.

    Args:
        engine: the engine asked.
        keywords: words that must all be on a page found.
        site: domain the search is restricted to; None: no restriction.
        page: number of the result page, from 1; None: the parameters of paging are left out.
        span: range of time the search is restricted to; None: no restriction.

    Raises:
        ValueError: page is below 1, or the engine cannot restrict a search to a range of time.
    """
    if page is not None and page < 1:
        raise ValueError(f"page {page}: result pages are counted from 1")
    form = _form(
        engine.url,
        tuple(engine.params.items()),
        engine.paging_params if page is None else (),
        engine.join,
        engine.site if site is not None else "{words}",
        engine.extra_words,
        engine.encoding,
        engine.first,
        engine.step,
    )
    url = form.url(keywords, site or "", page or 1)
    return url if span is None else url + _times(engine, span)


def _times(engine: Engine, span: Span) -> str:
    if engine.times is None:
        raise ValueError(f"{engine.url} cannot restrict a search to a range of time")
    return "".join(
        f"&{_quoted(name, engine.encoding)}={_quoted(value, engine.encoding)}"
        for name, value in time_params(engine.times, span).items()
    )


def time_params(times: TimeFilter, span: Span) -> dict[str, str]:
    """The query parameters that restrict a search to a range: never to less of it, where units are coarser."""
    filled = {"from_s": str(math.floor(span.start.timestamp())), "to_s": _end_s(times, span.end)}
    for name, unit in _UNITS.items():
        filled[f"from_{name}"] = _written(floor(span.start, unit), name)
        filled[f"to_{name}"] = _written(_end(times, span.end, unit), name)
    return {name: value.format(**filled) for name, value in times.params.items()}


def _end_s(times: TimeFilter, end: datetime) -> str:
    return str(math.ceil(end.timestamp()) - times.inclusive)


def _end(times: TimeFilter, end: datetime, unit: timedelta) -> datetime:
    """The written end: the first full unit outside the range, or the last one with something of it inside."""
    after = ceiling(end, unit)
    return after - unit if times.inclusive else after


def _written(moment: datetime, unit: str) -> str:
    return f"{moment:%Y-%m-%d}" + (f"-{moment.hour}" if unit == "hour" else "")


def search_urls(
    catalog: Catalog,
    site: str,
    query: ProductQuery,
    pages: int,
    *,
    no_site: bool = False,
    no_paging: bool = False,
) -> Iterator[SearchPage]:
    """The search URLs of a product on a site: pages 1 to ``pages`` of its name, then of each alias.

    No URL comes twice.

    Args:
        catalog: where the site is.
        site: its domain.
        query: the product.
        pages: result pages of each keyword set; without paging there is one.
        no_site: the engine is asked without restriction to the site.
        no_paging: the parameters of paging are left out.

    Raises:
        KeyError: the catalog has no such site.
        ValueError: pages is below 1.
    """
    if pages < 1:
        raise ValueError(f"pages {pages}: at least 1 is asked")
    engine = catalog.engine_of(site)
    restriction = None if no_site else site
    numbers: Sequence[int | None] = (None,) if no_paging else range(1, pages + 1)
    known: set[str] = set()
    for words in query.keyword_sets:
        for number in numbers:
            url = search_url(engine, words, site=restriction, page=number)
            if url not in known:
                known.add(url)
                yield SearchPage(words, number, url)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """An engine's URL, taken apart.

    Attributes:
        parts: literal text of the URL, and between it the names of what is filled in.
        join: the AND operator, percent-encoded.
        before, after: what stands around the words in the query, percent-encoded; None: the site.
        extra: words added to every query, percent-encoded.
    """

    parts: tuple[tuple[str, str], ...]
    join: str
    before: tuple[str | None, ...]
    after: tuple[str | None, ...]
    extra: tuple[str, ...]
    encoding: str
    first: int
    step: int

    def url(self, keywords: Sequence[str], site: str, page: int) -> str:
        filled = {_QUERY: self._query(keywords, site)}
        filled[_PAGE] = str(page)
        filled[_OFFSET] = str(self.first + (page - 1) * self.step)
        return "".join([literal + (filled[name] if name else "") for literal, name in self.parts])

    def _query(self, keywords: Sequence[str], site: str) -> str:
        words = self.join.join([*[_quoted(word, self.encoding) for word in keywords], *self.extra])
        before = "".join([site if part is None else part for part in self.before])
        after = "".join([site if part is None else part for part in self.after])
        return before + words + after


@lru_cache(maxsize=1024)
def _form(
    url: str,
    params: tuple[tuple[str, str], ...],
    left_out: tuple[str, ...],
    join: str,
    restriction: str,
    extra: tuple[str, ...],
    encoding: str,
    first: int,
    step: int,
) -> _Form:
    parts: list[tuple[str, str]] = []
    literal = url
    mark = "?"
    for name, value in params:
        if name in left_out:
            continue
        literal += f"{mark}{_quoted(name, encoding)}="
        mark = "&"
        for text, placeholder, _, _ in Formatter().parse(value):
            literal += _quoted(text, encoding)
            if placeholder is not None:
                parts.append((literal, placeholder))
                literal = ""
    parts.append((literal, ""))
    before, after = _around_words(restriction, encoding)
    quoted_extra = tuple(_quoted(word, encoding) for word in extra)
    return _Form(
        parts=tuple(parts),
        join=_quoted(join, encoding),
        before=before,
        after=after,
        extra=quoted_extra,
        encoding=encoding,
        first=first,
        step=step,
    )


def _around_words(template: str, encoding: str) -> tuple[tuple[str | None, ...], tuple[str | None, ...]]:
    around: tuple[list[str | None], list[str | None]] = ([], [])
    side = 0
    for text, placeholder, _, _ in Formatter().parse(template):
        around[side].append(_quoted(text, encoding))
        if placeholder == "words":
            side = 1
        elif placeholder is not None:
            around[side].append(None)
    return tuple(around[0]), tuple(around[1])


@lru_cache(maxsize=65536)
def _quoted(text: str, encoding: str) -> str:
    return quote_plus(text, safe="", encoding=encoding, errors="xmlcharrefreplace")
