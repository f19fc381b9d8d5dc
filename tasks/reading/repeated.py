"""The records of a page without rules: which elements repeat, each with a person, a day and a text of its own.

A page has several posts, comments, answers or reviews that are called alike (tag and class, or tag and parent), each
with a date, a name and a text. Repetition is the idea of MDR (Liu, Grossman and Zhai, KDD 2003), and dates as the mark
of a post the one of MiBAT (Song et al., CIKM 2010). Here elements are grouped by their names, and running sums judge
every group in linear time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, compress
from operator import sub

from tasks.reading.days import is_in_sentence
from tasks.reading.element_kinds import is_content
from tasks.reading.outline import Outline
from tasks.reading.people import SURELY, is_person
from tasks.reading.records import MOST_RECORDS
from tasks.reading.roles import is_called, roles

_MOST_ASIDE = 0.8
_ADDRESS = re.compile(r"\s*(?:https?://|www\.)")
HEADLINE_CHARS = 8
"""Width of the shortest text with a meaning, in Chinese characters."""
_LEAST_CHARS = 2
# Of two groups the one with more text is the better, but a long article does not outweigh the comments under it.
_TEXT_POWER = 0.25
# Dates in a record on the average: one that has more is no record, but holds some.
_MOST_DATES, _HOLDER_WORTH, _UNHINTED_WORTH = 4, 0.5, 0.7
_ASIDE_WORTH, _UNSIGNED_WORTH = 0.2, 0.25
_LOOKED_AT, _DIFFERENT = 10, 0.7
_LATIN = 0.35
_MOST_BESIDE = 4
_FIRST_TEXTS = 40
_SEVERAL = 3
_SAID_CHARS = 12
# Records without a person, in elements not called after posts: the parts that they share, and their text as a share of
# the page's.
_LEAST_PARTS, _SHARED_PARTS, _LEAST_SHARE = 2, 3, 0.4
# A score that no single record has, and that only groups of several records have that are enough by themselves.
_MORE_THAN_ONE = 1.5


Span = tuple[int, int]
"""A record's place in the outline: its first element, and the number behind its last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGroup:
    """Records called alike.

    Attributes:
        members: in the order of the page; one may be in another. A member is one element or a few adjacent ones.
        name: what they are called, for people.
        evidence: how many of them are records, fractions for those that lack a day or a person.
        score: evidence, weighed by the text they hold.
        hinted: its name is the one of a post (comment, reply).
        signed: share of the members that name a person, 0 to 1.
        portrayed: each member shows the portrait of a person whom it names.
    """

    members: tuple[Span, ...]
    name: str
    evidence: float
    score: float
    hinted: bool
    signed: float
    portrayed: bool


def record_groups(page: Outline) -> list[RecordGroup]:
    """Return the groups that could be a page's records, the best first, single records only if no group has several."""
    if not any(page.dates):
        return []
    sums = _RunningSums(page)
    found: dict[tuple[Span, ...], RecordGroup] = {}
    several = False
    for name, members in _alike(page):
        if several and len(members) == 1:
            break
        group = sums.judge(name, members)
        if group is not None and (group.members not in found or found[group.members].score < group.score):
            found[group.members] = group
            several = several or group.score >= _MORE_THAN_ONE
    return sorted(found.values(), key=lambda group: -group.score)


def _alike(page: Outline) -> Iterator[tuple[str, list[Span]]]:
    """Yield the elements of each name, and the siblings of each tag, that have a date, and what they are called.

    Groups of one, which are called replies, come last.
    """
    dated = [page.count_dates(element) > 0 for element in range(len(page.nodes))]
    holders = zip(compress(page.tags, dated), compress(page.names, dated), strict=True)
    kinds = {(tag, name) for tag, names in holders for name in names if "look" not in roles(name)}
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for element, (tag, names, parent) in enumerate(zip(page.tags, page.names, page.parents, strict=True)):
        for name in dict.fromkeys(names):
            if (tag, name) in kinds:
                groups[tag, name].append(element)
        if parent >= 0 and dated[parent]:
            groups[tag, parent, names[:1]].append(element)
            groups[tag, parent].append(element)
        if "-" in tag:
            groups[tag, ""].append(element)
    several = [one for one in groups.items() if 1 < len(one[1]) <= MOST_RECORDS]
    single = (one for one in groups.items() if len(one[1]) == 1 and dated[one[1][0]])
    for (kind, within, *first), members in chain(several, single):
        siblings = isinstance(within, int)
        called = f"{kind}.{' '.join(page.names[within]) if isinstance(within, int) else within}"
        if len(members) == 1 and not is_reply(called):
            continue
        if any(dated[member] for member in members[:_LOOKED_AT]) and (
            siblings or not _parts_of_one(page, members)
        ):
            yield called, [(member, page.ends[member]) for member in members]
        if first and len(members) > 1 and (spans := _adjacent(page, members)):
            yield called, spans


