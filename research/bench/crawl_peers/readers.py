"""The six fields of every record of `research.tools.pages`, read with selectolax, turbohtml, parsel and beautifulsoup4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

if TYPE_CHECKING:
    from parsel import Selector

Record = tuple[str, str, str, str, str, float]
"""The six fields of a review: id, title, body, author, date as written, rating."""

Page = tuple[str, list[Record]]
"""A page's title and its records."""


def with_selectolax(body: bytes) -> Page:
    """Read a page by one `css_first` a field."""
    page = LexborHTMLParser(body)
    return _text(page.css_first("title")), [
        (
            record.attributes["data-id"] or "",
            _text(record.css_first("h3.review-title")),
            _text(record.css_first("div.review-body")),
            _text(record.css_first("a.author")),
            _text(record.css_first("span.date")),
            float(_found(record.css_first("span.star")).attributes["data-score"] or 0),
        )
        for record in page.css("li.review")
    ]


def _text(node: LexborNode | None) -> str:
    return str(_found(node).text().strip())


def _found(node: Any) -> Any:
    if node is None:
        raise ValueError("the page has no such field: is it one of research.tools.pages?")
    return node


def with_turbohtml(body: bytes) -> Page:
    """Read a page by one `select_one` a field; the encoding is given, so that none is guessed."""
    import turbohtml

    def text(node: Any, selector: str) -> str:
        return str(_found(node.select_one(selector)).text.strip())

    page = turbohtml.parse(body, encoding="utf-8")
    return text(page, "title"), [
        (
            str(record.attrs["data-id"]),
            text(record, "h3.review-title"),
            text(record, "div.review-body"),
            text(record, "a.author"),
            text(record, "span.date"),
            float(_found(record.select_one("span.star")).attrs["data-score"]),
        )
        for record in page.select("li.review")
    ]


READERS: Mapping[str, Callable[[bytes], Page]] = MappingProxyType(
    {"selectolax": with_selectolax, "turbohtml": with_turbohtml}
)
"""Readers of a page's bytes, by parser."""


def with_parsel(page: Selector) -> Page:
    """Read a page by CSS, as parsel's documentation shows it."""
    return page.css("title::text").get(""), [
        (
            record.attrib["data-id"],
            record.css("h3.review-title::text").get(""),
            record.css("div.review-body::text").get(""),
            record.css("a.author::text").get(""),
            record.css("span.date::text").get(""),
            float(record.css("span.star::attr(data-score)").get("0")),
        )
        for record in page.css("li.review")
    ]


def with_soup(body: bytes, encoding: str) -> Page:
    """Read a page by `find`, which beautifulsoup answers faster than CSS; the encoding is given, so that none is guessed."""
    from bs4 import BeautifulSoup

    def text(node: Any, name: str, kind: str) -> str:
        return str(_found(node.find(name, class_=kind)).get_text(strip=True))

    page = BeautifulSoup(body, "lxml", from_encoding=encoding)
    return str(_found(page.find("title")).get_text(strip=True)), [
        (
            str(record["data-id"]),
            text(record, "h3", "review-title"),
            text(record, "div", "review-body"),
            text(record, "a", "author"),
            text(record, "span", "date"),
            float(_found(record.find("span", class_="star"))["data-score"]),
        )
        for record in page.find_all("li", class_="review")
    ]
