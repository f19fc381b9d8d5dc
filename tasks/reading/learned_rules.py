"""Rules learned from the first threads of a site: its later ones are read by CSS selectors.

Rules are made from the full reader's result for a page (wrapper induction, Kushmerick, Artificial Intelligence
118, 2000, without a person who marks pages). A page is read by them if it holds only elements whose names were seen on
pages that they read exactly: another name may be a notice, a form of quote, or an opening post.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import chain, islice
from operator import eq
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode
from splitter.catalog.rules import PageRules

from tasks.domain.pages import PageRead
from tasks.reading.element_kinds import Quotes, kind_of
from tasks.reading.markup import collapse, parse_whole, text_of
from tasks.reading.outline import Outline, class_names, outline_of
from tasks.reading.page import Page
from tasks.reading.record_fields import Record, tidy
from tasks.reading.records import Records
from tasks.reading.stars import shown_rating, sure_ratings
from tasks.reading.thread_pages import Row, make_page, read_thread_page
from tasks.reading.threads import key_of, next_part, read_thread

AGREEING = 3
"""Pages that rules must read exactly before they are used."""
CHECKED = 20
"""Every page of this number is also read in full."""
DISAGREEING = 2
"""Pages in a row that rules read in another way, after which they are dropped."""
MOST_SITES = 200
"""Maximum number of sites whose rules are kept."""
_MOST_NAMES, _MOST_TRIES, _MOST_ELEMENTS = 500, 3, 10_000
_SAMPLES, _CANDIDATES, _STEPS, _BLANKS = 10, 40, 3, 0.2
_TAG = re.compile(r"<([a-zA-Z][\w-]*)(?:\s[^<>]*?\bclass\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'))?")
_PLAIN = re.compile(r"-?[A-Za-z_][\w-]*", re.ASCII)
_WORD = re.compile(r"[^\W\d_]+")

Name = tuple[str, tuple[str, ...]]
"""An element's tag and classes, without their numbers."""


class LearnedRules:
    """Reads threads, by learned rules if it can.

    Attributes:
        served: number of pages read by rules.
        sites: those read last, at most `MOST_SITES`, by host and path shape.
    """

    def __init__(self) -> None:
        self.served = 0
        self.sites: OrderedDict[str, _Site] = OrderedDict()

    def read_thread_page(self, page: Page, now: datetime) -> PageRead | None:
        """Read a page as `thread_pages.read_thread_page` does."""
        key = _site_key(page.url)
        site = self.sites.setdefault(key, _Site())
        self.sites.move_to_end(key)
        if len(self.sites) > MOST_SITES:
            self.sites.popitem(last=False)
        read, by_rules = site.read(page, now)
        self.served += by_rules
        if site.disagreed == DISAGREEING:
            del self.sites[key]
        return read


@dataclass(slots=True)
class _Site:
    """The pages of one host and path shape.

    Attributes:
        pages, tries: pages read; those that rules were learned from.
        agreed, names: pages that the rules read exactly, and the elements in them.
        usual: mean number of reviews of these pages.
        disagreed: pages that the rules in use did not read exactly, since the last one that they did.
    """

    rules: PageRules | None = None
    pages: int = 0
    tries: int = 0
    agreed: int = 0
    usual: float = 0.0
    names: set[Name] = field(default_factory=set)
    disagreed: int = 0

    def read(self, page: Page, now: datetime) -> tuple[PageRead | None, bool]:
        """Read a page; return True with it if the rules did."""
        self.pages += 1
        quick = read_by_rules(page, self.rules, now) if self.rules is not None else None
        names = _names_of(page) if quick is not None else set()
        trusted = self.agreed >= AGREEING and names <= self.names and self.pages % CHECKED != 0
        if quick is not None and trusted and 2 * len(quick.reviews) >= self.usual:
            return quick, True
        read = read_thread_page(page, now)
        if read is not None and quick != read and self.agreed < AGREEING and self.tries < _MOST_TRIES:
            self.tries += 1
            self.rules, self.agreed, self.names = learn(page, read, now), 0, set()
            quick, names = (read, _names_of(page)) if self.rules is not None else (None, names)
        if quick is not None and quick == read:
            self.agreed, self.disagreed = self.agreed + 1, 0
            self.usual += (len(quick.reviews) - self.usual) / self.agreed
            if len(self.names) + len(names) <= _MOST_NAMES:
                self.names |= names
        elif self.agreed >= AGREEING:
            self.disagreed += quick is not read  # both may be None
        return read, False


