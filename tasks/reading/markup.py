"""HTML as a reader sees it: a tree without what is not shown, fields of rules, text with collapsed blanks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from tasks.domain.crawl import ErrorClass, FetchError
from tasks.reading.markup_limits import check_markup

_NOT_SHOWN_TAGS = ["script", "style", "template", "noscript"]
_NOT_SHOWN = '[hidden], [style*="display:none" i], [style*="display: none" i]'
# What every element that _NOT_SHOWN matches has: asked first, as most pages have none of them.
_MAYBE_NOT_SHOWN = '[hidden], [style*="none" i]'
# Between these, words must not grow together.
_BLOCKS = ["p", "div", "br", "li", "tr", "td", "th", "dt", "dd", "blockquote", "section", "article"]
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
# A tag's number is cheaper to ask for than its name.
_BLOCK_IDS = frozenset(LexborHTMLParser("").create_node(name).tag_id for name in _BLOCKS + _HEADINGS)
_FIELD = re.compile(r"(.*?)(?:@([\w:-]+))?", re.DOTALL)

# A page's tree is some hundred kilobytes, which glibc hands back to the system with every page and takes again, page
# fault by page fault, with the next: a fifth of the time to read one. Having freed one block of this size, it keeps
# up to twice as much (mallopt(3), M_MMAP_THRESHOLD: the dynamic adjustment). Other allocators don't state.
_KEPT_BYTES = 4 << 20
_block = bytearray(_KEPT_BYTES)
del _block


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a rule (see splitter.catalog.rules), taken apart.

    Attributes:
        css: selector within the record; empty: the record itself.
        attribute: whose value is read; empty: the text.
        otherwise: read where this one is empty.
    """

    css: str
    attribute: str
    otherwise: Field | None = None

    def read(self, record: LexborNode) -> str:
        """Its collapsed value in one record; empty where it is not there."""
        node = first(record, self.css) if self.css else record
        value = self.values([node])[0]
        return value if value or self.otherwise is None else self.otherwise.read(record)

    def values(self, nodes: Sequence[LexborNode | None]) -> list[str]:
        """The collapsed values of elements its selector found; empty for None."""
        name = self.attribute
        if not name:
            return texts_of(nodes)
        read = [node.attrs.get(name) if node is not None else None for node in nodes]
        return [" ".join(value.split()) if value else "" for value in read]


@lru_cache(maxsize=1024)
def field_of(rule: str) -> Field | None:
    """The field a rule writes (see splitter.catalog.rules); None for the empty rule."""
    if not rule.strip():
        return None
    text, _, others = rule.partition(" | ")
    match = _FIELD.fullmatch(text.strip())
    css, attribute = (match[1].strip(), match[2]) if match is not None else (text, "")
    return Field("" if css == "." else css, (attribute or "").lower(), field_of(others))


def parse(text: str, *, hidden: bool = False) -> LexborHTMLParser:
    """The tree of a page without scripts, styles, templates and hidden elements.

    Args:
        hidden: what the page hides until somebody asks for it stays (long posts, folded).

    Raises:
        FetchError: TOO_LARGE for markup made to choke a parser (see `tasks.reading.markup_limits`).
    """
    check_markup(text)
    tree = LexborHTMLParser(text)
    tree.strip_tags(_NOT_SHOWN_TAGS)
    if not hidden and tree.css_matches(_MAYBE_NOT_SHOWN):
        _remove_hidden(tree)
    return tree


def select(tree: LexborHTMLParser | LexborNode, css: str) -> list[LexborNode]:
    """All matches of a selector, in the order of the document, each once.

    Raises:
        FetchError: BAD_RULE for what is no selector.
    """
    try:
        nodes = tree.css(css)
    except SelectolaxError as error:
        raise _bad_selector(css) from error
    # An element is listed once for each part of "a, b" that matches it.
    return list({node.mem_id: node for node in nodes}.values()) if "," in css else nodes


def first(tree: LexborHTMLParser | LexborNode, css: str) -> LexborNode | None:
    """The first match of a selector. Raises FetchError(BAD_RULE) for what is no selector."""
    try:
        return tree.css_first(css)
    except SelectolaxError as error:
        raise _bad_selector(css) from error


def text_of(node: LexborNode) -> str:
    """Text of an element as it reads: blanks collapsed, blocks kept apart, inline markup joined."""
    return texts_of([node])[0]


def texts_of(nodes: Sequence[LexborNode | None]) -> list[str]:
    """Texts of elements, each as `text_of` gives it; empty for None."""
    inner = [node.first_child if node is not None else None for node in nodes]
    # Most elements hold a text and nothing else; text_content is None for what is no text.
    texts = [only.text_content if only is not None and only.next is None else None for only in inner]
    return [
        " ".join((_separated(only) if text is None else text).split())
        for only, text in zip(inner, texts, strict=True)
    ]


def page_text(tree: LexborHTMLParser, before: LexborNode | None = None) -> str:
    """Text of a page, title included: the whole of it, or what stands before an element."""
    root = tree.root
    if root is None:
        return ""
    return collapsed(_separated(root.first_child, before.mem_id if before is not None else 0))


def collapsed(text: str) -> str:
    """Text with every run of blanks (full-width and no-break ones too) made one space."""
    return " ".join(text.split())


def _remove_hidden(tree: LexborHTMLParser) -> None:
    for node in tree.css(_NOT_SHOWN):
        # One inside another is gone with it; the document's own root stays.
        if node.parent is not None and node.tag not in ("html", "body"):
            node.decompose()


def _separated(node: LexborNode | None, end: int = 0) -> str:
    """Text of a node and what follows it under its parent, blanks around blocks.

    Ends before the node whose ``mem_id`` is ``end`` (0: no such node).

    A walk without recursion: pages may be nested deeper than Python's stack.
    """
    parts: list[str] = []
    opened: list[tuple[LexborNode, bool]] = []
    while node is not None:
        text = node.text_content
        if text is not None:
            parts.append(text)
        else:
            if end and node.mem_id == end:
                break
            block = node.tag_id in _BLOCK_IDS
            if block:
                parts.append(" ")
            child = node.first_child
            if child is not None:
                opened.append((node, block))
                node = child
                continue
        node = node.next
        while node is None and opened:
            closed, block = opened.pop()
            if block:
                parts.append(" ")
            node = closed.next
    return "".join(parts)


def _bad_selector(css: str) -> FetchError:
    return FetchError(ErrorClass.BAD_RULE, f"the rule {css!r} is no CSS selector")
