"""A page's tree as plain lists, made in one walk: its elements, their names, and the texts in them.

Elements are numbered in the order of the page, so that those in an element are a range; so are the texts in it. What
is asked of many elements (how many characters, how many dates) is a difference of running sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.dates import DATE, SHORT_AGO
from tasks.reading.roles import Role, roles

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
    "var", "wbr",
))  # fmt: skip
_STREAMED = re.compile(r"S:\d")
"""An id of an element that React sends hidden, and shows by a script."""
# `visibility` and `opacity` hide what a script shows a moment later: the text of a WeChat article, for one.
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_BARE_CHARS = 200
"""A page that shows fewer characters than these outside links may hide its text until a script runs."""
_HIDDEN_CHARS = 60
"""Minimum number of characters in hidden elements that are the text of such a page."""
_TIMES_MORE_HIDDEN = 2
"""How many times the characters that the page shows they hold at least."""
_SENTENCE = re.compile(r"[。！？…]|[.!?](?:\s|$)")
# Parts of a name that differ between elements of one kind: numbers of records.
_NUMBERED = re.compile(r"(?<![-_:])[-_:]*+\d[\da-fA-F]*+")
_KEPT = frozenset((
    "href", "datetime", "title", "itemprop", "rel", "content", "data-time", "data-timestamp", "data-author",
    "data-username",
))  # fmt: skip
_COUNTED, _LONGEST_COUNTED = re.compile(SHORT_AGO, re.ASCII), 5
_MOMENT = re.compile(r"(?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
# The shape of a date whose month is written in a language that is not known.
_UNKNOWN_DATE = re.compile(
    r"(?:[^\W\d_]{2,12}\.?\s\d{1,2}|\d{1,2}\.?\s[^\W\d_]{2,12})[.,]{0,2}\s(?:19|20)\d\d(?:[\s,·|-]{1,3}\d{1,2}:\d\d)?"
)
_MAYBE_DATE = re.compile(r"\d|[刚剛昨前]|ago|now|yesterday", re.IGNORECASE)

_PORTRAIT = re.compile(
    r"avatar|touxiang|头像|user-?(?:head|pic|photo|face|ima?ge?)|(?:head|profile)[-_]?(?:pic|photo|ima?ge?s?)"
    r"|(?<![a-z])portraits?(?![a-z])",
    re.IGNORECASE,
)
_AROUND_NAME = re.compile(
    r"^(?:avatar|photo|picture|portrait|profile (?:picture|photo|image)) (?:of|for) "
    r"|(?:['’]s)? (?:avatar|photo|picture|portrait|profile (?:picture|photo|image))$|的?头像$",
    re.IGNORECASE,
)
_LONGEST_NAME, _LONGEST_CALLED = 40, 80
_NEAR, _LINK_ABOVE = 8, 12
_MOST_PORTRAITS = 2000

_Attributes = dict[str, str | None]
_NONE: dict[str, str] = {}


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
        nodes, tags, parents: of each element, its number the place; a parent of -1: none.
        names, roles: class names without numbers, and what they say that an element is.
        called: class names and id, in lower case.
        ends: of each element, the number behind the last one in it.
        first_text, last_text: of each element, the range of its texts.
        attributes: of the few that matter those that are there.
        texts, lengths: in the order of the page, and their characters without blanks around them.
        pictured: elements that name a person whose portrait is next to them.
        persons: filled by `people.is_person`.
    """

    nodes: list[LexborNode] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    names: list[tuple[str, ...]] = field(default_factory=list)
    roles: list[frozenset[Role]] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    first_text: list[int] = field(default_factory=list)
    last_text: list[int] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    dates: list[bool] = field(default_factory=list)
    _chars: list[int] = field(default_factory=list)
    _linked: list[int] = field(default_factory=list)
    dates_before: list[int] = field(default_factory=list)
    pictured: frozenset[int] = frozenset()
    persons: list[int] = field(default_factory=list)

    def chars(self, element: int) -> int:
        """Return how many characters an element's text has."""
        return self._chars[self.last_text[element]] - self._chars[self.first_text[element]]

    def link_chars(self, element: int) -> int:
        """Return how many of an element's characters stand in links."""
        return self._linked[self.last_text[element]] - self._linked[self.first_text[element]]

    def count_chars(self, first: int, last: int) -> tuple[int, int]:
        """Return how many characters a range of texts has, and how many of them stand in links."""
        return self._chars[last] - self._chars[first], self._linked[last] - self._linked[first]

    def count_dates(self, element: int) -> int:
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
        """Return the text of an element as it reads, see `join_texts`."""
        return self.join_texts(self.texts[self.first_text[element] : self.last_text[element]])

    def join_texts(self, texts: Iterable[Text]) -> str:
        """Return texts as they read, on the lines that the page has, with blanks collapsed."""
        parts = [f"\x00{text.text}" if text.apart else text.text for text in texts]
        if len(parts) == 1:
            return " ".join(parts[0].lstrip("\x00").split())
        lines = [" ".join(line.split()) for line in "".join(parts).split("\x00")]
        return "\n".join(filter(None, lines))


