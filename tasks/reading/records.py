"""Records of a page and the fields of each, by CSS selectors.

Each field is selected once for all records. A CSS selector matches an element or not, whatever the search started from
(lexbor has no ``:scope``). So the first match inside a record is the first of the page's matches that has the record
among its ancestors, or is the record. A search from every record would find the same and cost five times as much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.rules import PageRules

from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.event_loop import NeedsReaderProcess, on_event_loop
from tasks.reading.markup import select, texts_of

LONGEST_ID = 200
"""Characters of a record's id: what is longer is none, and no database takes it."""
MOST_RECORDS = 1000
"""Records taken from one page; real ones have a hundred at most."""

_FIELD = re.compile(r"(.*?)(?:@([\w:-]+))?", re.DOTALL)
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,6})?")


def reviews_of(records: Records, rules: PageRules, now: datetime) -> tuple[Review, ...]:
    """The reviews of these records; those without a body are dropped.

    Args:
        now: aware; what relative dates (3小时前) count from.
    """
    bodies = records.values(rules.body)
    if not any(bodies):
        return ()
    return made_reviews(bodies, [records.values(getattr(rules, name)) for name in BESIDE_BODY], now)


BESIDE_BODY = ("id", "title", "author", "date", "rating", "variant")
"""The fields of a review's rules but its text, in the order that `made_reviews` takes them."""


def made_reviews(
    bodies: Sequence[str], columns: Iterable[Sequence[str]], now: datetime
) -> tuple[Review, ...]:
    """Reviews of the values of their fields (`BESIDE_BODY`); those without a body are dropped."""
    reviews: dict[str, Review] = {}
    rows = zip(bodies, *columns, strict=True)
    for place, (body, key, title, author, date, rating, variant) in enumerate(rows):
        if not body:
            continue
        if not key or key in reviews or len(key) > LONGEST_ID:
            key = f"#{place}"
        at, stars = read_date(date, now), rating_of(rating)
        reviews[key] = Review(key, title, body, author, date, at, stars, variant)
    return tuple(reviews.values())


@lru_cache(maxsize=1024)
def rating_of(text: str) -> float | None:
    """The first number in a rating's text; None where there is none."""
    match = _NUMBER.search(text)
    return float(match.group()) if match else None


class _Field(NamedTuple):
    """A field's rule (see splitter.catalog.rules), taken apart.

    Attributes:
        css: selector within the record; empty: the record itself.
        attribute: whose value is read; empty: the text.
        otherwise: rule that is read where this one is empty; empty: none.
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


def _values(nodes: Sequence[LexborNode | None], attribute: str) -> list[str]:
    """The collapsed texts of elements, or values of an attribute; empty for None."""
    if not attribute:
        return texts_of(nodes)
    read = [node.attrs.get(attribute) if node is not None else None for node in nodes]
    return [" ".join(value.split()) if value else "" for value in read]


class Records:
    """The elements a rule's record selector matches, in the order of the page.

    Attributes:
        nodes: the records.
    """

    def __init__(self, tree: LexborHTMLParser, css: str) -> None:
        """Raises FetchError(BAD_RULE) for what is no selector; NeedsReaderProcess for nested ones on an event loop."""
        self.nodes = select(tree, css)[:MOST_RECORDS]
        self._ids = [node.mem_id for node in self.nodes]
        self._places = {node_id: place for place, node_id in enumerate(self._ids)}
        self._scope: LexborHTMLParser | LexborNode = tree
        self._nested = False
        self._found: dict[str, Sequence[LexborNode | None]] = {}
        parents = [node.parent for node in self.nodes]
        if (
            len({parent.mem_id if parent is not None else 0 for parent in parents}) == 1
            and parents[0] is not None
        ):
            self._scope = parents[0]
        else:
            self._nested = self._any_nested()
            if (
                self._nested and on_event_loop.get()
            ):  # the texts of inner records are read once for each around them
                raise NeedsReaderProcess

    def values(self, rule: str) -> list[str]:
        """A rule's collapsed value in every record; empty where it finds nothing, or where the rule is empty."""
        if " & " in rule:
            return self._joined(rule)
        field = _field_of(rule)
        if field is None or not self.nodes:
            return [""] * len(self.nodes)
        values = _values(self._first_matches(field.css) if field.css else self.nodes, field.attribute)
        if not field.otherwise or all(values):
            return values
        return [value or other for value, other in zip(values, self.values(field.otherwise), strict=True)]

    def _joined(self, rule: str) -> list[str]:
        """The values of a rule with parts that are joined: of each record the first alternative that is not empty."""
        values = [""] * len(self.nodes)
        for alternative in rule.split(" | "):
            parts = zip(*map(self.values, alternative.split(" & ")), strict=True)
            joined = [" ".join(filter(None, row)) for row in parts]
            values = [value or other for value, other in zip(values, joined, strict=True)]
        return values

    def _first_matches(self, css: str) -> Sequence[LexborNode | None]:
        """For every record its first match of a selector; fields often share one (a@href, a)."""
        if css not in self._found:
            self._found[css] = self._search(css)
        return self._found[css]

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

    def _one_in_each(self, nodes: list[LexborNode]) -> bool:
        """True where the matches are one in each record, all equally deep: pages made from a template."""
        if len(nodes) != len(self.nodes):
            return False
        level: list[LexborNode | None] = list(nodes)
        while level[0] is not None and level[0].mem_id not in self._places:
            level = [node.parent if node is not None else None for node in level]
        return [node.mem_id for node in level if node is not None] == self._ids

    def _records_around(self, node: LexborNode) -> list[int]:
        """Places of the records a node is in: one at most, unless records are nested."""
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
        """True where a record has another among its ancestors."""
        passed: set[int] = set()
        for node in self.nodes:
            above = node.parent
            while above is not None and above.mem_id not in passed:
                if above.mem_id in self._places:
                    return True
                passed.add(above.mem_id)
                above = above.parent
        return False
