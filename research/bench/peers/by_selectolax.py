"""The six fields of every record of `research.tools.pages`, read with selectolax."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from research.bench.peers.contest import Page


def with_selectolax(body: bytes) -> Page:
    """By one `css_first` a field."""
    page = LexborHTMLParser(body)
    return _text(page.css_first("title")), [
        (
            record.attributes["data-id"] or "",
            _text(record.css_first("h3.review-title")),
            _text(record.css_first("div.review-body")),
            _text(record.css_first("a.author")),
            _text(record.css_first("span.date")),
            float(_there(record.css_first("span.star")).attributes["data-score"] or 0),
        )
        for record in page.css("li.review")
    ]


def _text(node: LexborNode | None) -> str:
    return _there(node).text().strip()


def _there(node: LexborNode | None) -> LexborNode:
    if node is None:
        raise ValueError("the page has no such field: is it one of research.tools.pages?")
    return node
