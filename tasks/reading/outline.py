"""A page's tree as plain lists, made in one walk: its elements, their names, and the texts in them.

Elements are numbered in the order of the page, so that those in an element are a range; so are the texts in it. What
is asked of many elements (how many characters, how many dates) is a difference of running sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.dates import DATE, SHORT_AGO
from tasks.reading.portraits import find_pictured, is_portrait
from tasks.reading.roles import roles

MOST_ELEMENTS = 60_000
"""Elements looked at; the rest of a larger page is not."""
_MOST_DEEP = 150
_MOST_NAMES = 12
_LONGEST_DATED = 80
_MOST_DATE_TEXTS = 5000
LONGEST_KEPT_VALUE = 200

_DROPPED = frozenset((
    "script", "style", "template", "noscript", "iframe", "svg", "canvas", "video", "audio", "object", "embed", "head",
    "select", "textarea", "option", "input", "button",
))  # fmt: skip
INLINE = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "img", "ins", "kbd",
    "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
    "var", "wbr", "-text",
))  # fmt: skip
_STREAMED = re.compile(r"S:\d")
"""An id of an element that React sends hidden, and shows by a script."""
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# Parts of a name that differ between elements of one kind: numbers of records.
_NUMBERED = re.compile(r"(?<![-_:])[-_:]*+\d[\da-fA-F]*+")
_KEPT = (
    "href",
    "datetime",
    "title",
    "itemprop",
    "rel",
    "content",
    "data-time",
    "data-timestamp",
    "data-author",
    "data-username",
)
_COUNTED, _LONGEST_COUNTED = re.compile(SHORT_AGO, re.ASCII), 5
_MOMENT = re.compile(r"(?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_MAYBE_DATE = re.compile(r"\d|[刚剛昨前]|ago|now|yesterday", re.IGNORECASE)


class Text(NamedTuple):
    """A piece of text as it stands in the tree.

    Attributes:
        owner: number of the element it stands in.
        apart: a line ends before it.
        linked: it stands in a link.
    """

    text: str
    owner: int
    apart: bool
    linked: bool


@dataclass(slots=True, kw_only=True)
class Outline:
    """Elements and texts of a page.

    Attributes:
        nodes, tags, parents, depths: of each element, its number the place; a parent of -1: none.
        names: class names without numbers.
        called: class names and id, as written.
        ends: of each element, the number behind the last one in it.
        first_text, last_text: of each element, the range of its texts.
        attributes: of the few that matter those that are there.
        texts: in the order of the page.
        portraits: images of persons, with their alternative texts.
        pictured: elements that name a person whose portrait is next to them.
    """

    nodes: list[LexborNode] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    names: list[tuple[str, ...]] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    first_text: list[int] = field(default_factory=list)
    last_text: list[int] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    dates: list[bool] = field(default_factory=list)
    _chars: list[int] = field(default_factory=list)
    _linked: list[int] = field(default_factory=list)
    dates_before: list[int] = field(default_factory=list)
    portraits: list[tuple[int, str]] = field(default_factory=list)
    pictured: frozenset[int] = frozenset()

    def chars(self, element: int) -> int:
        """Return how many characters an element's text has."""
        return self._chars[self.last_text[element]] - self._chars[self.first_text[element]]

    def link_chars(self, element: int) -> int:
        """Return how many of an element's characters stand in links."""
        return self._linked[self.last_text[element]] - self._linked[self.first_text[element]]

    def dated(self, element: int) -> int:
        """Return how many of an element's texts look like dates."""
        return self.dates_before[self.last_text[element]] - self.dates_before[self.first_text[element]]

    def above(self, element: int) -> Iterator[int]:
        """Yield an element and those around it, the root left out."""
        while element > 0:
            yield element
            element = self.parents[element]

    def text_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the texts in adjacent elements, from `start` up to the one before `end`."""
        first, last = self.first_text[start], self.last_text[start]
        while self.ends[start] < end:
            start = self.ends[start]
            last = self.last_text[start]
        return first, last

    def text_of(self, element: int) -> str:
        """Return the text of an element as it reads, see `joined`."""
        return self.joined(self.texts[self.first_text[element] : self.last_text[element]])

    def joined(self, texts: Iterable[Text]) -> str:
        """Return texts as they read, on the lines that the page has, with blanks collapsed."""
        parts: list[str] = []
        for text in texts:
            if text.apart and parts:
                parts.append("\x00")
            parts.append(text.text)
        lines = (" ".join(line.split()) for line in "".join(parts).split("\x00"))
        return "\n".join(line for line in lines if line)


def outline_of(tree: LexborHTMLParser) -> Outline:
    """Return the outline of a page's body without scripts, buttons and hidden elements, in linear time."""
    page = Outline()
    body = tree.body
    if body is None:
        return page
    node: LexborNode | None = body
    opened: list[int] = []
    in_link = 0
    apart = True
    while node is not None:
        text = node.text_content
        down = None
        if text is not None:
            if opened and not text.isspace():
                page.texts.append(Text(text, opened[-1], apart, in_link > 0))
                apart = False
            elif opened and page.texts and text and not apart:
                page.texts.append(Text(" ", opened[-1], False, in_link > 0))
        else:
            tag = node.tag or ""
            if tag == "br":
                apart = True
            elif tag not in _DROPPED and tag[:1] not in ("-", "!") and len(page.nodes) < MOST_ELEMENTS:
                shown = _add(page, node, tag, opened)
                if shown:
                    apart = apart or tag not in INLINE
                    in_link += tag == "a"
                    opened.append(len(page.nodes) - 1)
                    deep = len(opened) >= _MOST_DEEP
                    if deep:
                        _add_deep_texts(page, node, opened[-1], linked=in_link > 0)
                    down = None if deep else node.first_child
                    if down is None:
                        apart = _close(page, opened, apart)
                        in_link -= tag == "a"
        if down is not None:
            node = down
            continue
        following = node.next if opened else None
        while following is None and opened:
            closed = opened[-1]
            apart = _close(page, opened, apart)
            in_link -= page.tags[closed] == "a"
            following = page.nodes[closed].next if opened else None
        node = following
    _sum_up(page)
    return page


