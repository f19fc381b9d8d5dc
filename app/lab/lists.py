"""The lab's lists: pages of some products that a site with `discover: list` shows to anybody.

A list whose address ends with .xml is a sitemap index of two sitemaps, the second packed with gzip; any other is
written like the result pages of its engine.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from html import escape
from urllib.parse import parse_qs, urlsplit

from app.lab.answers import Document
from app.lab.corpus import Corpus, Listed
from app.lab.engines.model import hit_of
from splitter.catalog.model import Engine
from splitter.keywords import keywords_of

PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶", "雀巢中老年奶粉")
"""The products whose pages are listed."""

_XML = "application/xml"
_PARTS = ("-1.xml", "-2.xml.gz")


def page_of(engine: Engine, target: str) -> int:
    """Number of a list's page that a path with query string asks for; 0 where it is no page of the list."""
    path, _, query = target.partition("?")
    before, numbered, after = (urlsplit(engine.url).path or "/").partition("{page}")
    match = re.fullmatch(
        f"{re.escape(before)}{'([1-9][0-9]{0,5})' if numbered else '()'}{re.escape(after)}", path
    )
    if match is None:
        return 0
    given = parse_qs(query)
    for name in engine.paging_params:
        if engine.params[name] == "{page}" and (number := given.get(name, [""])[0]).isdecimal():
            return max(1, int(number[:6]))
    return int(match[1] or 1)


def listed(corpus: Corpus, site: str) -> tuple[Listed, ...]:
    """Everything that a site lists."""
    return tuple(one for name in PRODUCTS for one in corpus.listed(site, keywords_of(name), None))


def sitemap(engine: Engine, corpus: Corpus, site: str, path: str) -> Document | None:
    """A sitemap index of a list, or one of its sitemaps; None for what is neither."""
    own = urlsplit(engine.url).path
    stem = own.removesuffix(".xml")
    if own == stem or not path.startswith(stem):
        return None
    if path == own:
        return Document(
            200, _XML, _index(urlsplit(engine.url)._replace(path=stem, query="").geturl()).encode()
        )
    if path.removeprefix(stem) not in _PARTS:
        return None
    return _part(corpus, site, _PARTS.index(path.removeprefix(stem)))


def _index(stem: str) -> str:
    parts = "".join(
        f"<sitemap><loc>{escape(stem + part)}</loc><lastmod>2026-0{n}-01T08:00:00+08:00</lastmod></sitemap>\n"
        for n, part in enumerate(_PARTS, 1)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{parts}</sitemapindex>\n'


@lru_cache(maxsize=64)
def _part(corpus: Corpus, site: str, number: int) -> Document:
    entries = []
    for one in listed(corpus, site)[number :: len(_PARTS)]:
        hit = hit_of(one.url, corpus.content(one.page))
        entries.append(
            f"<url><loc>{escape(hit.url)}</loc><lastmod>{hit.post.at:%Y-%m-%d}</lastmod>"
            f"<news:news><news:title>{escape(hit.title)}</news:title></news:news></url>\n"
        )
    spaces = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {spaces}>\n{"".join(entries)}</urlset>\n'.encode()
    )
    return (
        Document(200, "application/gzip", gzip.compress(text, mtime=0))
        if number
        else Document(200, _XML, text)
    )