def _names_of(page: Page) -> set[Name]:
    return {(tag.lower(), class_names(one or other)) for tag, one, other in set(_TAG.findall(page.text))}


def _site_key(url: str) -> str:
    """Return host and path of an address without numbers; a segment with several words (a title) stands for any."""
    parts = urlsplit(url)
    words = map(_WORD.findall, parts.path.split("/"))
    return parts.netloc + "/".join("*" if len(one) > 1 else "".join(one) for one in words)


def read_by_rules(page: Page, rules: PageRules, now: datetime) -> PageRead | None:
    """Read a thread by learned rules; `None` if a record has no author, or if there are not two different records."""
    records = Records(page.tree, rules.review)
    if len(records.nodes) < 2 or page.metadata.home or page.metadata.article:
        return None
    bodies = _bodies(records, rules.body)
    values = (records.values(rule) for rule in (rules.author, rules.date, rules.title))
    columns = map(key_of, records.nodes), bodies, *values, _ratings(records, rules.rating)
    rows = [Row(*row) for row in zip(*columns, strict=False) if row[1] and row[3]]
    cut = len(bodies) < len(records.nodes)  # by markup that ends the page early
    signed = not rules.author or all(row.author for row in rows)
    if cut or not signed or len(rows) < 2 or len({row[1:] for row in rows}) < len(rows):
        return None
    links = ((node.attributes.get("href") or "", text_of(node)) for node in page.tree.css("a"))
    return make_page(page, page.metadata, None, rows, next_part(links, page.links), now)


def _ratings(records: Records, rule: str) -> list[float | None]:
    """Return the rating of each record, by a rule for the element that shows it."""
    nodes = records.first_matches(rule) if rule else [None] * len(records.nodes)
    return sure_ratings(
        [shown_rating(node, text_of(node)) if node is not None else (None, False) for node in nodes]
    )


def _bodies(records: Records, rule: str) -> list[str]:
    """Return the text of each record with its lines, without quotes and signatures; empty if it is only a link."""
    page = outline_of(parse_whole("".join(map(_as_article, records.first_matches(rule)))))
    quotes = Quotes(page)
    spans = list(zip(page.first_text, page.last_text, strict=True))
    inner = [element for element, above in enumerate(page.parents) if above > 0]
    apart = {n for element in inner if kind_of(page, element, quotes) for n in range(*spans[element])}
    bodies = [span for span, above in zip(spans, page.parents, strict=True) if above == 0]
    own = ([page.texts[n] for n in range(*span) if n not in apart] for span in bodies)
    return ["" if all(one.linked for one in texts) else tidy(page.join_texts(texts)) for texts in own]


def _as_article(node: LexborNode | None) -> str:
    """Return an element as an article of the same class: a cell can't stand outside a table."""
    classes, inner = (node.attributes.get("class") or "", node.inner_html) if node is not None else ("", "")
    return f'<article class="{escape(classes)}">{inner}</article>'


