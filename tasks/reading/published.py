"""The day on which the text of a page was published.

It is looked for in this order, and the first that can be read is taken:

1. JSON-LD: `datePublished`, then `dateCreated` and `uploadDate`, of the first thing of a text's type;
2. meta elements: those named like `article:published_time`, then those named like `date` and `created`;
3. elements marked as a day: `itemprop="datePublished"`, those labelled as published, then any other `time`;
4. lines around the text: a labelled day (Published, 发布于), then one with a year and a clock, one with a year, one
   with a clock, and one that counts back (3 days ago);
5. the address (/2016/11/28/), which also replaces a later day: that text was published again;
6. the day of the last change, then a day without a year: pages that say no other.

Days of comments, of other pages, of members who joined, of a copyright or a price are never taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.spans import CHINA

from tasks.reading.dates import DATE, read_date
from tasks.reading.days import is_in_sentence
from tasks.reading.people import elsewhere

JSON_LD_DAYS = ("datePublished", "dateCreated", "uploadDate")
"""Keys of JSON-LD that hold the day, the surest first."""

_DIGITS = re.compile(r"\d{8}(?:\d{6})?|\d{10}|\d{13}|\d{8}T[\d:.]{4,12}(?:Z|[+-][\d:]{4,5})?", re.ASCII)
_META_NAMES = (
    re.compile(r"publi(?:sh|cation)|release|pub[-_]?(?:date|time)|^pub$"),
    re.compile(
        r"^(?:dc\.|dcterms[:.]|og:)?(?:date|time|created|issued|displaydate)$|create[-_]?(?:d|at|time|date)"
    ),
)
_META_CHANGED = (re.compile(r"updat|modif"),)

_PUBLISHED = re.compile(
    r"publi(?:sh|cation)|pub-?date|(?:entry|post|article)-?date|\b(?:posted|created|original(?:ly)?)\b|发[布表]|發[佈布表]",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"updat|modif|revis|\b(?:last|edited|corrected|checked|reviewed)\b(?! in )|更新|修改|最[后後]"
    r"|(?:编辑|編輯)(?:于|於|时间)",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"©|copyright|\b(?:as of|joined|registered|member since|expires?|valid)\b|版[权權]|截至"
    r"|(?:注册|加入)(?:时间|日期|于)?\W*$",
    re.IGNORECASE,
)
_MOST_TIMES, _MOST_UP, _LABEL_CHARS, _TIME_CHARS = 20, 3, 25, 40
_LINE_CHARS = 120
# Day and clock of elements side by side: 10-0812:00.
_DAY_AND_CLOCK = re.compile(r"(-[0-3]\d)(?=\d\d[:：])")
_YEAR_NAMED = re.compile(r"(?<!\d)(?:199\d|20[0-4]\d)(?!\d)")
_EARLIER_NAMED = re.compile(r"前$|ago$|^[01]?\d月[0-3]?\d日$")
_CLOCK_NAMED = re.compile(r"\d[:：]\d\d")
_LABELLED, _BARE = -1, 4
"""Ranks of a day that its label calls published, and of one that may be anything's."""

_ADDRESS_DAY = re.compile(
    r"(?<!\d)((?:199|20[0-4])\d)(?:([/_-])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])|[/_-]?(0[1-9]|1[0-2])[/_-]?(0[1-9]|[12]\d|3[01]))(?!\d)"
)
# A text that names its year is read alike at any time.
_ANY_TIME = datetime(2100, 1, 1, tzinfo=CHINA)
_NEAR = timedelta(days=2)
"""How far a day may lie behind the one of the address, which is in another zone."""


def is_day(text: str) -> bool:
    """Return True if a text of a page's head holds a date, or is one of digits alone."""
    return DATE.search(text) is not None or _DIGITS.fullmatch(text) is not None


def json_ld_day(thing: Mapping[str, Any]) -> str:
    """Return the day of a thing of JSON-LD, as written; empty if it has none that can be read."""
    days = (thing.get(name) for name in JSON_LD_DAYS)
    return next((day for day in days if isinstance(day, str) and is_day(day)), "")


def meta_day(metas: Mapping[str, str]) -> str:
    """Return the day in the meta elements of a page, as written."""
    return _find_meta(metas, _META_NAMES)


def meta_change(metas: Mapping[str, str]) -> str:
    """Return the day of the last change in the meta elements of a page, as written."""
    return _find_meta(metas, _META_CHANGED)


def _find_meta(metas: Mapping[str, str], kinds: Sequence[re.Pattern[str]]) -> str:
    found = (text for names in kinds for name, text in metas.items() if names.search(name) and is_day(text))
    return next(found, "")


def find_marked_day(tree: LexborHTMLParser) -> str:
    """Return the day in an element for days outside comments and lists of other pages, as written."""
    marked = [
        (not published, text)
        for node in tree.css('[itemprop="datePublished"], time')[:_MOST_TIMES]
        for published, changed in [_marks(node)]
        if (text := _time_text(node, shown=published)) and not elsewhere(node) and (published or not changed)
    ]
    return min(marked, key=lambda one: one[0], default=(True, ""))[1]