def outline_of(tree: LexborHTMLParser) -> Outline:
    """Return the outline of a page's body without scripts, buttons and hidden elements, in linear time.

    Hidden elements are part of it if the page shows no text to speak of without them.
    """
    page = Outline()
    if tree.body is not None:
        hidden: list[LexborNode] = []
        attributes = _walk(page, tree.body, hidden)
        if hidden and _is_bare(page, hidden):
            page = Outline()
            attributes = _walk(page, tree.body, None)
        _describe(page, attributes)
        _sum_up(page)
    return page


def _is_bare(page: Outline, hidden: list[LexborNode]) -> bool:
    """Return True if the text of the page is in elements that it hides."""
    shown = sum(len(text.text) for text in page.texts if not text.linked)
    if shown >= _BARE_CHARS:
        return False
    prose = "\n".join(_unlinked_text(node) for node in hidden)
    enough = max(_HIDDEN_CHARS, _TIMES_MORE_HIDDEN * shown)
    return len(prose) >= enough and _SENTENCE.search(prose) is not None


def _unlinked_text(node: LexborNode) -> str:
    """Return the text in an element, without that of links, scripts and the like."""
    texts = []
    for inner in node.traverse(include_text=True):
        text = inner.text_content
        above = inner.parent
        if text and above is not None and above.tag != "a" and above.tag not in _DROPPED:
            texts.append(text.strip())
    return "".join(texts)


def _walk(page: Outline, body: LexborNode, hidden: list[LexborNode] | None) -> list[_Attributes]:
    """Add elements and texts; return the attributes of each element.

    Args:
        hidden: takes the elements that are left out because they are hidden; `None` leaves none out.
    """
    nodes, tags, parents, ends, texts = page.nodes, page.tags, page.parents, page.ends, page.texts
    attributes: list[_Attributes] = []
    owner, depth, in_link, apart = -1, 0, 0, True
    node: LexborNode | None = body
    while node is not None or owner >= 0:
        if node is None:
            closed, owner = owner, parents[owner]
            if page.first_text[closed] == len(texts) and (moment := _moment(attributes[closed])):
                texts.append(Text(moment, closed, apart, in_link > 0))
            ends[closed], page.last_text[closed] = len(nodes), len(texts)
            depth -= 1
            in_link -= tags[closed] == "a"
            apart = apart or tags[closed] not in INLINE
            node = nodes[closed].next if owner >= 0 else None
            continue
        if (text := node.text_content) is not None:
            if not text.isspace():
                texts.append(Text(text, owner, apart, in_link > 0))
                apart = False
            elif texts and not apart:
                texts.append(Text(" ", owner, False, in_link > 0))
        elif (tag := node.tag or "") == "br":
            apart = True
        elif tag not in _DROPPED and node.is_element_node and len(nodes) < MOST_ELEMENTS:
            found = node.attributes
            if owner >= 0 and hidden is not None and _is_hidden(found):
                hidden.append(node)
            else:
                attributes.append(found)
                nodes.append(node)
                tags.append(tag)
                parents.append(owner)
                ends.append(0)
                page.first_text.append(len(texts))
                page.last_text.append(0)
                owner = len(nodes) - 1
                depth += 1
                in_link += tag == "a"
                apart = apart or tag not in INLINE
                if depth >= _MOST_DEEP:
                    _add_deep_texts(page, node, owner, linked=in_link > 0)
                node = node.first_child if depth < _MOST_DEEP else None
                continue
        node = node.next
    return attributes


@lru_cache(maxsize=4096)
def class_names(classes: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_drop_number, classes.split()[:_MOST_NAMES])))


@lru_cache(maxsize=8192)
def _drop_number(name: str) -> str:
    return _NUMBERED.sub("", name)


def _is_hidden(attributes: _Attributes) -> bool:
    if "hidden" in attributes and not _STREAMED.match(attributes.get("id") or ""):
        return True
    return "style" in attributes and _HIDDEN.search(attributes["style"] or "") is not None


def _add_deep_texts(page: Outline, node: LexborNode, owner: int, *, linked: bool) -> None:
    """Add the texts in an element that is too deep for its inner elements to be kept: they are its own."""
    for inner in node.traverse(include_text=True):
        text = inner.text_content
        above = inner.parent
        if text and not text.isspace() and above is not None and above.tag not in _DROPPED:
            page.texts.append(Text(text, owner, above.tag not in INLINE, linked))


