"""HTML as a reader sees it: a tree without what is not shown, and text with collapsed blanks.

Pages made to choke a parser are refused before they are parsed (`check_markup`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from html import unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError

NOT_SHOWN_TAGS = ["script", "style", "template", "noscript"]
NOT_SHOWN = '[hidden], [style*="display:none" i], [style*="display: none" i]'
# Every element that NOT_SHOWN matches has one of these: searched first, as most pages have none of them.
_MAYBE_NOT_SHOWN = '[hidden], [style*="none" i]'
BLOCKS = ["p", "div", "br", "li", "tr", "td", "th", "dt", "dd", "blockquote", "section", "article"]
BLOCKS += ["h1", "h2", "h3", "h4", "h5", "h6"]
"""Elements that keep the words before and after them apart."""
# Reading a tag's number costs less than reading its name.
_BLOCK_IDS = frozenset(LexborHTMLParser("").create_node(name).tag_id for name in BLOCKS)

# A page's tree is some hundred kilobytes, which glibc hands back to the system with every page and takes again, page
# fault by page fault, with the next: a fifth of the time to read one. Once one block of this size was freed, it keeps
# up to twice as much (mallopt(3), M_MMAP_THRESHOLD: the dynamic adjustment). Harmless with other allocators.
_KEPT_BYTES = 4 << 20
_block = bytearray(_KEPT_BYTES)
del _block

# Pages below both can't be bad enough to matter, whatever their shape; they cost one count.
_SMALL_CHARS = 65_536
_SMALL_TAGS = 2000

_MAX_DEPTH = 1000
_MAX_ATTRIBUTES = 1000
_MAX_REPEATED = 500_000
# The standard repeats no more than three equal ones (its "Noah's Ark clause").
_EQUAL_REPEATED = 3

# Quotes hide a ">" only in a value, after "=".
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)([^>=]*+(?:=\s*+(?:\"[^\"]*\"|'[^']*')?[^>=]*+)*+)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BETWEEN = re.compile(r"[=/]")
_LONG_NUMBER = re.compile(r"&#([0-9]{8,})")
_DIGITS_OF_CHARACTER = 8
_FORMATTING = frozenset(
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"]
)
# Their end tags may be left out: the next one closes them.
_CLOSED_BY_NEXT = frozenset(["p", "li", "td", "th", "tr", "dt", "dd", "option"])
_NEVER_NESTED = _VOID | _CLOSED_BY_NEXT


def parse_whole(text: str) -> LexborHTMLParser:
    """The tree of a page with all its elements. Raises FetchError(TOO_LARGE), see `check_markup`."""
    check_markup(text)
    return LexborHTMLParser(text)


def parse(text: str, *, keep_hidden: bool = False) -> LexborHTMLParser:
    """The tree of a page without scripts, styles, templates and hidden elements.

    Args:
        keep_hidden: hidden elements stay: engines fold long posts and show them whole after a click.

    Raises:
        FetchError: TOO_LARGE, see `check_markup`.
    """
    tree = parse_whole(text)
    tree.strip_tags(NOT_SHOWN_TAGS)
    if not keep_hidden and tree.css_matches(_MAYBE_NOT_SHOWN):
        for node in tree.css(NOT_SHOWN):
            # One inside another is gone with it; the document's own root stays.
            if node.parent is not None and node.tag not in ("html", "body"):
                node.decompose()
    return tree


def select(tree: LexborHTMLParser | LexborNode, css: str) -> list[LexborNode]:
    """All matches of a selector, in the order of the document, each once.

    Raises:
        FetchError: BAD_RULE if `css` is no selector.
    """
    try:
        nodes = tree.css(css)
    except SelectolaxError as error:
        raise FetchError(
            ErrorClass.BAD_RULE, Message("the rule {css!r} is no CSS selector", css=css)
        ) from error
    # An element is listed once for each part of "a, b" that matches it.
    return list({node.mem_id: node for node in nodes}.values()) if "," in css else nodes


def first(tree: LexborHTMLParser | LexborNode, css: str) -> LexborNode | None:
    """Return the first match of a selector. Raises FetchError(BAD_RULE) if `css` is no selector."""
    return next(iter(select(tree, css)), None)


def text_of(node: LexborNode) -> str:
    """Text of an element as it reads: blanks collapsed, blocks kept apart, inline markup joined."""
    return texts_of([node])[0]


def texts_of(nodes: Sequence[LexborNode | None]) -> list[str]:
    """Texts of elements, each as `text_of` gives it; empty for None."""
    inner = [node.first_child if node is not None else None for node in nodes]
    # Most elements hold only a text; text_content is None for other nodes.
    texts = [only.text_content if only is not None and only.next is None else None for only in inner]
    return [
        " ".join((_block_texts(only) if text is None else text).split())
        for only, text in zip(inner, texts, strict=True)
    ]


def page_text(tree: LexborHTMLParser, before: LexborNode | None = None) -> str:
    """Text of a page, title included: the whole of it, or what stands before an element."""
    root = tree.root
    if root is None:
        return ""
    return collapse(_block_texts(root.first_child, before.mem_id if before is not None else 0))


def resolve_references(text: str) -> str:
    """Return a text with its character references resolved, as HTML has them (`&amp;`, `&#20809;`).

    A number of any length is a character or, beyond the last one, U+FFFD.
    """
    # Python converts no number of 4,300 digits.
    return unescape(_LONG_NUMBER.sub(_shortened, text) if "&#" in text else text)


def _shortened(reference: re.Match[str]) -> str:
    digits = reference[1].lstrip("0")[:_DIGITS_OF_CHARACTER]
    return f"&#{digits or 0}"


def collapse(text: str) -> str:
    """Text with every run of blanks (full-width and no-break ones too) made one space."""
    return " ".join(text.split())


def _block_texts(node: LexborNode | None, end: int = 0) -> str:
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


def check_markup(html: str) -> None:
    """Refuse a page made to choke a parser. One pass over the tags, none for small pages.

    Three shapes cost an HTML5 parser time that grows with the square of their size: elements nested very deep, one tag
    with very many attributes, and formatting elements left open, which the standard repeats in every paragraph that
    follows (HTML, 13.2.4.3). Everything else is linear: the limit of the body's size is enough for it.

    Raises:
        FetchError: TOO_LARGE, with the limit that the markup is over.
    """
    if len(html) <= _SMALL_CHARS and html.count("<") <= _SMALL_TAGS:
        return
    depth = repeated = 0
    formatting = _OpenFormatting()
    for closing, name, attributes in _TAG.findall(html):
        name = name.lower()
        if len(attributes) > _MAX_ATTRIBUTES:
            count = len(_BETWEEN.sub(" ", _QUOTED.sub("", attributes)).split())
            if count > _MAX_ATTRIBUTES:
                raise FetchError(
                    ErrorClass.TOO_LARGE,
                    Message(
                        "a <{name}> has {count} attributes, over {most}",
                        name=name,
                        count=count,
                        most=_MAX_ATTRIBUTES,
                    ),
                )
        if name in _FORMATTING:
            formatting.meet(name, attributes, bool(closing))
        elif not closing:
            repeated += formatting.open
        if closing:
            if depth and name not in _NEVER_NESTED:
                depth -= 1
            continue
        if name not in _NEVER_NESTED:
            depth += 1
        if depth > _MAX_DEPTH or repeated > _MAX_REPEATED:
            raise FetchError(
                ErrorClass.TOO_LARGE,
                Message(
                    "markup nested {depth} deep (limit {depth_limit}), with {repeated} repeats of open formatting "
                    "(limit {repeats_limit})",
                    depth=depth,
                    depth_limit=_MAX_DEPTH,
                    repeated=repeated,
                    repeats_limit=_MAX_REPEATED,
                ),
            )


class _OpenFormatting:
    """Formatting elements open at a place, as far as they will be repeated."""

    def __init__(self) -> None:
        self.open = 0
        self._attributes: dict[str, list[str]] = defaultdict(list)

    def meet(self, name: str, attributes: str, closing: bool) -> None:
        """Count a start or end tag; a link closes the one before it."""
        mine = self._attributes[name]
        if (closing or name == "a") and mine:
            mine.pop()
            self.open -= 1
        if not closing and mine[-_EQUAL_REPEATED:].count(attributes) < _EQUAL_REPEATED:
            mine.append(attributes)
            self.open += 1
