"""Author, day and text of each record of a group: their places are learned from all records at once.

Records are made from one template. So what a text is shows in all that stand at the same place in their records (the
alignment of DEPTA, Zhai and Liu, WWW 2005, by place instead of tree matching): dates at a place of dates, persons at a
place of persons, and the text at the place with most of the words. A text that many records share is the template's.
Quotes and signatures are set apart.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, pairwise

from tasks.reading.dates import read_date
from tasks.reading.days import LONGEST_BYLINE, NOT_ITS_DAY, date_of, is_in_sentence
from tasks.reading.element_kinds import Quotes, is_content, kind_of
from tasks.reading.names import LONGEST_NAME, bare_name, has_label, is_role, may_be_name, person
from tasks.reading.outline import Outline
from tasks.reading.people import name_of, person_strength
from tasks.reading.repeated import Span
from tasks.reading.roles import roles
from tasks.reading.site_text import is_site_text, strip_controls
from tasks.reading.stars import LONGEST, Shown, shown_rating, sure_ratings

_WORDY = re.compile(r"\w", re.UNICODE)
_BY = re.compile(r"\bby:?\s+\S|\S\s*发表于", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![A-Za-z_])\d+")
_LEAST_DATE_WORTH = 0.3
_SAME_SHARE, _SAME_CHARS = 0.5, 60
_HOLDS = 0.75
_LINKED_WORTH = 0.3
_ONCE, _PART = 1.3, 0.15
# A role, or what is the same in all records, is seldom a name.
_ROLE_WORTH, _FEW = 0.2, 3
# Names stand at several places of a record (a link, or a style in it): few records at one place say little less.
_SPREAD, _TOLD_WORTH, _SAME_STRENGTH = 0.7, 5.0, 0.3
_TOLD = ("data-author", "data-username")
_OF_OTHERS = frozenset(("quote", "signature"))
_COLON = re.compile(r"^(?:：\s*|:\s+)")  # between a name and a text in one line
_CLOCK = re.compile(r"\d:\d\d")
# The day of a change stands for the day of a text that shows no other.
_CHANGED = re.compile(r"(?:编辑|編輯|修改|更新)[于於]|\b(?:edited|updated)\b", re.IGNORECASE)
_HEADINGS = frozenset(("h2", "h3", "h4", "h5", "h6"))
_HEADED, _DIFFERENT, _RATED = 0.7, 0.5, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The text of one person, with its marks.

    Attributes:
        element: its number in the page's outline.
        author, date_text: empty if the record has none.
        date: aware; None if it can't be read.
        text: without quotes and the author's signature.
        quotes: the texts of others in it, or empty.
        signature: the author's, under the text, or empty.
        title: the record's own heading, or empty.
        rating: in stars of five; None if it shows none.
        rated: number of the element that shows the rating; -1 if none does.
    """

    element: int
    author: str
    date_text: str
    date: datetime | None
    text: str
    quotes: str
    signature: str
    title: str
    rating: float | None
    rated: int


def read_records(page: Outline, members: Sequence[Span], apart: Iterable[int], now: datetime) -> list[Record]:
    """Return the records of a group with their fields, without those that have no text.

    Args:
        members: numbers of the records' elements, in the order of the page.
        apart: elements whose texts belong to no record of the group (records of another).
        now: aware; what relative dates count from.
    """
    return _Group(page, members, apart, now).records()


def tidy(text: str) -> str:
    """Return a record's text without buttons at its ends; empty if only its site put it there."""
    text = _COLON.sub("", strip_controls(text))
    return text if text.strip() and not is_site_text(text) else ""


def states_change(text: str) -> bool:
    """Return True if a short text states when something was changed last."""
    return len(text.strip()) <= LONGEST_BYLINE and _CHANGED.search(text) is not None


