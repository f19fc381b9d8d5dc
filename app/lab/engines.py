"""Search engines of the lab: read the query in a search URL, and write a result page that the engine's rules can read.

Result pages are generated from the rules (`app.lab.made`). Texts of the engine, such as its count, are made from the
regular expressions in the rules, if these are simple. If the rules are not simple, the engine gets a plain page that
the rules can't read. Only the table of `12365auto-list` has a layout of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from html import escape
from typing import Any
from urllib.parse import parse_qs

from app.lab import chance
from app.lab.answers import HTML, JSON, sample_text
from app.lab.made import NotSimple, Row, make_object, merge, nest, write_records
from app.lab.pages import TEMPLATES, Content
from splitter.catalog.model import TIME_PLACEHOLDERS, Engine
from splitter.catalog.paths import EACH, Comparison, condition_of, path_of, paths_of
from splitter.catalog.rules import ResultRules
from splitter.spans import CHINA, Span

# --- result pages ---------------------------------------------------------------------------------------------


_ABSTRACT_CHARS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePage:
    """The content of one page of search results.

    Attributes:
        number: Number of the result page, from 1.
        found: Number of hits that the engine reports.
        hits: Address and content of each hit. If there are none, the page reports that nothing was found.
        next_url: Address of the next result page. Empty on the last one.
    """

    number: int
    found: int
    hits: Sequence[tuple[str, Content]]
    next_url: str


_PLAIN = ResultRules(hit="li.hit", link="a@href", title="a", abstract="p", next="a.next")


def write_results(name: str, rules: ResultRules, page: EnginePage) -> tuple[str, str]:
    """Write a result page that the rules of an engine can read.

    Returns:
        The content type, and the text: of an HTML page only what its frame holds, of JSON the whole document.
    """
    if name == "12365auto-list":
        return HTML, _write_12365auto_list(page)
    try:
        if rules.format == "json" and not rules.embedded:
            return JSON, _write_json(rules, page)
        return HTML, _write_html(rules, page)
    except ValueError:
        return HTML, _write_html(_PLAIN, page)


def _write_html(rules: ResultRules, page: EnginePage) -> str:
    if not page.hits:
        nothing = next((text for pattern in rules.empty if (text := sample_text(pattern))), "没有找到")
        return f'<div class="nothing"><p>{escape(nothing)}</p></div>'
    if rules.embedded:
        return write_records(rules.embedded, ([(".", text)] for text in _write_scripts(rules, page)))
    count = sample_text(rules.found, page.found) if rules.found else ""
    hits = write_records(rules.hit, (_row(rules, *hit) for hit in page.hits))
    link = [("@href", page.next_url), (".", "下一页")]
    following = write_records(rules.next, [link]) if rules.next and page.next_url else ""
    return f'<div class="count">{escape(count)}</div>\n{hits}{following}'


def _write_scripts(rules: ResultRules, page: EnginePage) -> Iterator[str]:
    """Yield the JSON of each hit, for rules that read hits from script elements."""
    for hit in page.hits:
        yield json.dumps(nest(paths_of(rules.hit)[0][1:], make_object(_row(rules, *hit))))


def _write_json(rules: ResultRules, page: EnginePage) -> str:
    path = paths_of(rules.hit)[0]
    if EACH not in path[1:]:
        raise NotSimple(f"hit {rules.hit}")
    document = nest(path, [make_object(_row(rules, *hit)) for hit in page.hits])
    if rules.found:
        document = merge(document, nest(path_of(rules.found), page.found))
    if rules.next and EACH not in path_of(rules.next):
        document = merge(document, nest(path_of(rules.next), page.number + 1 if page.next_url else 0))
    if not page.hits:
        for test in _empty_condition(rules.empty):
            value = int(test.text) if test.text.isdecimal() else _JSON_VALUES.get(test.text, test.text)
            document = merge(document, nest(test.path, value))
    return json.dumps(document, ensure_ascii=False)


_JSON_VALUES: dict[str, Any] = {"": [], "true": True, "false": False}


def _empty_condition(patterns: Sequence[str]) -> tuple[Comparison, ...]:
    """Return the comparisons of the first condition for "no hits" that a written page can fulfil."""
    for pattern in patterns:
        tests = condition_of(pattern)
        if tests is not None and not any(test.differs or EACH in test.path for test in tests):
            return tests
    return ()


def _row(rules: ResultRules, url: str, content: Content) -> Row:
    post = content.posts[0]
    date = f"{post.at:%Y-%m-%d %H:%M}"
    row = [
        (rules.link, url),
        (rules.title, content.title),
        (rules.abstract, post.body[:_ABSTRACT_CHARS]),
        (rules.time, date),
    ]
    if rules.post is not None:
        row += [
            (rules.post.id, post.key),
            (rules.post.body, post.body),
            (rules.post.author, post.author),
            (rules.post.date, date),
        ]
    return row


_DEFECTS = ("发动机:异响", "变速器:顿挫", "车身附件及电器:影音系统故障", "服务:服务态度")
_STATES = ("信息审核", "厂家受理", "厂家回复", "用户评分")


def _write_12365auto_list(page: EnginePage) -> str:
    """Write a list of complaints as 车质网 does: a table with eight columns."""
    templates = TEMPLATES["12365auto-list"]
    rows = ""
    for place, (url, content) in enumerate(page.hits):
        draw = chance.number(0, "12365auto", url)
        rows += templates["hit"].format(
            post=content.posts[0],
            place=place,
            words=content.title[:20],
            url=escape(url),
            title=escape(content.title),
            defect=_DEFECTS[draw % len(_DEFECTS)],
            state=_STATES[draw // 7 % len(_STATES)],
        )
    following = templates["next"].format(url=escape(page.next_url)) if page.next_url else ""
    return templates["page"].format(hits=rows, next=following)


# --- search URLs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """The search that a search URL asks for.

    Attributes:
        keywords: Keywords in order, without repeated ones and the engine's extra words. A hit contains all of them.
        site: Site that hits must be from. `None` allows any site.
        page: Number of the result page, from 1.
        span: Time that hits must be from. `None` allows any time.
    """

    keywords: tuple[str, ...]
    site: str | None
    page: int
    span: Span | None = None


def read_query(engine: Engine, query_string: str) -> Query:
    """Read the query from the query string (still percent-encoded) of a search URL.

    As real engines do, ignore parts that can't be read: without a query there are no keywords, and an odd page number
    stands for page 1.
    """
    values = parse_qs(query_string, encoding=engine.encoding, errors="replace")
    text = _value(engine, values, "{query}")
    site: str | None = None
    restricted = _restriction(engine.site).fullmatch(text)
    if restricted:
        text = restricted["words"]
        site = restricted["site"].rstrip("/").lower()
    return Query(_keywords(engine, text), site, _page_number(engine, values), _span(engine, values))


def _value(engine: Engine, values: dict[str, list[str]], placeholder: str) -> str:
    for name, template in engine.params.items():
        before, found, after = template.partition(placeholder)
        if found and name in values:
            return values[name][0].removeprefix(before).removesuffix(after)
    return ""


@cache
def _restriction(template: str) -> re.Pattern[str]:
    """Return the pattern that finds the site to search in a query.

    It never matches if the engine searches all sites only.
    """
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
            # The engine's own words come last. The same word of a product stays.
            del words[len(words) - 1 - words[::-1].index(extra)]
    return tuple(dict.fromkeys(words))


def _page_number(engine: Engine, values: dict[str, list[str]]) -> int:
    number, offset = _value(engine, values, "{page}"), _value(engine, values, "{offset}")
    if number.isdecimal():
        return max(1, int(number[:9]))
    if offset.isdecimal():
        return max(1, (int(offset[:9]) - engine.first) // engine.step + 1)
    return 1


_UNITS = {"s": timedelta(seconds=1), "day": timedelta(days=1), "hour": timedelta(hours=1)}


def _span(engine: Engine, values: dict[str, list[str]]) -> Span | None:
    """Return the range of time that a search is limited to, or `None` if it has no readable range."""
    if engine.times is None:
        return None
    ends: dict[str, datetime] = {}
    for name, template in engine.times.params.items():
        match = _time_pattern(template).fullmatch(values.get(name, [""])[0])
        for placeholder, text in match.groupdict().items() if match else ():
            side, unit = placeholder.split("_")
            try:
                ends[side] = _moment(text, unit)
                if side == "to" and engine.times.inclusive:
                    ends[side] += _UNITS[unit]
            except (ValueError, OverflowError, OSError):
                return None
    begin, end = ends.get("from"), ends.get("to")
    return Span(begin, end) if begin is not None and end is not None and begin < end else None


@cache
def _time_pattern(template: str) -> re.Pattern[str]:
    pattern = re.escape(template)
    for name in TIME_PLACEHOLDERS:
        pattern = pattern.replace(re.escape("{" + name + "}"), f"(?P<{name}>[0-9-]{{1,20}})")
    return re.compile(pattern)


def _moment(text: str, unit: str) -> datetime:
    if unit == "s":
        return datetime.fromtimestamp(int(text), UTC)
    day, _, hour = (text, "", "0") if unit == "day" else text.rpartition("-")
    return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=CHINA) + timedelta(hours=int(hour))
