"""Reads a search URL back: the inverse of what a query template of the catalog writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from urllib.parse import parse_qs

from splitter.catalog.model import TIME_PLACEHOLDERS, Engine, TimeFilter
from splitter.spans import CHINA, Span


@dataclass(frozen=True, slots=True)
class Query:
    """The parts of a search URL.

    Attributes:
        keywords: the words joined by AND, in their order, without repeats and the engine's extra words.
        site: the site it is restricted to; None: no restriction.
        page: number of the result page, from 1.
        span: time it is restricted to; None: no restriction.
    """

    keywords: tuple[str, ...]
    site: str | None
    page: int
    span: Span | None = None


def read_query(engine: Engine, query_string: str) -> Query:
    """Read the query string of a search URL (still percent-encoded) of an engine.

    Unreadable parts are read kindly, as engines do: no query gives no keywords, an odd page number page 1.
    """
    values = parse_qs(query_string, encoding=engine.encoding, errors="replace")
    text = _value(engine, values, "{query}")
    site: str | None = None
    restricted = _restriction(engine.site).fullmatch(text)
    if restricted:
        text = restricted["words"]
        site = restricted["site"].rstrip("/").lower()
    return Query(_keywords(engine, text), site, _page(engine, values), _span(engine, values))


def _value(engine: Engine, values: dict[str, list[str]], placeholder: str) -> str:
    for name, template in engine.params.items():
        before, found, after = template.partition(placeholder)
        if found and name in values:
            return values[name][0].removeprefix(before).removesuffix(after)
    return ""


@cache
def _restriction(template: str) -> re.Pattern[str]:
    """A pattern for a query with a site restriction; one that never matches where the template has none."""
    if "{site}" not in template:
        return re.compile(r"(?!)(?P<words>)(?P<site>)")
    pattern = re.escape(template)
    for name, group in (("words", r"(?P<words>.*?)"), ("site", r"(?P<site>\S+)")):
        pattern = pattern.replace(re.escape("{" + name + "}"), group)
    return re.compile(pattern, re.DOTALL)


def _keywords(engine: Engine, text: str) -> tuple[str, ...]:
    words = text.replace("\x00", " ").replace(engine.join or " ", " ").split()
    for extra in engine.extra_words:
        if extra in words:
            # The engine's own words come last; a product's own word of the same spelling stays.
            del words[len(words) - 1 - words[::-1].index(extra)]
    return tuple(dict.fromkeys(words))


def _page(engine: Engine, values: dict[str, list[str]]) -> int:
    number, offset = _value(engine, values, "{page}"), _value(engine, values, "{offset}")
    if number.isdecimal():
        return max(1, int(number[:9]))
    if offset.isdecimal():
        return max(1, (int(offset[:9]) - engine.first) // engine.step + 1)
    return 1


_UNITS = {"s": timedelta(seconds=1), "day": timedelta(days=1), "hour": timedelta(hours=1)}


def _span(engine: Engine, values: dict[str, list[str]]) -> Span | None:
    """The time a request is restricted to; None where it says nothing that can be read."""
    if engine.times is None:
        return None
    ends: dict[str, datetime] = {}
    for name, template in engine.times.params.items():
        match = _written(template).fullmatch(values.get(name, [""])[0])
        for placeholder, text in match.groupdict().items() if match else ():
            side, unit = placeholder.split("_")
            try:
                ends[side] = _moment(text, unit, engine.times if side == "to" else None)
            except (ValueError, OverflowError, OSError):
                return None
    begin, end = ends.get("from"), ends.get("to")
    return Span(begin, end) if begin is not None and end is not None and begin < end else None


@cache
def _written(template: str) -> re.Pattern[str]:
    pattern = re.escape(template)
    for name in TIME_PLACEHOLDERS:
        pattern = pattern.replace(re.escape("{" + name + "}"), f"(?P<{name}>[0-9-]{{1,20}})")
    return re.compile(pattern)


def _moment(text: str, unit: str, times: TimeFilter | None) -> datetime:
    """A written end of a range; of its right one (with its filter) the first moment that is outside."""
    if unit == "s":
        at = datetime.fromtimestamp(int(text), UTC)
    else:
        day, _, hour = (text, "", "0") if unit == "day" else text.rpartition("-")
        at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=CHINA) + timedelta(hours=int(hour))
    return at + _UNITS[unit] if times is not None and times.inclusive else at