class _Group:
    def __init__(self, page: Outline, members: Sequence[Span], apart: Iterable[int], now: datetime) -> None:
        self._page = page
        self._members = members
        self._now = now
        self._place: dict[int, int] = {}  # element -> number of its place in the record
        self._record: dict[int, int] = {}  # element -> its record
        self._kind: dict[int, str] = {}  # element -> kind, see `kind_of`
        self._above: list[int] = [-1]
        self._element_at: list[int] = [members[0][0]]  # an example of each place
        self._numbers: dict[tuple[int, str, str], int] = {}
        quotes = Quotes(page)
        self._records_at: dict[int, set[int]] = defaultdict(set)
        # record -> its author by an attribute of an element
        self._told: dict[int, str] = defaultdict(str)
        self._walk(set(apart), quotes)
        self._texts: dict[int, list[int]] = defaultdict(list)
        for number, text in enumerate(page.texts):
            if text.owner in self._record:
                self._texts[self._record[text.owner]].append(number)
        self._template = self._same_everywhere()

    def _walk(self, apart: set[int], quotes: Quotes) -> None:
        page = self._page
        starts = dict(self._members)
        skip = 0
        for start, end in self._members:
            if start in self._record:
                continue  # it is in another, and was read with it
            for element in range(start, end):
                if element < skip:
                    continue
                if element in starts:
                    self._enter(element, element, quotes, alone=page.ends[element] == starts[element])
                elif element in apart:
                    skip = page.ends[element]
                else:
                    above = page.parents[element]
                    inside = self._record.get(above, start)
                    self._enter(
                        element, start if page.ends[inside] <= element else inside, quotes, alone=False
                    )

    def _enter(self, element: int, record: int, quotes: Quotes, *, alone: bool) -> None:
        """Note an element's record, place and kind; one that is a record alone has the place 0."""
        page = self._page
        place, kind = 0, ""
        if not alone:
            above = page.parents[element]
            inner = self._record.get(above) == record
            names = page.names[element]
            key = self._place[above] if inner else 0, page.tags[element], names[0] if names else ""
            place = self._numbers.get(key, len(self._above))
            if place == len(self._above):
                self._numbers[key] = place
                self._above.append(key[0])
                self._element_at.append(element)
            kind = (self._kind[above] if inner else "") or kind_of(page, element, quotes)
        self._place[element], self._record[element], self._kind[element] = place, record, kind
        self._records_at[place].add(record)
        if not self._told[record]:
            self._told[record] = next(filter(None, map(page.attributes[element].get, _TOLD)), "")

    def _same_everywhere(self) -> set[int]:
        """Return the texts of the template: equal but for numbers, at one place in many records."""
        page = self._page
        seen: dict[tuple[int, str], set[int]] = defaultdict(set)
        said: dict[int, tuple[int, str]] = {}
        for record, texts in self._texts.items():
            for number in texts:
                text = page.texts[number].text.strip()
                if len(text) <= _SAME_CHARS:
                    said[number] = self._place[page.texts[number].owner], _NUMBER.sub("0", text)
                    seen[said[number]].add(record)
        least = max(2, _SAME_SHARE * len(self._members))
        return {number for number, key in said.items() if len(seen[key]) >= least}

    def records(self) -> list[Record]:
        """Return each record with its fields."""
        page = self._page
        dates = self._dates()
        titles = self._titles()
        rated = self._rated()
        ratings = dict(zip(rated, sure_ratings([*map(self._shown_rating, rated.values())]), strict=True))
        stated = (range(page.first_text[one], page.last_text[one]) for one in rated.values())
        used = {*dates.values(), *chain.from_iterable((*titles.values(), *stated))}
        authors = self._authors(used) or self._names_near_dates(dates, used)
        used |= set(authors.values())
        body = self._body(used)
        found = []
        for record, _ in self._members:
            texts = self._texts.get(record, [])
            inside = body
            while not (own := [number for number in texts if self._is_body(number, inside, used)]) and inside:
                inside = self._above[inside]  # this one has its text elsewhere
            text = tidy(self._join(own))
            if not text:
                continue
            date_text = date_of(page, dates[record], self._now) if record in dates else ""
            found.append(
                Record(
                    element=record,
                    author=name_of(page, authors[record])
                    if record in authors
                    else self._name_in_date(record, dates),
                    date_text=date_text,
                    date=read_date(date_text, self._now),
                    text=text,
                    quotes=self._text_of_kind(texts, "quote"),
                    signature=self._text_of_kind(texts, "signature"),
                    title=page.join_texts(page.texts[number] for number in titles.get(record, ())),
                    rating=ratings.get(record),
                    rated=rated.get(record, -1),
                )
            )
        return found

    def _join(self, numbers: list[int]) -> str:
        """Return texts as they read; a line that ends before a text left out ends before the next one."""
        texts = self._page.texts
        apart = (
            any(texts[between].apart for between in range(before + 1, number + 1))
            for before, number in pairwise([*numbers[:1], *numbers])
        )
        return self._page.join_texts(
            texts[number]._replace(apart=ends) for number, ends in zip(numbers, apart, strict=True)
        )

    def _text_of_kind(self, texts: list[int], kind: str) -> str:
        page = self._page
        return page.join_texts(page.texts[one] for one in texts if self._kind[page.texts[one].owner] == kind)

    def _dates(self) -> dict[int, int]:
        """Return the text with the day of each record."""
        page = self._page
        worth: dict[int, float] = defaultdict(float)
        first: dict[tuple[int, int], int] = {}
        for record, texts in self._texts.items():
            label = ""
            for number in texts:
                text = page.texts[number]
                if page.dates[number] and self._kind[text.owner] not in _OF_OTHERS:
                    place = self._place[text.owner]
                    if (place, record) not in first:
                        first[place, record] = number
                        worth[place] += self._date_worth(number, label)
                if text.text.strip():
                    label = "" if page.dates[number] else text.text
        best, *others = sorted(worth, key=lambda place: -worth[place]) or [0]
        enough = (one for one in others if worth[one] >= _LEAST_DATE_WORTH * len(self._records_at[one]))
        changed = {
            record: number for (_, record), number in first.items() if states_change(page.texts[number].text)
        }
        return changed | self._first_of_each([best, *enough], first)

    def _first_of_each(self, places: Iterable[int], texts: Mapping[tuple[int, int], int]) -> dict[int, int]:
        """Return for each record the text at the first of some places that has one, by place and record."""
        found: dict[int, int] = {}
        for place in places:
            for record in self._records_at[place]:
                if (place, record) in texts:
                    found.setdefault(record, texts[place, record])
        return found

    def _date_worth(self, number: int, label: str) -> float:
        page = self._page
        text = page.texts[number]
        around = label[-20:] + " " + text.text[:30] + " " + " ".join(page.names[text.owner])
        if NOT_ITS_DAY.search(around) or len(text.text.strip()) > LONGEST_BYLINE or is_in_sentence(text.text):
            return 0.05
        above = page.names[max(0, page.parents[text.owner])]
        named = "day" in roles(page.tags[text.owner], *page.names[text.owner], *above)
        clock = _CLOCK.search(date_of(page, number, self._now)) is not None
        return 1.0 + 0.5 * named + 0.5 * clock

    def _authors(self, used: set[int]) -> dict[int, int]:
        """Return the text with the author of each record; `used` are those of its day, title and rating."""
        page = self._page
        worth: dict[int, float] = defaultdict(float)
        named: dict[tuple[int, int], tuple[float, int]] = {}  # place, record -> its surest text
        names: dict[int, set[str]] = defaultdict(set)
        for record, texts in self._texts.items():
            told = self._told[record]
            for number in texts:
                text = page.texts[number]
                if number in used or self._kind[text.owner] in _OF_OTHERS:
                    continue
                name = bare_name(text.text)
                if not may_be_name(name) or (page.dates[number] and name != told):
                    continue
                strength = person_strength(page, text.owner, record) + has_label(text.text)
                strength += _TOLD_WORTH * (name == told) if strength or name == told else 0.0
                key = self._place[text.owner], record
                if strength > named.get(key, (0.0, 0))[0] + _SAME_STRENGTH:
                    named[key] = strength, number
                    names[key[0]].add(name)
                    unlike = is_role(name) or len(name) == 1  # a letter stands for a portrait
                    worth[key[0]] += strength * (_ROLE_WORTH if unlike else 1.0)
        times = Counter(place for place, _ in named)
        for place in worth:
            if times[place] > _FEW and len(names[place]) == 1:
                worth[place] *= _ROLE_WORTH
        best = sorted(worth, key=lambda place: -worth[place] / times[place] ** _SPREAD)
        return self._first_of_each(best, {key: number for key, (_, number) in named.items()})

    def _titles(self) -> dict[int, list[int]]:
        """Return the texts of each record's only heading, at one place and mostly different."""
        page = self._page
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for element, place in self._place.items():
            if page.tags[element] in _HEADINGS and not self._kind[element]:
                record = self._record[element]
                found[place][record] = -1 if record in found[place] else element
        for elements in found.values():
            own = {
                record: element
                for record, element in elements.items()
                if element >= 0 and not self._names_person(element, record)
            }
            texts = {page.text_of(element).removeprefix("Re: ") for element in own.values()}
            if len(own) >= _HEADED * len(self._members) and len(texts) >= max(2, _DIFFERENT * len(own)):
                return {
                    record: list(range(page.first_text[element], page.last_text[element]))
                    for record, element in own.items()
                }
        return {}

    def _names_person(self, element: int, record: int) -> bool:
        page = self._page
        texts = page.texts[page.first_text[element] : page.last_text[element]]
        return any(person_strength(page, text.owner, record) > 0 for text in texts)

    def _rated(self) -> dict[int, int]:
        """Return the element of each record, at one place, that shows its rating."""
        first = {record for record, _ in self._members[:_RATED]}
        tried = [one for one, record in self._record.items() if record in first]
        found = {one: self._shown_rating(one) for one in tried if self._kind[one] not in _OF_OTHERS}
        places = Counter(self._place[one] for one, (_, sure) in found.items() if sure)
        if not places:
            return {}
        best = max(places, key=lambda place: (len(self._records_at[place]), -place))
        rated: dict[int, int] = {}
        for element, place in self._place.items():
            if place == best:
                rated.setdefault(self._record[element], element)
        return rated

    def _shown_rating(self, element: int) -> Shown:
        page = self._page
        text = page.text_of(element) if 0 < page.chars(element) <= LONGEST else ""
        return shown_rating(page.nodes[element], text)

    def _names_near_dates(self, dates: dict[int, int], used: set[int]) -> dict[int, int]:
        """Return for each record a short text next to its day, at one place and mostly different: a name."""
        page = self._page
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for record, number in dates.items():
            texts = self._texts[record]
            at = texts.index(number)
            for beside in texts[max(0, at - 3) : at + 3]:
                text = page.texts[beside]
                name = text.text.strip()
                if (
                    beside in used
                    or page.dates[beside]
                    or not 1 < len(name) <= LONGEST_NAME // 2
                    or not may_be_name(name)
                ):
                    continue
                found[self._place[text.owner]].setdefault(record, beside)
        for numbers in sorted(found.values(), key=len, reverse=True):
            names = {page.texts[number].text.strip() for number in numbers.values()}
            if 2 * len(names) >= len(numbers) >= 0.8 * len(dates) and len(names) > 1:
                return numbers
        return {}

    def _name_in_date(self, record: int, dates: dict[int, int]) -> str:
        """Return the name in the text with a record's day, if a word or its element says that it holds one."""
        if record not in dates:
            return ""
        text = self._page.texts[dates[record]]
        if not _BY.search(text.text) and not person_strength(self._page, text.owner, record):
            return ""
        return person(text.text)

    def _body(self, used: set[int]) -> int:
        """Return the place with most of the words."""
        page = self._page
        weight: dict[int, float] = defaultdict(float)
        holding: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for record, texts in self._texts.items():
            for number in texts:
                if (worth := self._content_worth(number, used)) > 0:
                    element = page.texts[number].owner
                    place = self._place[element]
                    while place >= 0:
                        weight[place] += worth
                        holding[place][element] += worth
                        place = self._above[place]
                        element = max(record, page.parents[element])
        below: dict[int, list[int]] = defaultdict(list)
        for place, above in enumerate(self._above):
            below[above].append(place)
        here = 0
        while inner := [place for place in below[here] if place != here]:
            best = max(inner, key=lambda place: weight[place])
            outer, narrower = (is_content(page, self._element_at[one]) for one in (here, best))
            enough = _HOLDS * (0.5 if narrower and not outer else 1.0)
            least = _PART * weight[best] / len(self._records_at[best])
            parts = sum(worth >= least for worth in holding[best].values())
            if weight[best] < enough * weight[here] or parts > _ONCE * len(self._records_at[best]):
                break
            here = best
        return here

    def _content_worth(self, number: int, used: set[int]) -> float:
        text = self._page.texts[number]
        if self._is_apart(number, used) or not _WORDY.search(text.text):
            return 0.0
        return len(text.text.strip()) * (_LINKED_WORTH if text.linked else 1.0)

    def _is_apart(self, number: int, used: set[int]) -> bool:
        """Return True for a text of the template, a quote, a signature, or one already used."""
        kind = self._kind[self._page.texts[number].owner]
        return number in used or number in self._template or kind in _OF_OTHERS

    def _is_body(self, number: int, body: int, used: set[int]) -> bool:
        page = self._page
        text = page.texts[number]
        if self._is_apart(number, used):
            return False
        place = self._place[text.owner]
        if self._kind[text.owner] == "beside" != self._kind[self._element_at[body]]:
            return False
        if body == 0 and page.dates[number] and len(text.text.strip()) < LONGEST_BYLINE:
            return False
        while place > 0 and place != body:
            place = self._above[place]
        return place == body
