"""Feeds (RSS, Atom) as pages: a review for every entry with a text; of the App Store's, with stars and version, too."""

from __future__ import annotations

import re
from datetime import datetime
from html import escape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.domain.pages import PageRead, Review
from tasks.reading.dates import read_date
from tasks.reading.markup import check_markup, collapsed
from tasks.reading.next_part import next_address
from tasks.reading.records import LONGEST_ID, MOST_RECORDS, rating_of

# Atomic groups: a failing match must not try to read two comments as one.
_FEED = re.compile(
    r"\s*+(?:(?><\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>]*>)\s*+)*+<(?:rss|feed|rdf:RDF)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEAD_CHARS = 4000
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_ENTRIES = "item, entry"
_ENTRY_BODIES = (r"content\:encoded", "content", "description", "summary")
_ENTRY_DATES = ("pubdate", r"dc\:date", "published", "issued", "created", "updated", "modified")
_ENTRY_AUTHORS = (r"dc\:creator", "author name", "author")
_ENTRY_KEYS = ("guid", "id")
_ENTRY_RATINGS, _ENTRY_VERSIONS = (r"im\:rating",), (r"im\:version",)
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
    """Whether a document is a feed (RSS, Atom), by its root element."""
    return _FEED.match(text[:_HEAD_CHARS]) is not None


def read_feed(text: str, url: str, now: datetime) -> PageRead:
    """Read a feed: its title, a review for every entry with a text, and where it goes on.

    By the HTML parser: it accepts malformed feeds, which no XML parser does, and expands no entities of their own.

    Raises:
        FetchError: TOO_LARGE for markup made to choke a parser.
    """
    check_markup(text)
    tree = LexborHTMLParser(_without_cdata(text))
    title = tree.css_first("title")
    reviews: dict[str, Review] = {}
    for place, entry in enumerate(tree.css(_ENTRIES)[:MOST_RECORDS]):
        heading = _plain(_entry_value(entry, ("title",)))
        body = _ONWARD.sub("", _plain(_entry_value(entry, _ENTRY_BODIES))) or heading
        if not body:
            continue
        date_text = _entry_value(entry, _ENTRY_DATES)
        key = _entry_value(entry, _ENTRY_KEYS)
        if not key or key in reviews or len(key) > LONGEST_ID:
            key = f"#{place}"
        author = _ADDRESSED.sub(r"\1", _plain(_entry_value(entry, _ENTRY_AUTHORS)))
        rating = rating_of(_entry_value(entry, _ENTRY_RATINGS))
        version = _entry_value(entry, _ENTRY_VERSIONS)
        at = read_date(date_text, now)
        reviews[key] = Review(key, heading, body, author, date_text, at, rating, version)
    following = tree.css_first(_NEXT)
    return PageRead(
        _plain(title.text()) if title is not None else "",
        tuple(reviews.values()),
        next_address((following.attrs.get("href") or "").strip() if following is not None else "", url),
    )


def _without_cdata(text: str) -> str:
    """A document with its CDATA sections written as escaped text, which an HTML parser reads."""
    first, *sections = text.split(_CDATA)
    parts = [first]
    for section in sections:
        inside, end, after = section.partition(_CDATA_END)
        parts += [escape(inside, quote=False), after] if end else [section]
    return "".join(parts)


def _entry_value(entry: LexborNode, names: tuple[str, ...]) -> str:
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
