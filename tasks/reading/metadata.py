"""Title, author and date of a page: JSON-LD (schema.org), Open Graph and other meta tags, headings, the byline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from tasks.reading.markup import collapsed

_MAX_JSON_CHARS = 500_000
_MAX_JSON_DEPTH = 8
_BODIES = ("articleBody", "reviewBody", "text")
_TITLES = ("headline", "name")
_DATES = ("datePublished", "dateCreated", "uploadDate")
# Of these types a body or a title is the page's own; a publisher or a breadcrumb has a name, too.
_TEXT_TYPES = re.compile(r"Article|Posting|Review|Report|Comment|Question|Answer|CreativeWork|WebPage", re.I)

_META_DATES = (
    "article:published_time",
    "og:published_time",
    "og:release_date",
    "datepublished",
    "pubdate",
    "publishdate",
    "publish_date",
    "pubtime",
    "publish-date",
    "date",
    "dc.date",
    "weibo:article:create_at",
)
_META_AUTHORS = ("author", "article:author", "og:article:author", "mediaid", "byl", "dc.creator")
_META_TITLES = ("og:title", "twitter:title", "articletitle", "dc.title")
_META_DESCRIPTIONS = ("og:description", "description")
_DESCRIPTION_CHARS = 30
# Site names hang on a title behind these.
_SEPARATOR = re.compile(
    r"\s*(?:[|｜_]|--+|[–—]+|::|»|\s[-@]\s|(?<=[\u4e00-\u9fff】》？！])-(?=[\u4e00-\u9fffA-Z]))\s*"
)
_ADDRESS = re.compile(r"https?://|@|^[\w.-]+\.(?:com|cn|net|org)\b", re.I)
_BYLINE_AUTHOR = re.compile(
    r"(?:作\s*者|记\s*者|撰\s*文|文|发布者|发布人|投诉人|楼主|责任编辑|责编|编\s*辑|\bby)\s*[:：/|]\s*"
    r"(?:记者)?([^\s:：,，;；()（）|/<>\[\]【】]{2,20})",
    re.IGNORECASE,
)
_BYLINE_CHARS = 120
# Day and clock of elements side by side: 10-0812:00.
_DAY_AND_CLOCK = re.compile(r"(-[0-3]\d)(?=\d\d[:：])")
_DAY = r"(?<!\d)(?:199\d|20[0-4]\d)\s?[-/.年]\s?\d{1,2}\s?[-/.月]\s?\d{1,2}\s?日?"
_CLOCK = r"\d{1,2}[:：]\d\d(?:[:：]\d\d)?"
# Most reliable first: a line with day and clock is a byline, a bare day may be anything's.
_BYLINE_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_DAY}\s*{_CLOCK}",
        _DAY,
        rf"(?<!\d)[01]\d-[0-3]\d\s*{_CLOCK}",
        rf"\d{{1,2}}(?:月\d{{1,2}}日\s*|-\d{{1,2}}\s+){_CLOCK}|(?:今天|昨天|前天)\s*{_CLOCK}|(?:半|\d{{1,3}})\s?\S{{1,3}}前",
        r"^[01]?\d月[0-3]?\d日$",
    )
)

_HEADING_CHARS = (4, 120)
_PAGE_TITLE_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a page says about itself; empty where it says nothing.

    Attributes:
        title: without the site's name where that is recognised.
        page_title: of the `title` element, as written.
        body: the whole text, where JSON-LD holds it.
        date_text: as written.
        description: what it says it is about; empty where that is too short to be of use.
    """

    title: str
    page_title: str
    body: str
    author: str
    date_text: str
    description: str


def read_metadata(tree: LexborHTMLParser) -> Metadata:
    """Read the metadata of a whole tree (with its scripts)."""
    json_ld = _json_ld(tree)
    metas = _metas(tree)
    element = tree.css_first("title")
    page_title = collapsed(element.text())[:_PAGE_TITLE_CHARS] if element is not None else ""
    descriptions = (text for text in _named(metas, _META_DESCRIPTIONS) if len(text) >= _DESCRIPTION_CHARS)
    return Metadata(
        title=_title(tree, page_title, [json_ld.get("title", ""), *_named(metas, _META_TITLES)]),
        page_title=page_title,
        body=json_ld.get("body", ""),
        author=json_ld.get("author", "") or _author(metas),
        date_text=json_ld.get("date", "") or next(iter(_named(metas, _META_DATES)), ""),
        description=next(descriptions, "").rstrip(".…"),
    )


