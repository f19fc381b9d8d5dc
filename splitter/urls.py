"""Make search URLs from keywords, in the form of each engine.

An engine's URL is percent-encoded once, with placeholders for the parts that differ between searches. A character that
the engine's encoding lacks is written as a browser writes it when it sends a form in that encoding (WHATWG
URL, "percent-encode after encoding"): as its HTML number, ``&#8364;``, percent-encoded. No word is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from string import Formatter
from urllib.parse import quote, quote_plus, unquote

from splitter.catalog.model import Engine, TimeFilter
from splitter.spans import Span, ceiling, floor

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}


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
    if engine.discover == "list":
        return list_url(engine, (keywords,), page)
    encoding = engine.encoding
    words = [_quote(word, encoding) for word in (*keywords, *engine.extra_words)]
    query = _quote(engine.join, encoding).join(words)
    if site is not None:
        query = _quote_template(engine.site, encoding).replace("{words}", query).replace("{site}", site)
    found = _page_url(engine, page).replace("{query}", query)
    return found if span is None else found + _times(engine, span)


def list_url(engine: Engine, keyword_sets: Iterable[Sequence[str]], page: int | None) -> str:
    """Return the URL of a list's page. The keywords follow ``#`` and are never sent.

    Args:
        keyword_sets: of one product; what mentions one of them is a hit.
        page: as of `search_url`.
    """
    sets = "&".join("+".join(quote(word, safe="") for word in words) for words in keyword_sets)
    return f"{_page_url(engine, page)}#{sets}"


def _page_url(engine: Engine, page: int | None) -> str:
    """Return the URL of a page, with ``{query}`` to be filled in."""
    left_out = engine.paging_params if page is None else ()
    url = _url_template(engine.url, tuple(engine.params.items()), left_out, engine.encoding)
    offset = engine.first + ((page or 1) - 1) * engine.step
    return url.replace("{page}", str(page or 1)).replace("{offset}", str(offset))


def listed_keywords(url: str) -> tuple[tuple[str, ...], ...]:
    """Return the keyword sets of a URL of `list_url`, none if nothing follows ``#``."""
    sets = url.partition("#")[2].split("&")
    return tuple(tuple(unquote(word) for word in words.split("+")) for words in sets if words)


def _times(engine: Engine, span: Span) -> str:
    if engine.times is None:
        raise ValueError(f"{engine.url} cannot restrict a search to a range of time")
    return "".join(
        f"&{_quote(name, engine.encoding)}={_quote(value, engine.encoding)}"
        for name, value in time_params(engine.times, span).items()
    )


def time_params(times: TimeFilter, span: Span) -> dict[str, str]:
    """Return the query parameters that restrict a search to a range, or to a longer one if units are coarser."""
    filled = {
        "from_s": str(math.floor(span.start.timestamp())),
        "to_s": str(math.ceil(span.end.timestamp()) - times.inclusive),
    }
    for name, unit in _UNITS.items():
        after = ceiling(span.end, unit)
        filled[f"from_{name}"] = _written(floor(span.start, unit), name)
        filled[f"to_{name}"] = _written(after - unit if times.inclusive else after, name)
    return {name: value.format(**filled) for name, value in times.params.items()}


def _written(moment: datetime, unit: str) -> str:
    return f"{moment:%Y-%m-%d}" + (f"-{moment.hour}" if unit == "hour" else "")


@lru_cache(maxsize=1024)
def _url_template(
    url: str, params: tuple[tuple[str, str], ...], left_out: tuple[str, ...], encoding: str
) -> str:
    """A result page's URL with ``{query}``, ``{page}`` and ``{offset}`` to be filled in."""
    written = [
        f"{_quote(name, encoding)}={_quote_template(value, encoding)}"
        for name, value in params
        if name not in left_out
    ]
    return f"{url}?{'&'.join(written)}" if written else url


@lru_cache(maxsize=1024)
def _quote_template(template: str, encoding: str) -> str:
    """A template with all but its placeholders percent-encoded."""
    return "".join(
        _quote(text, encoding) + (f"{{{name}}}" if name is not None else "")
        for text, name, _, _ in Formatter().parse(template)
    )


@lru_cache(maxsize=65536)
def _quote(text: str, encoding: str) -> str:
    return quote_plus(text, safe="", encoding=encoding, errors="xmlcharrefreplace")