def _parts_of_one(page: Outline, members: list[int]) -> bool:
    """Return True if elements are the adjacent parts of records (author, text), equal in number and names."""
    of_parent: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for member in members:
        of_parent[page.parents[member]].append(page.names[member])
    patterns = {tuple(names) for names in of_parent.values()}
    if len(of_parent) < 2 or len(patterns) > 1:
        return False
    pattern = patterns.pop()
    return 1 < len(pattern) <= _MOST_BESIDE and len(set(pattern)) == len(pattern)


def _adjacent(page: Outline, heads: list[int]) -> list[Span]:
    """Return records of several adjacent elements (dt and dd, head and body), each from one head to the next.

    Empty if the distances between the heads differ.
    """
    gaps: Counter[int] = Counter()
    spans = []
    most = 0
    for head, following in zip(heads, [*heads[1:], page.ends[page.parents[heads[0]]]], strict=True):
        element, count = page.ends[head], 1
        while element < following and (not most or count < most):
            element, count = page.ends[element], count + 1
            if count > _MOST_BESIDE:
                break
        gaps[count] += 1
        most = most or count
        spans.append((head, element))
    usual, times = gaps.most_common(1)[0]
    return spans if 1 < usual <= _MOST_BESIDE and times >= _DIFFERENT * len(heads) else []