def learn(page: Page, read: PageRead | None, now: datetime) -> PageRules | None:
    """Return rules that read a thread exactly as it was read; `None` if there are none, or if a text opens it.

    Args:
        read: by the full reader; `None` if the page is no thread.
    """
    outline = page.outline
    thread = read_thread(outline, now) if read is not None and len(outline.nodes) <= _MOST_ELEMENTS else None
    if thread is None or read is None or len(thread.records) != len(read.reviews):
        return None
    starts = [start for start, _ in thread.spans]
    review = _selector(outline, *starts)
    if review == outline.tags[starts[0]]:
        review = f"{_selector(outline, outline.parents[starts[0]])} > {review}"
    records = Records(page.tree, review)
    by_node = {outline.nodes[one.element].mem_id: one for one in thread.records}
    found = [by_node.get(node.mem_id) for node in records.nodes]

    def best(name: str, other: str = "") -> str:
        """Return the rule that gives most records a field. Records that have it by the rule `other` suggest none."""
        wanted = [collapse(getattr(one, name)) if one is not None else "" for one in found]
        left = (one for one, value in zip(found, records.values(other), strict=True) if one and not value)
        tried = (_rules_for(outline, one.element, getattr(one, name)) for one in islice(left, _SAMPLES))
        likely = [rule for rule, _ in Counter(chain.from_iterable(tried)).most_common(_CANDIDATES)]
        hits = {rule: sum(map(eq, records.values(rule), wanted)) for rule in likely}
        return max(likely, key=hits.__getitem__, default="")

    both = ((rule := best(name), best(name, rule)) for name in ("author", "date_text"))
    author, date = (" | ".join(filter(None, rules)) for rules in both)
    rating = _best_rating_rule(outline, records, found)
    rules = PageRules(
        review=review, body=best("text"), author=author, date=date, title=best("title"), rating=rating
    )
    return rules if rules.body and rules.date and read_by_rules(page, rules, now) == read else None


def _best_rating_rule(page: Outline, records: Records, found: Sequence[Record | None]) -> str:
    """Return the rule for the element that shows most ratings; empty if none does."""
    wanted = [one.rating if one is not None else None for one in found]
    rated = (one for one in found if one is not None and one.rated > one.element)
    tried = (_paths(page, one.element, one.rated) for one in islice(rated, _SAMPLES))
    likely = [rule for rule, _ in Counter(filter(None, chain.from_iterable(tried))).most_common(_CANDIDATES)]
    hits = {rule: sum(map(eq, _ratings(records, rule), wanted)) for rule in likely}
    return max(likely, key=hits.__getitem__, default="")


def _selector(page: Outline, *elements: int) -> str:
    """Return a selector by the tag and `itemprop` of the first element, and the classes without numbers of all."""
    first = elements[0]
    common = set.intersection(*(set(page.called[one].split()) & set(page.names[one]) for one in elements))
    classes = "".join(f".{one}" for one in page.names[first] if one in common and _PLAIN.fullmatch(one))
    marked = page.attributes[first].get("itemprop", "")
    return page.tags[first] + classes + (f'[itemprop="{marked}"]' if _PLAIN.fullmatch(marked) else "")


def _rules_for(page: Outline, record: int, value: str) -> Iterator[str]:
    """Yield rules that may read a value from a record: the steps to an element with it, and its place among others."""
    value = collapse(value)
    for element in range(record, page.ends[record] if value and record else record):
        ends = [f"@{name}" for name, kept in page.attributes[element].items() if kept == value]
        near = element > record and abs(page.chars(element) - len(value)) <= _BLANKS * len(value)
        if near and collapse(page.text_of(element)) == value:
            ends.append("")
        if not ends:
            continue
        yield from (path + end for path in _paths(page, record, element) for end in ends)


def _paths(page: Outline, record: int, element: int) -> Iterator[str]:
    """Yield selectors of an element in a record: the steps to it, without and with its place among others."""
    steps = [_selector(page, one) for one in islice(page.above(element), _STEPS) if one > record]
    beside = [node.mem_id for node in page.nodes[page.parents[element]].iter()]
    place = f":nth-child({beside.index(page.nodes[element].mem_id) + 1})"
    for count in range(element > record, len(steps) + 1):
        path = " > ".join(steps[:count][::-1])
        yield from (path + at for at in ("", place))
