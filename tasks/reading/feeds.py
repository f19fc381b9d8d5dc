"""RSS and Atom feeds, read into one review per entry."""

from __future__ import annotations

import re
from datetime import datetime
from html import escape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.domain.crawl import PageRead, Review
from tasks.reading.dates import read_date
from tasks.reading.markup import collapsed
from tasks.reading.markup_limits import check_markup

# Atomic groups: a failing match must not try to read two comments as one.
_FEED = re.compile(
    r"\s*+(?:(?><\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>]*>)\s*+)*+<(?:rss|feed|rdf:RDF)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEAD_CHARS = 4000
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_ENTRIES = "item, entry"
_BODIES = (r"content\:encoded", "content", "description", "summary")
_DATES = ("pubdate", r"dc\:date", "published", "issued", "created", "updated", "modified")
_AUTHORS = (r"dc\:creator", "author name", "author")
_KEYS = ("guid", "id")
# RSS writes people as an address with the name behind it; only the name is shown.
_ADDRESSED = re.compile(r"\S+@\S+ \(([^()]+)\)")
# What blog programs put after an entry: links to the rest of it.
_ONWARD = re.compile(
    r"\s*(?:\(\s*浏览全文\s*引用此文\s*\)|\.\.\.\s*more|(?:阅读|浏览|查看)(?:全文|更多)|继续阅读|read more)\W*$",
    re.IGNORECASE,
)


def is_feed(text: str) -> bool:
    """Whether a document is a feed, told by its root element."""
    return _FEED.match(text[:_HEAD_CHARS]) is not None


def read_feed(text: str, now: datetime) -> PageRead:
    """Read a feed: its title, and a review of every entry that says something.

    The HTML parser serves: it takes the malformed feeds that no XML parser does, and expands no entities of their own.

    Raises:
        FetchError: TOO_LARGE for markup made to choke a parser.
    """
    check_markup(text)
    tree = LexborHTMLParser(_without_cdata(text))
    reviews = []
    for place, entry in enumerate(tree.css(_ENTRIES)):
        title = _plain(_value(entry, ("title",)))
        body = _ONWARD.sub("", _plain(_value(entry, _BODIES))) or title
        if not body:
            continue
        date_text = _value(entry, _DATES)
        key = _value(entry, _KEYS) or f"#{place}"
        author = _ADDRESSED.sub(r"\1", _plain(_value(entry, _AUTHORS)))
        reviews.append(Review(key, title, body, author, date_text, read_date(date_text, now), None))
    return PageRead(_plain(_of_feed(tree)), tuple(reviews))


def _without_cdata(text: str) -> str:
    """A document with its CDATA sections written as escaped text, which an HTML parser reads."""
    first, *sections = text.split(_CDATA)
    parts = [first]
    for section in sections:
        inside, end, after = section.partition(_CDATA_END)
        parts += [escape(inside, quote=False), after] if end else [section]
    return "".join(parts)


def _of_feed(tree: LexborHTMLParser) -> str:
    title = tree.css_first("title")
    return title.text() if title is not None else ""


def _value(entry: LexborNode, names: tuple[str, ...]) -> str:
    for name in names:
        node = entry.css_first(name)
        if node is not None and (value := collapsed(node.text())):
            return value
    return ""


def _plain(html: str) -> str:
    """Text of a value that may hold markup."""
    if "<" not in html and "&" not in html:
        return collapsed(html)
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style"])
    return collapsed(tree.body.text(separator=" ")) if tree.body is not None else ""