def _one_target(page: Outline) -> set[int]:
    """Return long texts in links to one page: posts of several people, and no headlines of other pages."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(page.texts):
        if text.linked and width(text.text.strip()) >= HEADLINE_CHARS:
            element = text.owner
            while page.tags[element] != "a" and page.parents[element] >= 0:
                element = page.parents[element]
            target = page.attributes[element].get("href", "")
            if target and not target.startswith(("#", "javascript:")):
                found[target].append(number)
    several = (
        numbers
        for numbers in found.values()
        if len({page.texts[n].text.strip() for n in numbers}) >= _SEVERAL
    )
    return {number for numbers in several for number in numbers}


class _RunningSums:
    """Running sums over a page's elements and texts, and what groups are worth by them."""

    def __init__(self, page: Outline) -> None:
        self._page = page
        persons = [is_person(page, element) for element in range(len(page.nodes))]
        self._persons = [0, *accumulate(persons)]
        self._pictured = [0, *accumulate(element in page.pictured for element in range(len(page.nodes)))]
        content = []
        headline = []
        onward = _one_target(page)
        for number, (text, dated, length) in enumerate(
            zip(page.texts, page.dates, page.lengths, strict=True)
        ):
            said = leads_on = False
            if persons[text.owner]:
                pass
            elif text.linked and number not in onward and not _ADDRESS.match(text.text):
                leads_on = not dated and width(text.text.strip()) >= HEADLINE_CHARS
            else:
                said = not dated or is_in_sentence(text.text) or self._is_in_content(text.owner, length)
            content.append(length if said else 0)
            headline.append(length if leads_on else 0)
        self._content = [0, *accumulate(content)]
        self._headlines = [0, *accumulate(headline)]
        self._all = max(1, self._content[-1])

    def _is_in_content(self, element: int, length: int) -> bool:
        """Return True if a text with a date is more than the date, and part of a post's text."""
        return length > _SAID_CHARS and is_content(self._page, element)

    def _is_aside(self, element: int) -> bool:
        """Return True if an element is in an aside; what holds most of the page's text is none.

        The foot of a comment is not the page's: it holds the replies.
        """
        page, reply = self._page, False
        for one in reversed([*page.above(element), 0]):
            tag, found = page.tags[one], page.roles[one]
            reply = reply or "reply" in found
            foot = not reply and ("foot" in found or tag == "footer")
            if foot or "aside" in found or tag in ("aside", "nav"):
                chars = self._content[page.last_text[one]] - self._content[page.first_text[one]]
                if chars < _MOST_ASIDE * self._all:
                    return True
        return False

    def judge(self, name: str, members: list[Span]) -> RecordGroup | None:
        """Return a group with its evidence; None if its members are no records."""
        whole = [self._count(span) for span in members]
        own = list(whole)
        around: list[int] = []  # places of the members around this one
        for place, (start, _) in enumerate(members):
            while around and members[around[-1]][1] <= start:
                around.pop()
            if around:
                own[around[-1]] = tuple(map(sub, own[around[-1]], whole[place]))
            around.append(place)
        hinted = is_called("post", name)
        evidence = 0.0
        persons = headed = text = 0
        kept = []
        for span, (chars, dates, people, headlines) in zip(members, own, strict=True):
            if chars < max(_LEAST_CHARS, headlines) or not dates:
                evidence -= 0.3
                continue
            kept.append(span)
            people = people >= (1 if hinted else SURELY)
            persons += people
            headed += headlines > 0
            evidence += 1.0 if people else _UNSIGNED_WORTH
            text += chars
        records = len(kept)
        if not records or (len(members) == 1 and (headed or not persons)):
            return None
        if persons:
            evidence *= max(0.0, evidence / records)
        elif hinted and headed < 0.3 * records:
            evidence = 0.5 * records - 0.3 * (len(members) - records)
        evidence = max(evidence, 0 if hinted or headed else self._evidence_of_form(name, kept, text))
        if evidence <= 0.5 or (
            headed >= 0.7 * records and not is_reply(name) and self._headlines_differ(kept)
        ):
            return None
        if sum(one[1] for one in own) > _MOST_DATES * len(own):
            evidence *= _HOLDER_WORTH
        if is_called("list", name) or self._is_aside(kept[0][0]):
            evidence *= _ASIDE_WORTH
        score = evidence * (text / self._all) ** _TEXT_POWER * (1.0 if hinted else _UNHINTED_WORTH)
        portrayed = all(self._pictured[end] > self._pictured[start] for start, end in kept)
        return RecordGroup(
            members=tuple(kept),
            name=name,
            evidence=evidence,
            score=score,
            hinted=hinted,
            signed=persons / records,
            portrayed=portrayed,
        )

    def _evidence_of_form(self, name: str, members: list[Span], chars: int) -> float:
        """Return the evidence of records that begin with the same parts, and hold much of the page's text, or 0.

        Args:
            chars: characters of content in all of them.
        """
        least = max(len(members) * 2 * HEADLINE_CHARS, _LEAST_SHARE * self._all)
        if len(members) < 2 or chars < least or is_called("list", name):
            return 0.0
        shapes = {self._shape(span) for span in members[:_LOOKED_AT]}
        alike = len(shapes) == 1 and len(shapes.pop()) >= _LEAST_PARTS
        return float(len(members)) if alike else 0.0

    def _shape(self, span: Span) -> tuple[tuple[str, ...], ...]:
        """Return tag and first name of the first parts of a record; paragraphs behind another are not listed again."""
        page = self._page
        element, end = span
        while page.ends[element] == end and page.ends[element + 1 : element + 2] == [end]:
            element += 1  # it holds only one element
        part = element + 1 if page.ends[element] == end else element
        shape: list[tuple[str, ...]] = []
        while part < end and len(shape) < _SHARED_PARTS:
            key = (page.tags[part], *page.names[part][:1])
            if len(shape) < _LEAST_PARTS or key != ("p",) or shape[-1] != key:
                shape.append(key)
            part = page.ends[part]
        return tuple(shape)

    def _count(self, span: Span) -> tuple[int, ...]:
        """Count characters of content, dates, persons and characters of headlines in a record."""
        page = self._page
        start, end = span
        first, last = page.text_range(start, end)
        return (
            self._content[last] - self._content[first],
            page.dates_before[last] - page.dates_before[first],
            self._persons[end] - self._persons[start],
            self._headlines[last] - self._headlines[first],
        )

    def _headlines_differ(self, members: list[Span]) -> bool:
        """Return True if the first headlines of the records are those of other pages, not all the topic's."""
        first = (self._first_headline(span) for span in members[:_LOOKED_AT])
        texts = [text for text in first if text]
        return len(set(texts)) >= max(2, _DIFFERENT * len(texts))

    def _first_headline(self, span: Span) -> str:
        page = self._page
        first, last = page.text_range(*span)
        for number in range(first, min(last, first + _FIRST_TEXTS)):
            if self._headlines[number + 1] > self._headlines[number]:
                return page.texts[number].text.strip().removeprefix("Re: ")
        return ""


def is_reply(name: str) -> bool:
    """Return True if elements are called comments, replies, answers or reviews."""
    return is_called("reply", name)


def width(text: str) -> float:
    """Return the width of a text in Chinese characters: a word of another script counts as a few."""
    return len(text) - (1 - _LATIN) * len(text.encode("ascii", "ignore"))
