"""HTML as a reader sees it: a tree without what is not shown, fields of rules, text with collapsed blanks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from tasks.crawl.markup_limits import check_markup
from tasks.crawl.model import ErrorClass, FetchError

_NOT_SHOWN_TAGS = ["script", "style", "template", "noscript"]
_NOT_SHOWN = '[hidden], [style*="display:none" i], [style*="display: none" i]'
# Between these, words must not grow together.
_BLOCKS = "p, div, br, li, tr, td, th, dt, dd, h1, h2, h3, h4, h5, h6, blockquote, section, article"
_FIELD = re.compile(r"(.*?)(?:@([\w:-]+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a rule (see splitter.catalog.model), taken apart.

    Attributes:
        css: selector within the record; empty: the record itself.
        attribute: whose value is read; empty: the text.
    """

    css: str
    attribute: str

    def read(self, record: LexborNode) -> str:
        """Its collapsed value in a record; empty where it is not there."""
        node = first(record, self.css) if self.css else record
        if node is None:
            return ""
        return collapsed(node.attributes.get(self.attribute) or "") if self.attribute else text_of(node)


@lru_cache(maxsize=1024)
def field_of(rule: str) -> Field | None:
    """The field written as ``"css"``, ``"css@attribute"`` or ``"@attribute"``; None for the empty rule."""
    match = _FIELD.fullmatch(rule.strip())
    if not rule.strip() or match is None:
        return None
    return Field(match[1].strip(), (match[2] or "").lower())


def parse(text: str) -> LexborHTMLParser:
    """The tree of a page without scripts, styles, templates and hidden elements.

    Raises:
        FetchError: TOO_LARGE for markup made to choke a parser (see `tasks.crawl.markup_limits`).
    """
    check_markup(text)
    tree = LexborHTMLParser(text)
    tree.strip_tags(_NOT_SHOWN_TAGS)
    for node in tree.css(_NOT_SHOWN):
        # One inside another is gone with it; the document's own root stays.
        if node.parent is not None and node.tag not in ("html", "body"):
            node.decompose()
    return tree


def select(tree: LexborHTMLParser | LexborNode, css: str) -> list[LexborNode]:
    """All matches of a selector. Raises FetchError(BAD_RULE) for what is no selector."""
    try:
        return tree.css(css)
    except SelectolaxError as error:
        raise _bad_selector(css) from error


def first(tree: LexborHTMLParser | LexborNode, css: str) -> LexborNode | None:
    """The first match of a selector. Raises FetchError(BAD_RULE) for what is no selector."""
    try:
        return tree.css_first(css)
    except SelectolaxError as error:
        raise _bad_selector(css) from error


def text_of(node: LexborNode) -> str:
    """Text of an element as it reads: blanks collapsed, blocks kept apart, inline markup joined."""
    only = node.first_child
    if only is None:
        return ""
    if only.next is not None or not only.is_text_node:
        for block in node.css(_BLOCKS):
            block.insert_before(" ")
            block.insert_after(" ")
    return collapsed(node.text())


def page_text(tree: LexborHTMLParser) -> str:
    """Text of a whole page, title included."""
    return text_of(tree.root) if tree.root is not None else ""


def collapsed(text: str) -> str:
    """Text with every run of blanks (full-width and no-break ones too) made one space."""
    return " ".join(text.split())


def _bad_selector(css: str) -> FetchError:
    return FetchError(ErrorClass.BAD_RULE, f"the rule {css!r} is no CSS selector")
