"""Result pages made from the rules that read them, for engines that no format was written for (sites' own searches).

HTML is made from the selectors, JSON from the paths; what an engine says (its count, that it has nothing) from the
regular expressions, as far as they are plain. Rules too involved for that are refused (`NotSimple`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from app.lab.answers import HTML, JSON
from app.lab.engines.model import EngineFormat, Hit, Results
from app.lab.markup import NotSimple, records, sample_text
from app.lab.pages import SAMPLE
from splitter.catalog.model import Engine
from splitter.catalog.paths import EACH, Path, condition_of, path_of, paths_of, values_of
from splitter.catalog.rules import PageRules, ResultRules


def made(engine: Engine) -> EngineFormat:
    """The format of an engine, made from its rules. Raises NotSimple."""
    write, content_type = (_json, JSON) if engine.results.format == "json" else (_html, HTML)
    if engine.results.embedded:
        raise NotSimple(f"embedded {engine.results.embedded!r}")
    sample = Hit("http://example.com/1.html", "", "", SAMPLE)
    for entries, next_url in (((sample,), "/next"), ((), "")):
        write(
            Results(
                engine=engine,
                keywords=("牛奶",),
                page=1,
                found=len(entries),
                entries=entries,
                next_url=next_url,
            )
        )
    return EngineFormat(write, content_type)


def _html(results: Results) -> str:
    rules = results.engine.results
    if not results.entries:
        return f'<div class="nothing"><p>{escape(_nothing(rules))}</p></div>'
    rows = [_row(rules, entry) for entry in results.entries]
    count = sample_text(rules.found, results.found) if rules.found else ""
    link = [("@href", results.next_url), (".", "下一页")]
    following = records(rules.next, [link]) if rules.next and results.next_url else ""
    return f'<div class="count">{escape(count)}</div>\n{records(rules.hit, rows)}{following}'


def _row(rules: ResultRules, entry: Hit) -> list[tuple[str, str]]:
    """The fields of a hit that the rules name, with their values."""
    date = f"{entry.post.at:%Y-%m-%d %H:%M}"
    row = [
        (rules.link, entry.url),
        (rules.title, entry.title),
        (rules.abstract, entry.abstract),
        (rules.time, date),
    ]
    if rules.post is not None:
        row += [
            (rules.post.id, entry.post.key),
            (rules.post.body, entry.post.body),
            (rules.post.author, entry.post.author),
            (rules.post.date, date),
        ]
    return row


def _nothing(rules: ResultRules) -> str:
    texts = [text for pattern in rules.empty if (text := sample_text(pattern))]
    if rules.empty and not texts:
        raise NotSimple(f"empty {rules.empty}")
    return texts[0] if texts else "没有找到"


def _json(results: Results) -> str:
    rules = results.engine.results
    document: dict[str, Any] = {}
    hits = [_object(rules, entry) for entry in results.entries]
    _put_hits(document, paths_of(rules.hit)[0], hits)
    if rules.found:
        _put(document, path_of(rules.found), results.found)
    if rules.next and EACH not in path_of(rules.next):
        _put(document, path_of(rules.next), results.page + 1 if results.next_url else 0)
    if not hits:
        for test in _condition(rules.empty):
            _put(document, test.path, _value(test.text))
    return json.dumps(document, ensure_ascii=False)


def _condition(patterns: Sequence[str]) -> tuple[Any, ...]:
    """The tests of the first condition that can be met by setting values."""
    for pattern in patterns:
        tests = condition_of(pattern)
        if tests is not None and not any(test.differs or EACH in test.path for test in tests):
            return tests
    return ()


def _value(text: str) -> Any:
    """The JSON value that a condition's text stands for."""
    if text.isdecimal():
        return int(text)
    return {"": [], "true": True, "false": False}.get(text, text)


def _object(rules: ResultRules, entry: Hit) -> dict[str, Any]:
    made_object: dict[str, Any] = {}
    for rule, value in _row(rules, entry):
        for template in values_of(rule)[:1]:
            _fill(made_object, template.parts, value)
    return made_object


def json_text(rules: PageRules, title: str, rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    """A document of a site whose pages are JSON, made from the paths of its rules. Raises NotSimple."""
    objects = []
    for row in rows:
        objects.append(made_object := dict[str, Any]())
        for rule, value in row:
            for template in values_of(rule)[:1]:
                _fill(made_object, template.parts, value)
    path = paths_of(rules.review)[0]
    begin = 1 if rules.embedded else 0
    document = _nested(path[begin:], objects)
    for template in values_of(rules.page_title)[:1]:
        if (of_title := template.parts[0][1]) is not None:
            document = _merged(document, _nested(of_title[begin:], title))
    return json.dumps(document, ensure_ascii=False)


def _nested(path: Path, value: Any) -> Any:
    """The values at a path: the members of a list at the last place where it goes through one; before, lists of one."""
    several = isinstance(value, list)
    for place in reversed(range(len(path))):
        if path[place] != EACH:
            value = [{path[place]: one} for one in value] if several else {path[place]: value}
        elif several:
            several = False
        else:
            value = [value]
    return value


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **other, **{key: _merged(one[key], other[key]) for key in one.keys() & other.keys()}}
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(a, b) for a, b in zip(one, other, strict=True)]
    raise NotSimple("two values at one place")


def _fill(target: dict[str, Any], parts: Sequence[tuple[str, Path | None]], value: str) -> None:
    """Put values where a template looks for them, so that it gives `value`; in a text of the site's, a part of it."""
    names = [path for _, path in parts if path is not None]
    pattern = "".join(re.escape(text) + ("(.*)" if path is not None else "") for text, path in parts)
    pattern = pattern.replace("https://", "https?://")  # the lab's own addresses are http
    match = re.fullmatch(pattern, value, re.DOTALL)
    for place, path in enumerate(names):
        if EACH in path:
            raise NotSimple(f"{path} in a hit")
        _put(target, path, match[place + 1] if match else value.rpartition("/")[2] or value)


def _put_hits(document: dict[str, Any], path: Path, hits: list[dict[str, Any]]) -> None:
    """Hits where the path looks for them: the first list on its way has them, one each."""
    if EACH not in path or path[0] == EACH:
        raise NotSimple(f"hit {path}")
    at = path.index(EACH)
    rest = path[at + 1 :]
    if EACH in rest:
        raise NotSimple(f"hit {path}")
    wrapped = []
    for hit in hits:
        for key in reversed(rest):
            hit = {key: hit}
        wrapped.append(hit)
    _put(document, path[:at], wrapped)


def _put(target: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        target = target.setdefault(key, {})
        if not isinstance(target, dict):
            raise NotSimple(f"{path} leads through a value")
    target[path[-1]] = value