def _time_text(node: LexborNode, *, shown: bool) -> str:
    """Return the day of an element: the one for machines, or else the shown one if that counts too."""
    attributes = node.attributes
    for name in ("datetime", "content"):
        text = attributes.get(name) or ""
        if text[:4].isdecimal() and is_day(text):
            return text
    text = " ".join(node.text().split()) if shown else ""
    return text if len(text) <= _TIME_CHARS and _YEAR_NAMED.search(text) and DATE.search(text) else ""


def _marks(node: LexborNode) -> tuple[bool, bool]:
    """Return True for an element that is marked or labelled as a published day, and as one of a change."""
    attributes = node.attributes
    said = f"{attributes.get('itemprop') or ''} {attributes.get('class') or ''} {_label(node)}"
    return _PUBLISHED.search(said) is not None or "pubdate" in attributes, _CHANGED.search(said) is not None


def _label(node: LexborNode) -> str:
    """Return the end of the text in front of an element, or the text in it in front of the date."""
    own = " ".join(node.text().split())[:_TIME_CHARS]
    match = DATE.search(own)
    if match and match.start():
        return own[: match.start()]
    current: LexborNode | None = node
    for _ in range(_MOST_UP):
        before = current.prev if current is not None else None
        while before is not None:
            if text := before.text().strip():
                return text[-_LABEL_CHARS:]
            before = before.prev
        current = current.parent if current is not None else None
    return ""


class NearLine(NamedTuple):
    """A line of a page, and the one above it."""

    text: str
    above: str


def around_text(above: Sequence[str], beginning: Sequence[str]) -> list[NearLine]:
    """Return the lines above a text from the nearest to the farthest, then those that it begins with."""
    lines = [NearLine(*one) for one in zip((*above, *beginning), ("", *above, *beginning), strict=False)]
    return [*reversed(lines[: len(above)]), *lines[len(above) :]]


class LineDay(NamedTuple):
    """The surest day in lines around a text, as written, and the day of a change.

    Attributes:
        doubt: from `_LABELLED` to `_BARE`.
    """

    doubt: int
    date: str
    changed: str


def line_day(lines: Sequence[NearLine]) -> LineDay:
    """Return the surest day in lines around a text, the nearest of equally sure ones."""
    found: list[tuple[int, str]] = []
    changed = ""
    for line in lines:
        if len(line.text) > _LINE_CHARS:
            continue
        for date, label in _list_days(line):
            if _OTHERS.search(label):
                continue
            if _PUBLISHED.search(label):
                found.append((_LABELLED, date))
            elif _CHANGED.search(label):
                changed = changed or date
            else:
                found.append((_doubt(date), date))
    doubt, date = min(found, key=lambda one: one[0], default=(_BARE, ""))
    return LineDay(doubt, date, changed)


def _list_days(line: NearLine) -> Iterator[tuple[str, str]]:
    """Yield the dates of a line that is no sentence, each with the text in front of it."""
    text = _DAY_AND_CLOCK.sub(r"\1 ", line.text)
    label, end = line.above, 0
    for match in DATE.finditer(text):
        label = text[end : match.start()].strip() or label
        end = match.end()
        if _YEAR_NAMED.search(match.group()) or not is_in_sentence(text):
            yield match.group(), label[-_LABEL_CHARS:]


def _doubt(date: str) -> int:
    """Return a rank of a date in a byline: a day with its year and clock is one, a bare day may be anything's."""
    if _YEAR_NAMED.search(date):
        return 0 if _CLOCK_NAMED.search(date) else 1
    if _CLOCK_NAMED.search(date):
        return 2
    return 3 if _EARLIER_NAMED.search(date) else _BARE


def find_published_day(
    marked: str, changed: str, lines: Sequence[NearLine], after: Sequence[str], url: str
) -> str:
    """Return the day on which the text of a page was published, as written; empty if the page does not say it.

    Args:
        marked: the day that the page's head or an element gives.
        changed: the day of the last change that its head gives.
        lines: the lines above the text and its first ones (`around_text`).
        after: the lines behind the text, which count if those above it give no day at all.
    """
    address = address_day(url)
    found = line_day(lines)
    if found.doubt == _BARE and not found.changed:
        below = line_day(around_text((), after))
        found = below if below.doubt < _BARE or not found.date else found
    day = marked or (found.date if found.doubt < _BARE else "")
    if day:
        return address if _is_later(day, address) else day
    return address or changed or found.changed or found.date


def address_day(url: str) -> str:
    """Return the day in an address, as 2016-11-28; empty if there is none."""
    for match in _ADDRESS_DAY.finditer(urlsplit(url).path):
        year, _, month, day, other_month, other_day = match.groups()
        text = f"{year}-{int(month or other_month):02}-{int(day or other_day):02}"
        if read_date(text, _ANY_TIME) is not None:
            return text
    return ""


def _is_later(day: str, address: str) -> bool:
    """Return True if a day with its year lies well behind the one of the address."""
    if not address or not (_YEAR_NAMED.search(day) or day[:4].isdecimal()):
        return False
    one, other = read_date(day, _ANY_TIME), read_date(address, _ANY_TIME)
    return one is not None and other is not None and one - other > _NEAR
