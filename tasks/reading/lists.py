"""Pages of entries: sitemaps, their index files, feeds (RSS, Atom), pages of links; and the next part of a list.

Sitemaps (sitemaps.org, 0.9) and feeds are read by the HTML parser: it accepts malformed ones, which no XML parser does,
and expands no entities of their own. As a page, a feed gives a review for every entry with a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from html import escape

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.rules import ResultRules

from tasks.domain.pages import Hit, ListPage, PageRead, ResultPage
from tasks.reading.dates import read_date
from tasks.reading.links import Links
from tasks.reading.markup import check_markup, collapse
from tasks.reading.records import MOST_RECORDS, make_reviews
from tasks.reading.results import read_results

MOST_LISTED = 50_000
"""Maximum number of addresses read from one list, which is the most that a sitemap may hold."""

# Atomic groups: a failing match must not try to read two comments as one.
_FEED = re.compile(
    r"\s*+(?:(?><\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>]*>)\s*+)*+<(?:rss|feed|rdf:RDF)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEAD_CHARS = 4000
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_ENTRIES = "item, entry"
_TITLES = (r"news\:title", r"video\:title", r"image\:title", r"image\:caption", "title")
_LISTED_DATES = (r"news\:publication_date", "lastmod", "pubdate", "published", "updated")
_DATES = ("pubdate", r"dc\:date", "published", "issued", "created", "updated", "modified")
_BODIES = (r"content\:encoded", "content", "description", "summary")
_AUTHORS = (r"dc\:creator", "author name", "author")
_NEXT = 'feed > link[rel="next"], channel > atom\\:link[rel="next"]'  # RFC 5005, 3
# RSS writes people as an address with the name behind it; only the name is shown.
_ADDRESSED = re.compile(r"(?<!\S)[^\s@]++@\S++ \(([^()]++)\)")
# Links that blog programs put after an entry, to the rest of it.
_ONWARD = re.compile(
    r"(?:(?<!\s)\s++)?+"
    r"(?:\(\s*+浏览全文\s*+引用此文\s*+\)|\.\.\.\s*+more|(?:阅读|浏览|查看)(?:全文|更多)|继续阅读|read more)\W*+$",
    re.IGNORECASE,
)


def is_feed(text: str) -> bool:
    """Return whether the root element of a document is one of a feed (RSS, Atom)."""
    return _FEED.match(text[:_HEAD_CHARS]) is not None


def read_list(text: str, url: str, rules: ResultRules, now: datetime, encoding: str = "utf-8") -> ListPage:
    """Read a list of addresses.

    Args:
        text: the decoded answer.
        url: its final address.
        rules: how a page that is neither sitemap nor feed is read.
        now: aware; relative times count from it.
        encoding: Python's name of the answer's encoding, in which its links are asked.

    Raises:
        FetchError: as `read_results` for a page that is neither; TOO_LARGE.
    """
    head, links = text[:_HEAD_CHARS], Links(url, encoding)
    if "<sitemapindex" in head:
        further = [(hit.time, hit.url) for hit in _hits(text, links, "sitemap", now)]
        further.sort(key=lambda one: one[0].timestamp() if one[0] else 0.0, reverse=True)
        return ListPage(further=tuple(address for _, address in further))
    if "<urlset" in head:
        return ListPage(hits=_hits(text, links, "url", now))
    if is_feed(text):
        return ListPage(hits=_hits(text, links, _ENTRIES, now))
    page = read_results(text, url, rules, now=now, encoding=encoding)
    return ListPage(hits=page.hits, more=page.more)


def read_feed(text: str, links: Links, now: datetime) -> PageRead:
    """Read a feed: its title, a review for every entry with a text, and its next part.

    Args:
        text: the decoded answer.
        links: how its links are read.
        now: aware; relative times count from it.

    Raises:
        FetchError: TOO_LARGE for markup made to choke a parser.
    """
    tree = _parse(text)
    title, following = tree.css_first("title"), tree.css_first(_NEXT)
    reviews = make_reviews(map(_fields, tree.css(_ENTRIES)[:MOST_RECORDS]), now)
    reference = (following.attrs.get("href") or "").strip() if following is not None else ""
    return PageRead(_plain(title.text()) if title is not None else "", reviews, links.next_address(reference))


def as_results(page: ListPage) -> ResultPage:
    """Return the entries of a list as hits, or the sitemaps of an index."""
    hits = page.hits or tuple(Hit(url, "") for url in page.further)
    return ResultPage(None, hits, empty=not hits, more=page.more)


def _parse(text: str) -> LexborHTMLParser:
    check_markup(text)
    # To an HTML parser <link> has no content, and the address of an entry would be lost.
    return LexborHTMLParser(_escape_cdata(text).replace("<link>", "<loc>").replace("</link>", "</loc>"))


def _escape_cdata(text: str) -> str:
    """Write the CDATA sections of a document as escaped text, which an HTML parser reads."""
    first, *sections = text.split(_CDATA)
    parts = [first]
    for section in sections:
        inside, end, after = section.partition(_CDATA_END)
        parts += [escape(inside, quote=False), after] if end else [section]
    return "".join(parts)


def _hits(text: str, links: Links, entries: str, now: datetime) -> tuple[Hit, ...]:
    hits: dict[str, Hit] = {}
    for entry in _parse(text).css(entries)[:MOST_LISTED]:
        address = _address(entry, links)
        if address and address not in hits:
            time = read_date(_value(entry, *_LISTED_DATES), now)
            hits[address] = Hit(address, _plain(_value(entry, *_TITLES)), time=time)
    return tuple(hits.values())


def _address(entry: LexborNode, links: Links) -> str:
    """Return the address of an entry; empty if it has none that can be requested."""
    link = entry.css_first("link[href]")
    written = _value(entry, "loc") or (link.attrs.get("href") or "" if link is not None else "")
    return links.address(written)


def _fields(entry: LexborNode) -> Iterator[str]:
    """Yield the body of a feed's entry, then its `OTHER_FIELDS`."""
    heading = _plain(_value(entry, "title"))
    yield _ONWARD.sub("", _plain(_value(entry, *_BODIES))) or heading
    yield _value(entry, "guid", "id")
    yield heading
    yield _ADDRESSED.sub(r"\1", _plain(_value(entry, *_AUTHORS)))
    yield _value(entry, *_DATES)
    yield _value(entry, r"im\:rating")
    yield _value(entry, r"im\:version")


def _value(entry: LexborNode, *names: str) -> str:
    """Return the text of the first of these elements that has one."""
    for name in names:
        node = entry.css_first(name)
        if node is not None and (value := collapse(node.text())):
            return value
    return ""


def _plain(html: str) -> str:
    """Return the text of a value that may hold markup."""
    if "<" not in html and "&" not in html:
        return collapse(html)
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style"])
    return collapse(tree.body.text(separator=" ")) if tree.body is not None else ""