@lru_cache(maxsize=4096)
def _names(classes: str) -> tuple[str, ...]:
    return tuple(name for one in classes.split()[:_MOST_NAMES] if (name := _NUMBERED.sub("", one)))


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes and not _STREAMED.match(attributes.get("id") or ""):
        return True
    return _HIDDEN.search(attributes.get("style") or "") is not None


def _add(page: Outline, node: LexborNode, tag: str, opened: list[int]) -> bool:
    """Add an element; return False if it is hidden."""
    attributes = node.attributes
    if attributes and tag != "body" and _is_hidden(attributes):
        return False
    classes = (attributes.get("class") or "")[:LONGEST_KEPT_VALUE]
    page.nodes.append(node)
    page.tags.append(tag)
    page.names.append(_names(classes))
    page.called.append(f"{classes} {(attributes.get('id') or '')[:LONGEST_KEPT_VALUE]}")
    page.parents.append(opened[-1] if opened else -1)
    page.depths.append(len(opened))
    page.ends.append(0)
    page.first_text.append(len(page.texts))
    page.last_text.append(0)
    page.attributes.append(
        {name: value[:LONGEST_KEPT_VALUE] for name in _KEPT if (value := attributes.get(name))}
        if attributes
        else {}
    )
    if tag == "img" and is_portrait(
        attributes.get("class") or "", (attributes.get("src") or "")[:LONGEST_KEPT_VALUE]
    ):
        page.portraits.append((len(page.nodes) - 1, attributes.get("alt") or ""))
    return True


def _add_deep_texts(page: Outline, node: LexborNode, owner: int, *, linked: bool) -> None:
    """Add the texts in an element that is too deep for its inner elements to be kept: they are its own."""
    for inner in node.traverse(include_text=True):
        text = inner.text_content
        above = inner.parent
        if text and not text.isspace() and above is not None and above.tag not in _DROPPED:
            page.texts.append(Text(text, owner, above.tag not in INLINE, linked))


def _close(page: Outline, opened: list[int], apart: bool) -> bool:
    element = opened.pop()
    if page.first_text[element] == len(page.texts):
        _tell_time(page, element, apart)
    page.ends[element] = len(page.nodes)
    page.last_text[element] = len(page.texts)
    return apart or page.tags[element] not in INLINE


def _tell_time(page: Outline, element: int, apart: bool) -> None:
    """Let an element whose time only a script would write hold it as its text."""
    attributes = page.attributes[element]
    value = attributes.get("datetime") or attributes.get("title") or ""
    if _MOMENT.match(value):
        page.texts.append(Text(value, element, apart, page.tags[element] == "a"))


def _sum_up(page: Outline) -> None:
    lengths = [len(one.text.strip()) for one in page.texts]
    looked = 0
    for one, length in zip(page.texts, lengths, strict=True):
        maybe = 0 < length <= _LONGEST_DATED and looked < _MOST_DATE_TEXTS and _MAYBE_DATE.search(one.text)
        looked += bool(maybe)
        marked = page.tags[one.owner] == "time" and "datetime" in page.attributes[one.owner]
        titled = (
            DATE.search(page.attributes[one.owner].get("title", "")) if length <= _LONGEST_DATED else None
        )
        counted = (
            length <= _LONGEST_COUNTED
            and _COUNTED.fullmatch(one.text.strip())
            and (one.linked or "day" in roles(page.tags[one.owner], *page.names[one.owner]))
        )
        page.dates.append(bool(marked or titled or counted or (maybe and DATE.search(one.text))))
    page._chars = [0, *accumulate(lengths)]
    page._linked = [
        0,
        *accumulate(length if one.linked else 0 for one, length in zip(page.texts, lengths, strict=True)),
    ]
    page.dates_before = [0, *accumulate(map(int, page.dates))]
    page.pictured = find_pictured(page, page.portraits)
