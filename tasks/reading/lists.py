"""Pages that list others: sitemaps, their index files, feeds, and pages of links.

A sitemap (sitemaps.org, 0.9) names addresses, and when each last changed; of news, pictures and films also a title.
"""

from __future__ import annotations

from datetime import datetime

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.rules import ResultRules

from tasks.domain.address import joined
from tasks.domain.failures import FetchError
from tasks.domain.pages import Hit, ListPage, ResultPage
from tasks.reading.dates import read_date
from tasks.reading.feeds import is_feed
from tasks.reading.markup import check_markup, collapsed
from tasks.reading.results import read_results

MOST_LISTED = 50_000
"""Addresses read of one list: the most a sitemap may hold."""

_HEAD_CHARS = 4000
_TITLES = (r"news\:title", r"video\:title", r"image\:title", r"image\:caption", "title")
_DATES = (r"news\:publication_date", "lastmod", "pubdate", "published", "updated")


def read_list(text: str, url: str, rules: ResultRules, now: datetime) -> ListPage:
    """Read a list of addresses.

    Args:
        text: of the answer, decoded.
        url: its final address.
        rules: of a page that is neither sitemap nor feed.
        now: aware; what relative times count from.

    Raises:
        FetchError: as `read_results`, for a page that is neither; TOO_LARGE.
    """
    head = text[:_HEAD_CHARS]
    if "<sitemapindex" in head:
        further = [(hit.time, hit.url) for hit in _hits(text, url, "sitemap", now)]
        further.sort(key=lambda one: one[0].timestamp() if one[0] else 0.0, reverse=True)
        return ListPage(further=tuple(address for _, address in further))
    if "<urlset" in head:
        return ListPage(hits=_hits(text, url, "url", now))
    if is_feed(text):
        return ListPage(hits=_hits(text, url, "item, entry", now))
    page = read_results(text, url, rules, now=now)
    return ListPage(hits=page.hits, more=page.more)


def as_results(page: ListPage) -> ResultPage:
    """All that a list holds as hits; of an index of sitemaps, these."""
    hits = page.hits or tuple(Hit(url, "") for url in page.further)
    return ResultPage(None, hits, empty=not hits, more=page.more)


def _hits(text: str, url: str, entries: str, now: datetime) -> tuple[Hit, ...]:
    check_markup(text)
    # Of an HTML parser <link> has no content, and a feed's address would be lost.
    tree = LexborHTMLParser(text.replace("<link>", "<loc>").replace("</link>", "</loc>"))
    hits: dict[str, Hit] = {}
    for entry in tree.css(entries)[:MOST_LISTED]:
        address = _address(entry, url)
        if address and address not in hits:
            title = next(filter(None, (_value(entry, name) for name in _TITLES)), "")
            date = next(filter(None, (_value(entry, name) for name in _DATES)), "")
            hits[address] = Hit(address, title, time=read_date(date, now) if date else None)
    return tuple(hits.values())


def _address(entry: LexborNode, url: str) -> str:
    """The address of an entry; empty where it has none that can be requested."""
    loc, link = entry.css_first("loc"), entry.css_first("link[href]")
    written = (
        loc.text().strip() if loc is not None else (link.attrs.get("href") or "") if link is not None else ""
    )
    try:
        return joined(url, written) if written else ""
    except FetchError:
        return ""


def _value(entry: LexborNode, css: str) -> str:
    node = entry.css_first(css)
    return collapsed(node.text()) if node is not None else ""
