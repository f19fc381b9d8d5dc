"""Records of a page with their fields, by CSS selectors.

Each field is selected once for all records. Whether an element matches a CSS selector does not depend on where the
search starts (lexbor has no ``:scope``). So the first match inside a record is the page's first match that is the
record or has it as an ancestor. A search from every record would find the same at five times the cost.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.rules import PageRules

from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.markup import select, texts_of

LONGEST_ID = 200
"""Maximum characters of a record's id. A longer one counts as none, because no database takes it."""
MOST_RECORDS = 1000
"""Maximum records taken from one page; real pages have a hundred."""
OTHER_FIELDS = ("id", "title", "author", "date", "rating", "variant")
"""Fields of a review in page rules, other than its body, in the order that `make_reviews` takes them."""

_FIELD = re.compile(r"(.*?)(?:@([\w:-]+))?", re.DOTALL)
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,6})?")


def reviews_of(records: FieldValues[Any], rules: PageRules, now: datetime) -> tuple[Review, ...]:
    """Read reviews from records; a record without a body gives none.

    Args:
        now: aware; relative dates (3小时前) count from it.
    """
    bodies = records.values(rules.body)
    if not any(bodies):
        return ()
    columns = [records.values(getattr(rules, name)) for name in OTHER_FIELDS]
    return make_reviews(zip(bodies, *columns, strict=True), now)


def make_reviews(rows: Iterable[Iterable[str]], now: datetime) -> tuple[Review, ...]:
    """Make reviews from rows of a body and its `OTHER_FIELDS`; a row without a body gives none."""
    reviews: dict[str, Review] = {}
    dates: dict[str, datetime | None] = {}
    for place, (body, key, title, author, date, rating, variant) in enumerate(rows):
        if not body:
            continue
        if not key or key in reviews or len(key) > LONGEST_ID:
            key = f"#{place}"
        if date not in dates:
            dates[date] = read_date(date, now)
        reviews[key] = Review(key, title, body, author, date, dates[date], rating_of(rating), variant)
    return tuple(reviews.values())


@lru_cache(maxsize=1024)
def rating_of(text: str) -> float | None:
    """Return the first number in a rating's text, if there is one."""
    match = _NUMBER.search(text)
    return float(match.group()) if match else None


class _Field(NamedTuple):
    """The parts of a field's rule (see splitter.catalog.rules).

    Attributes:
        css: selector within the record; empty for the record itself.
        attribute: the attribute to read; empty for the text.
        otherwise: rule that is read if this one finds nothing; empty for none.
    """

    css: str
    attribute: str
    otherwise: str


@lru_cache(maxsize=1024)
def _field_of(rule: str) -> _Field | None:
    if not rule.strip():
        return None
    text, _, others = rule.partition(" | ")
    match = _FIELD.fullmatch(text.strip())
    css, attribute = (match[1].strip(), match[2]) if match is not None else (text, "")
    return _Field("" if css == "." else css, (attribute or "").lower(), others)


Node = TypeVar("Node")


class FieldValues(ABC, Generic[Node]):
    """The fields of records, whatever parser found them.

    Attributes:
        nodes: the records, in the order of the page.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._found: dict[str, Sequence[Node | None]] = {}

    def values(self, rule: str) -> list[str]:
        """Return a rule's collapsed value in every record; empty if it finds nothing, or if the rule is empty."""
        if " & " in rule:
            return self._join_values(rule)
        field = _field_of(rule)
        if field is None or not self.nodes:
            return [""] * len(self.nodes)
        values = self._read(self.first_matches(field.css) if field.css else self.nodes, field.attribute)
        if not field.otherwise or all(values):
            return values
        return [value or other for value, other in zip(values, self.values(field.otherwise), strict=True)]

    def _join_values(self, rule: str) -> list[str]:
        """Return the values of a rule with joined parts: for each record the first alternative that is not empty."""
        values = [""] * len(self.nodes)
        for alternative in rule.split(" | "):
            parts = zip(*map(self.values, alternative.split(" & ")), strict=True)
            joined = [" ".join(filter(None, row)) for row in parts]
            values = [value or other for value, other in zip(values, joined, strict=True)]
        return values

    def first_matches(self, css: str) -> Sequence[Node | None]:
        """Return each record's first match of a selector; fields often share one (a@href, a)."""
        if css not in self._found:
            self._found[css] = self._search(css)
        return self._found[css]

    @abstractmethod
    def _search(self, css: str) -> Sequence[Node | None]:
        """Return each record's first match."""

    @abstractmethod
    def _read(self, nodes: Sequence[Node | None], attribute: str) -> list[str]:
        """Return the collapsed texts of elements, or the values of an attribute; empty for None."""


class Records(FieldValues[LexborNode]):
    """The elements a rule's record selector matches."""

    def __init__(self, tree: LexborHTMLParser, css: str) -> None:
        """Raises FetchError(BAD_RULE) if `css` is no selector."""
        super().__init__(select(tree, css)[:MOST_RECORDS])
        self._ids = [node.mem_id for node in self.nodes]
        self._places = {node_id: place for place, node_id in enumerate(self._ids)}
        self._scope: LexborHTMLParser | LexborNode = tree
        self._nested = False
        parent = self.nodes[0].parent if self.nodes else None
        if parent is not None and all(
            other is not None and other.mem_id == parent.mem_id
            for other in (node.parent for node in self.nodes)
        ):
            self._scope = parent
        else:
            self._nested = self._any_nested()

    def _search(self, css: str) -> Sequence[LexborNode | None]:
        nodes = select(self._scope, css)
        if not self._nested and self._one_in_each(nodes):
            return nodes
        found: list[LexborNode | None] = [None] * len(self.nodes)
        for node in nodes:
            for place in self._records_around(node):
                if found[place] is None:
                    found[place] = node
        return found

    def _read(self, nodes: Sequence[LexborNode | None], attribute: str) -> list[str]:
        if not attribute:
            return texts_of(nodes)
        read = [node.attrs.get(attribute) if node is not None else None for node in nodes]
        return [" ".join(value.split()) if value else "" for value in read]

    def _one_in_each(self, nodes: list[LexborNode]) -> bool:
        """Return True if each record has one match, all equally deep, as in pages made from a template."""
        if len(nodes) != len(self.nodes):
            return False
        level: list[LexborNode | None] = list(nodes)
        while level[0] is not None and level[0].mem_id not in self._places:
            level = [node.parent if node is not None else None for node in level]
        return [node.mem_id for node in level if node is not None] == self._ids

    def _records_around(self, node: LexborNode) -> list[int]:
        """Return the places of the records around a node: at most one, unless records are nested."""
        places: list[int] = []
        above: LexborNode | None = node
        while above is not None:
            place = self._places.get(above.mem_id)
            if place is not None:
                places.append(place)
                if not self._nested:
                    break
            above = above.parent
        return places

    def _any_nested(self) -> bool:
        """Return True if a record has another one among its ancestors."""
        passed: set[int] = set()
        for node in self.nodes:
            above = node.parent
            while above is not None and above.mem_id not in passed:
                if above.mem_id in self._places:
                    return True
                passed.add(above.mem_id)
                above = above.parent
        return False