def _moment(attributes: _Attributes) -> str:
    """Return the time of an element that only a script would write into it, or an empty text."""
    value = attributes.get("datetime") or attributes.get("title") or ""
    return value[:LONGEST_KEPT_VALUE] if _MOMENT.match(value) else ""


def _describe(page: Outline, attributes: list[_Attributes]) -> None:
    classes = [(one.get("class") or "")[:LONGEST_KEPT_VALUE] for one in attributes]
    page.names = list(map(class_names, classes))
    page.roles = [roles(*names) for names in page.names]
    page.called = [
        f"{names} {(one.get('id') or '')[:LONGEST_KEPT_VALUE]}".lower()
        for names, one in zip(classes, attributes, strict=True)
    ]
    page.attributes = [
        _NONE
        if _KEPT.isdisjoint(one)
        else {name: value[:LONGEST_KEPT_VALUE] for name, value in one.items() if value and name in _KEPT}
        for one in attributes
    ]


def _sum_up(page: Outline) -> None:
    page.lengths = [len(one.text.strip()) for one in page.texts]
    searched = 0
    for one, length in zip(page.texts, page.lengths, strict=True):
        marked = length <= _LONGEST_COUNTED or page.attributes[one.owner]
        dated = bool(marked) and _is_marked_date(page, one, length)
        if not dated and length <= _LONGEST_DATED and searched < _MOST_DATE_TEXTS:
            maybe = _MAYBE_DATE.search(one.text) is not None
            searched += maybe
            dated = maybe and (
                DATE.search(one.text) is not None or _UNKNOWN_DATE.fullmatch(one.text.strip()) is not None
            )
        page.dates.append(dated)
    linked = (length if one.linked else 0 for one, length in zip(page.texts, page.lengths, strict=True))
    page._chars = [0, *accumulate(page.lengths)]
    page._linked = [0, *accumulate(linked)]
    page.dates_before = [0, *accumulate(map(int, page.dates))]
    page.pictured = _find_pictured(page)


def _is_marked_date(page: Outline, text: Text, length: int) -> bool:
    """Return True if the element of a text marks it as a date, or the text is a count and a letter (4y)."""
    attributes = page.attributes[text.owner]
    if "datetime" in attributes and page.tags[text.owner] == "time":
        return True
    if length > _LONGEST_DATED:
        return False
    if "title" in attributes and DATE.search(attributes["title"]):
        return True
    return (
        length <= _LONGEST_COUNTED
        and _COUNTED.fullmatch(text.text.strip()) is not None
        and (text.linked or "day" in roles(page.tags[text.owner]) | page.roles[text.owner])
    )


def _find_pictured(page: Outline) -> frozenset[int]:
    """Return the elements that hold the name of a person next to a portrait, in linear time.

    If no element is called an author, because classes describe only looks, each text still has a portrait of its author
    next to it, with the name as its alternative text, or in a link to the person's page. Only the first 2000 count.
    """
    found: set[int] = set()
    targets: set[str] = set()
    for element, called in islice(_portraits(page), _MOST_PORTRAITS):
        targets.add(_target(page, element))
        name = _AROUND_NAME.sub("", " ".join(called[:_LONGEST_CALLED].split())).lower()
        if 1 < len(name) <= _LONGEST_NAME:
            near = page.texts[(first := page.first_text[element]) : first + _NEAR]
            found.update(one.owner for one in near if one.text.strip().lower() == name)
    targets.discard("")
    for element, tag in enumerate(page.tags if targets else ()):
        names = tag == "a" and 0 < page.chars(element) <= _LONGEST_NAME
        if names and page.attributes[element].get("href", "") in targets:
            found.add(element)
            found.update(one.owner for one in page.texts[page.first_text[element] : page.last_text[element]])
    return frozenset(found)


def _portraits(page: Outline) -> Iterator[tuple[int, str]]:
    """Yield the portraits with their alternative texts."""
    for element, tag in enumerate(page.tags):
        if tag == "img":
            attributes = page.nodes[element].attributes
            source = (attributes.get("src") or "")[:LONGEST_KEPT_VALUE]
            if _PORTRAIT.search(f"{attributes.get('class') or ''} {source}"):
                yield element, attributes.get("alt") or ""


def _target(page: Outline, element: int) -> str:
    """Return the target of the link around an image, or an empty text."""
    around = islice(page.above(element), _LINK_ABOVE)
    link = next((one for one in around if page.tags[one] == "a"), None)
    target = page.attributes[link].get("href", "") if link is not None else ""
    return "" if target.startswith(("#", "javascript:")) or target == "/" else target
