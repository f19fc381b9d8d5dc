"""Pages made to choke a parser, told before they are parsed.

Three shapes cost an HTML5 parser time that grows with the square of their size: elements nested very deep,
one tag with very many attributes, and formatting elements left open, which the standard repeats in every
paragraph that follows (HTML, 13.2.4.3). Everything else is linear, so the limit of the body's size is enough for it.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tasks.domain.crawl import ErrorClass, FetchError

# Pages below both can't be bad enough to matter, whatever their shape; they cost one count.
_SMALL_CHARS = 65_536
_SMALL_TAGS = 2000

_MAX_DEPTH = 1000
_MAX_ATTRIBUTES = 1000
_MAX_REPEATED = 500_000
# The standard repeats no more than three equal ones (its "Noah's Ark clause").
_EQUAL_REPEATED = 3

# Quotes hide a ">" only where a value may stand, after "=".
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)([^>=]*+(?:=\s*+(?:\"[^\"]*\"|'[^']*')?[^>=]*+)*+)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BETWEEN = re.compile(r"[=/]")
_FORMATTING = frozenset(
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"]
)
# Their end tags may be left out: the next one closes them.
_CLOSED_BY_NEXT = frozenset(["p", "li", "td", "th", "tr", "dt", "dd", "option"])
_NEVER_NESTED = _VOID | _CLOSED_BY_NEXT


def check_markup(html: str) -> None:
    """Let a page pass to the parser, or refuse it. One pass over the tags, none for small pages.

    Raises:
        FetchError: TOO_LARGE, saying which limit the markup is over.
    """
    if len(html) <= _SMALL_CHARS and html.count("<") <= _SMALL_TAGS:
        return
    depth = repeated = 0
    formatting = _OpenFormatting()
    for closing, name, attributes in _TAG.findall(html):
        name = name.lower()
        if len(attributes) > _MAX_ATTRIBUTES:
            _check_attributes(name, attributes)
        if name in _FORMATTING:
            formatting.meet(name, attributes, bool(closing))
        elif not closing:
            repeated += formatting.open
        if name not in _NEVER_NESTED:
            depth = max(0, depth - 1) if closing else depth + 1
        if depth > _MAX_DEPTH or repeated > _MAX_REPEATED:
            raise FetchError(
                ErrorClass.TOO_LARGE,
                f"markup nested {depth} deep (limit {_MAX_DEPTH}), with {repeated} repeats of open formatting "
                f"(limit {_MAX_REPEATED})",
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


def _check_attributes(name: str, attributes: str) -> None:
    count = len(_BETWEEN.sub(" ", _QUOTED.sub("", attributes)).split())
    if count > _MAX_ATTRIBUTES:
        raise FetchError(ErrorClass.TOO_LARGE, f"a <{name}> has {count} attributes, over {_MAX_ATTRIBUTES}")
