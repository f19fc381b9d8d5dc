"""Pages without rules that hold what many people wrote: threads, comments, answers, lists of reviews.

The records are found by `tasks.reading.repeated` and read by `tasks.reading.record_fields`. What opens the page (a
question, a post of another shape than its replies, an article above its comments) is no record of the group: it is the
page's main text if that stands outside them, and else the densest text in front of the first record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from urllib.parse import parse_qsl, urlsplit

from selectolax.lexbor import LexborNode

from tasks.reading.links import Links
from tasks.reading.outline import LONGEST_KEPT_VALUE, Outline
from tasks.reading.people import place_of
from tasks.reading.record_fields import Record, read_records
from tasks.reading.records import LONGEST_ID
from tasks.reading.repeated import RecordGroup, Span, is_reply, record_groups, width
from tasks.reading.roles import roles

_LEAST_EVIDENCE, _LEAST_PORTRAYED, _LEAST_UNHINTED = 0.9, 1.4, 1.5
_LINK_CHARS = 12
_SIGNED, _SURE, _HELD = 0.9, 0.6, 1.5
_MOST_GROUPS = 20
_BEGINNING = 60
_NEAR, _CLOSE = 25, 5
_FIRST_LINE, _AROUND, _ABOVE = 3, 3, 8
_TITLE_TEXTS, _FIRST_ELEMENTS = 4, 40
_NEXT = re.compile(r"(?:下一?[页頁]|后一?页|next(?: page)?)?\s*[›»>→]*", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_PAGE_OF_PATH = re.compile(r"/page[-/]?\d+/?$", re.IGNORECASE)
_PAGE_PARAMETER = re.compile(
    r"(?:page|p|pn|pg|start|offset|pageno|pagenum|page_?index|cur_?page)", re.IGNORECASE
)
_NUMBERED_ID = re.compile(r"\d{3}")


@dataclass(frozen=True, slots=True)
class Opening:
    """A text that opens a page of many voices, with its author and day if the page has them."""

    text: str
    author: str
    date_text: str


@dataclass(frozen=True, slots=True)
class Thread:
    """The records of a page and their places.

    Attributes:
        records: in the order of the page.
        before: text of the page in front of the first record.
        page: the outline they were read from.
        spans: the elements they are made of, in the order of the page.
        keys: for each record the id of its element if it has a number, else empty.
    """

    records: tuple[Record, ...]
    before: str
    page: Outline
    spans: tuple[Span, ...]
    keys: tuple[str, ...]

    def heading_end(self, title: str) -> int:
        """Return the number of the text behind a title in front of the first record; -1 if the title is not there."""
        page = self.page
        end = page.first_text[self.records[0].element]
        return max(
            (
                page.last_text[element]
                for element in range(self.records[0].element)
                if page.first_text[element] < page.last_text[element] <= end
                and page.last_text[element] - page.first_text[element] <= _TITLE_TEXTS
                and abs(page.chars(element) - len(title)) <= _TITLE_TEXTS
                and " ".join(page.text_of(element).split()) == title
            ),
            default=-1,
        )

    def is_notice(self, body: str) -> bool:
        """Return True if a text in front of the records is a notice of the site, by the name of its element."""
        page = self.page
        at = place_of(page, page.first_text[self.records[0].element], body)
        around = page.above(page.texts[at].owner if at is not None else 0)
        return any("notice" in roles(*page.names[element]) for element in islice(around, _AROUND))

    def articles(self, title: str) -> bool:
        """Return True if the records are articles, each with a heading of its own, and the page is about the first.

        Pages that load the next article below the one that was asked for hold both.

        Args:
            title: of the page.
        """
        page = self.page
        headings: list[str] = []
        for start, end in self.spans:
            first = range(start, min(end, start + _FIRST_ELEMENTS))
            heading = next((one for one in first if page.tags[one] == "h1"), None)
            if heading is None:
                return False
            headings.append(page.text_of(heading))
        return len(set(headings)) == len(headings) > 1 and headings[0] == title

    @property
    def text(self) -> str:
        """Return the texts of the records, quotes included."""
        return "\n".join(f"{record.text}\n{record.quotes}" for record in self.records)


def read_thread(page: Outline, now: datetime) -> Thread | None:
    """Return the records of a page, in linear time; None if it has none.

    Args:
        now: aware; what relative dates count from.
    """
    groups = record_groups(page)
    groups = [one for one in groups if one.evidence >= _least(one)]
    if not groups:
        return None
    best = groups[0]
    nested = (one for one in groups[1:_MOST_GROUPS] if len(one.members) > 1 and _are_nested(page, best, one))
    chosen = [best, *islice(nested, 1)]
    records = [
        record
        for group in chosen
        for record in read_records(
            page,
            group.members,
            (one for other in chosen if other is not group for one, _ in other.members),
            now,
        )
    ]
    records.sort(key=lambda record: record.element)
    records = list({(one.author, one.date_text, one.text): one for one in reversed(records)}.values())[::-1]
    dated = sum(one.date is not None for one in records)
    if 2 * dated > len(records):  # a short one without a day is a link to the others
        records = [one for one in records if one.date is not None or width(one.text) > _LINK_CHARS]
    records = [one for one in records if not _links_here(page, one.element)]
    if not records:
        return None
    first = page.first_text[records[0].element]
    return Thread(
        tuple(records),
        page.join_texts(page.texts[:first]),
        page,
        tuple(sorted({span for group in chosen for span in group.members})),
        tuple(key_of(page.nodes[record.element]) for record in records),
    )


def _links_here(page: Outline, element: int) -> bool:
    """Return True if another site sent a record, when it linked to the page."""
    return "link back" in roles(*page.names[element], *page.names[max(0, page.parents[element])])


def _least(group: RecordGroup) -> float:
    """Return the evidence that a group needs, by its name and its portraits."""
    if group.hinted:
        return _LEAST_EVIDENCE
    return _LEAST_PORTRAYED if group.portrayed else _LEAST_UNHINTED


def _are_nested(page: Outline, group: RecordGroup, other: RecordGroup) -> bool:
    """Return True if two groups are posts and the comments under them: members of one stand in some of the other.

    A member that stands in every post, and holds its only day, is a part of it and no comment.
    """
    small, large = sorted((group, other), key=lambda one: one.members[0][1] - one.members[0][0])
    if not (is_reply(small.name) or _among_replies(page, small, large)) or len(small.members) == len(
        large.members
    ):
        return False
    if other.signed < _SIGNED or other.evidence < _SURE * len(other.members):
        return False
    if not large.hinted and min(small.signed, large.signed) < _SIGNED:
        return False
    if not set(small.members).isdisjoint(large.members) or _unlike(page, small):
        return False
    days = {post: _count_dates(page, post) for post in large.members}  # those of the post itself
    holds: Counter[Span] = Counter()
    around: list[Span] = []
    posts = set(large.members)
    for span in sorted((*small.members, *large.members), key=lambda one: (one[0], -one[1])):
        while around and around[-1][1] <= span[0]:
            around.pop()
        if around:
            days[around[-1]] -= _count_dates(page, span)
            holds[around[-1]] += span not in posts
        elif span not in posts:
            return False
        if span in posts:
            around.append(span)
    if not large.hinted:
        return min(days.values()) > 0
    held = [days[post] > 0 for post in large.members if holds[post]]
    return holds.total() >= _HELD * len(held) or sum(held) >= len(held) / 2


def _among_replies(page: Outline, small: RecordGroup, large: RecordGroup) -> bool:
    """Return True if the first of a group stands in an element called replies or comments, inside a post."""
    posts = {start for start, _ in large.members}
    around = islice(page.above(page.parents[small.members[0][0]]), _AROUND)
    inside = takewhile(lambda element: element not in posts, around)
    return any("reply" in roles(*page.names[element]) for element in inside)


def _unlike(page: Outline, group: RecordGroup) -> bool:
    """Return True if each member has other names: parts of something (its head, its text), and no comments."""
    names = [name for start, _ in group.members for name in set(page.names[start])]
    return len(names) >= len(group.members) and len(set(names)) == len(names)


def _count_dates(page: Outline, span: Span) -> int:
    first, last = page.text_range(*span)
    return page.dates_before[last] - page.dates_before[first]


def key_of(node: LexborNode) -> str:
    """Return the id of a record's element if it has a number, else an empty text."""
    attributes = node.attributes
    for name in ("id", "data-id", "data-cid", "data-pid", "data-post-id", "data-comment-id"):
        value = (attributes.get(name) or "").strip()
        if _NUMBERED_ID.search(value) and len(value) <= LONGEST_ID:
            return value
    return ""


def next_part(links: Iterable[tuple[str, str]], document: Links) -> str:
    """Return the link to a thread's next page; empty if there is none in this thread.

    A next part has the address of the page but for its numbers, unlike another thread or article.

    Args:
        links: `href` and text of the page's links, in their order.
        document: how they are read.
    """
    for href, text in links:
        if len(href) < LONGEST_KEPT_VALUE and _NEXT.fullmatch(text or "-"):
            following = document.next_address(href)
            if following and _shape(following) == _shape(document.url):
                return following
    return ""


def links_of(page: Outline) -> Iterator[tuple[str, str]]:
    """Yield address and text of each link that holds few texts."""
    for element, tag in enumerate(page.tags):
        if tag == "a" and page.last_text[element] - page.first_text[element] <= _NEAR:
            yield page.attributes[element].get("href", ""), page.text_of(element)


def _shape(url: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return an address without the numbers of its part: digits and page numbers of the path, page parameters."""
    parts = urlsplit(url)
    path = _DIGITS.sub("0", _PAGE_OF_PATH.sub("", parts.path)).rstrip("/")
    return path, frozenset(pair for pair in parse_qsl(parts.query) if not _PAGE_PARAMETER.fullmatch(pair[0]))
