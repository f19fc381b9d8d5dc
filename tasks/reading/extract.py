"""Pages of sites, read into reviews by the catalog's rules: records, and the fields of each record.

Each field is selected once for all records. A CSS selector matches an element or not, whatever the search started from
(lexbor has no ``:scope``). So the first match inside a record is the first of the page's matches that has the record
among its ancestors, or is the record. A search from every record would find the same and cost five times as much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.rules import PageRules

from tasks.domain.address import authority_of, joined, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import PageRead, Review
from tasks.reading.dates import read_date
from tasks.reading.interstitials import raise_if_blocked
from tasks.reading.maintext import read_main_text
from tasks.reading.markup import first, page_text, parse, select, text_of, texts_of

LONGEST_ID = 200
"""Characters of a record's id: what is longer is none, and no database takes it."""

_FIELD = re.compile(r"(.*?)(?:@([\w:-]+))?", re.DOTALL)
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,6})?")


def read_page(text: str, url: str, rules: PageRules, *, now: datetime) -> PageRead:
    """Read a page into its reviews; records without a body are dropped.

    The patterns of a refusal are searched only where there is no review: a review may well speak of a captcha.

    Args:
        text: of the answer, decoded.
        url: its final address.
        now: aware; what relative dates (3小时前) count from.

    Raises:
        FetchError: the refusal's class; BAD_RULE, with what the selectors matched, where no review is found.
    """
    if rules.main_text:
        return read_main_text(text, url, rules, now)
    tree = parse(text)
    records = Records(tree, rules.review)
    reviews = _reviews(records, rules, now)
    if not reviews:
        shown = page_text(tree)
        raise_if_blocked(shown, url, rules.blocked)
        raise FetchError(
            ErrorClass.BAD_RULE,
            f"review {rules.review!r} matches {len(records.nodes)}, body {rules.body!r} is filled in none of them; "
            f"the page says: {shown[:120]}",
        )
    title = first(tree, rules.page_title) if rules.page_title else None
    return PageRead(text_of(title) if title is not None else "", reviews, _next_url(tree, url, rules.next))


def _next_url(tree: LexborHTMLParser, url: str, css: str) -> str:
    """Where the review list goes on; empty where nothing says so, or what does leads back here or elsewhere."""
    link = first(tree, css) if css else None
    reference = (link.attrs.get("href") or "").strip() if link is not None else ""
    if not reference or reference.startswith("#"):
        return ""
    try:
        here, following = sendable(url), joined(url, reference)
    except FetchError:  # javascript:, an address that can't be requested
        return ""
    same_host = authority_of(following) == authority_of(here)
    return following if same_host and following != here else ""


def _reviews(records: Records, rules: PageRules, now: datetime) -> tuple[Review, ...]:
    bodies = records.values(rules.body)
    if not any(bodies):
        return ()
    columns = map(records.values, (rules.id, rules.title, rules.author, rules.date, rules.rating))
    reviews: dict[str, Review] = {}
    for place, (body, key, title, author, date, rating) in enumerate(zip(bodies, *columns, strict=True)):
        if not body:
            continue
        if not key or key in reviews or len(key) > LONGEST_ID:
            key = f"#{place}"
        reviews[key] = Review(key, title, body, author, date, read_date(date, now), rating_of(rating))
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
        """Raises FetchError(BAD_RULE) for what is no selector."""
        self.nodes = select(tree, css)
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

    def values(self, rule: str) -> list[str]:
        """A rule's collapsed value in every record; empty where it finds nothing, or where the rule is empty."""
        field = _field_of(rule)
        if field is None or not self.nodes:
            return [""] * len(self.nodes)
        values = _values(self._first_matches(field.css) if field.css else self.nodes, field.attribute)
        if not field.otherwise or all(values):
            return values
        return [value or other for value, other in zip(values, self.values(field.otherwise), strict=True)]

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