def _metas(tree: LexborHTMLParser) -> dict[str, str]:
    metas: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        if content := collapsed(attributes.get("content") or ""):
            metas.setdefault(name.lower(), content)
    return metas


def _named(metas: dict[str, str], names: tuple[str, ...]) -> list[str]:
    return [metas[name] for name in names if name in metas]


def _author(metas: dict[str, str]) -> str:
    named = (name for name in _named(metas, _META_AUTHORS) if not (name.isdigit() or _ADDRESS.search(name)))
    return next(named, "")


def _title(tree: LexborHTMLParser, page_title: str, candidates: list[str]) -> str:
    """The title two places agree on: a heading or meta tag that the title element holds; else its own first part."""
    headings = [collapsed(node.text()) for tag in ("h1", "h2") for node in tree.css(tag)[:5]]
    least, most = _HEADING_CHARS
    squeezed = _squeezed(page_title)
    likely = [text for text in [*headings, *candidates] if least <= len(text) <= most]
    parts = [text for text in likely if _squeezed(text) in squeezed and len(_squeezed(text)) < len(squeezed)]
    if parts:  # the first words of the title, and as many as any place has
        return max(parts, key=lambda text: (squeezed.startswith(_squeezed(text)), len(text)))
    if page_title:
        return _first_part(page_title)
    return next(iter(likely), "")


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _first_part(title: str) -> str:
    parts = [part for part in _SEPARATOR.split(title) if part]
    if len(parts) <= 1:
        return title
    # Titles come before their site's name; a short first part before a long one is a column's.
    return parts[0] if 2 * len(parts[0]) >= len(max(parts, key=len)) else max(parts, key=len)


def _json_ld(tree: LexborHTMLParser) -> dict[str, str]:
    """Title, body, author and date of the first things of a text's type in JSON-LD scripts."""
    found: dict[str, str] = {}
    for script in tree.css('script[type="application/ld+json"]')[:20]:
        source = script.text()
        if len(source) > _MAX_JSON_CHARS:
            continue
        try:
            data = json.loads(source, strict=False)
        except (ValueError, RecursionError):
            continue
        for thing in _things(data, 0):
            if _TEXT_TYPES.search(str(thing.get("@type", ""))):
                for key, value in _of_thing(thing):
                    if value:
                        found.setdefault(key, value)
    return found


def _things(data: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > _MAX_JSON_DEPTH:
        return
    if isinstance(data, dict):
        yield data
        data = list(data.values())
    if isinstance(data, list):
        for inner in data:
            yield from _things(inner, depth + 1)


def _of_thing(thing: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, names in (("title", _TITLES), ("body", _BODIES), ("date", _DATES)):
        yield key, _string(next((thing[name] for name in names if thing.get(name)), ""))
    author = thing.get("author")
    first = author[0] if isinstance(author, list) and author else author
    yield "author", _string(first.get("name") if isinstance(first, dict) else first)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    text = unescape(value)
    if "<" in text and ">" in text:
        root = LexborHTMLParser(text).body
        text = root.text(separator=" ") if root is not None else ""
    return collapsed(text)


def byline_author(lines: tuple[str, ...]) -> str:
    """The author that lines around a text name; empty where none does."""
    named = (match[1] for line in _short(lines) if (match := _BYLINE_AUTHOR.search(line)))
    return next((name for name in named if not name.isdigit()), "")


def byline_date(lines: tuple[str, ...]) -> str:
    """The date as lines around a text write it; empty where none does."""
    found = (
        match.group()
        for pattern in _BYLINE_DATES
        for line in _short(lines)
        if (match := pattern.search(line))
    )
    return _DAY_AND_CLOCK.sub(r"\1 ", next(found, ""))


def _short(lines: tuple[str, ...]) -> list[str]:
    return [line for line in lines if len(line) <= _BYLINE_CHARS]
