"""Result pages that are JSON, or hold it in script elements, read by the catalog's rules (splitter.catalog.paths).

Strangers write what is read here: a document is read up to a length and a depth, a page up to a number of hits, and no
text goes on that no database takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.paths import EACH, Path, Template, condition_of, path_of, paths_of, values_of
from splitter.catalog.rules import PostRules, ResultRules

from tasks.domain.crawl import ErrorClass, FetchError, Hit, ResultPage
from tasks.reading.hits import HitFields, PostFields, hits_of, number_of
from tasks.reading.markup import collapsed, page_text, parse, select
from tasks.reading.markup_limits import check_markup
from tasks.reading.refusals import check_blocked, refusal

_LONGEST = 4_000_000
"""Characters of one document: real answers have some hundred thousand; in memory it may be fifty times as much."""
_MOST_HITS = 1000
_SCANNED = 200_000
_SHOWN = 200
_MARKUP = re.compile(r"[<&]")
_SURROGATES = re.compile("[\\ud800-\\udfff\\0]")


def read_json_results(text: str, url: str, rules: ResultRules, now: datetime | None) -> ResultPage:
    """Read a result page whose rules say ``format: json`` (see ``tasks.reading.results.read_results``)."""
    document = _read(text, url, rules)
    hits = _hits(document, url, rules, now)
    if hits:
        # An engine that says 0 and lists hits counts none.
        found = (_number(document, rules.found) or None) if rules.found else None
        more = bool(rules.next) and any(map(_filled, _walk(document, path_of(rules.next))))
        return ResultPage(found, hits, empty=False, more=more)
    scanned = text[:_SCANNED]
    # A refusal often comes as an empty list, too.
    _raise_if_refused(document, scanned, url, rules)
    if any(_holds(condition, document, scanned) for condition in rules.empty):
        return ResultPage(found=0, hits=(), empty=True, more=False)
    raise FetchError(
        ErrorClass.BAD_RULE,
        f"hit {rules.hit!r} matches {sum(1 for _ in _records(document, rules))} objects, none with a usable link "
        f"{rules.link!r}; no mark of an empty answer; it says: {collapsed(text[:120])}",
    )


def json_rule_values(text: str, url: str, rules: ResultRules) -> list[tuple[str, str, list[str]]]:
    """What each rule finds in an answer, for a person who mends rules: its key, the rule, its values.

    Raises:
        FetchError: as `read_json_results`, for what is no JSON.
    """
    document = _read(text, url, rules)
    records = list(islice(_records(document, rules), _MOST_HITS))
    post = rules.post.model_dump() if rules.post is not None else {}
    fields = {name: getattr(rules, name) for name in ("link", "title", "abstract", "time")} | post
    found = [("hit", rules.hit, [json.dumps(record, ensure_ascii=False)[:_SHOWN] for record in records])]
    for name, rule in fields.items():
        if rule:
            found.append(
                (name, rule, [value for record in records if (value := _shown(_value(record, rule)))])
            )
    for name in ("next", "found"):
        if rule := getattr(rules, name):
            found.append((name, rule, list(filter(None, map(_text, _walk(document, path_of(rule)))))))
    return found


def _read(text: str, url: str, rules: ResultRules) -> Any:
    return _embedded(text, rules) if rules.embedded else _document(text, url, rules)


def _document(text: str, url: str, rules: ResultRules) -> Any:
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped:
        raise FetchError(ErrorClass.BAD_CONTENT, "an empty answer where JSON was due")
    if stripped[0] not in "{[":
        raise _no_json(stripped, url, rules)
    return _loaded(stripped)


def _loaded(text: str) -> Any:
    if len(text) > _LONGEST:
        raise FetchError(ErrorClass.TOO_LARGE, f"{len(text)} characters of JSON; {_LONGEST} are read")
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise FetchError(ErrorClass.TOO_LARGE, "JSON nested too deeply") from None
    except ValueError as error:  # numbers of thousands of digits, too
        raise FetchError(ErrorClass.BAD_CONTENT, f"broken JSON: {error}") from None


def _no_json(text: str, url: str, rules: ResultRules) -> FetchError:
    """A page where JSON was due is a refusal, whatever it says: these addresses have no pages."""
    shown = page_text(parse(text))
    error = check_blocked(shown, url, rules.blocked) or refusal(f"{url} {shown[:2000]}")
    return FetchError(error, f"{url[:200]} answers no JSON: {shown[:120]}")


def _embedded(text: str, rules: ResultRules) -> list[Any]:
    """What the script elements hold, those that hold JSON."""
    check_markup(text)
    tree = LexborHTMLParser(text)
    documents = []
    for node in select(tree, rules.embedded):
        try:
            documents.append(_loaded(node.text(deep=True).strip()))
        except FetchError as error:
            if error.error is ErrorClass.TOO_LARGE:
                raise
    return documents


def _hits(document: Any, url: str, rules: ResultRules, now: datetime | None) -> tuple[Hit, ...]:
    records = islice(_records(document, rules), _MOST_HITS)
    return hits_of((_row(record, rules) for record in records), url, now)


def _records(document: Any, rules: ResultRules) -> Iterator[dict[str, Any]]:
    for path in _paths(rules.hit):
        for record in _walk(document, path):
            if isinstance(record, dict):
                yield record


def _paths(text: str) -> tuple[Path, ...]:
    try:
        return paths_of(text)
    except ValueError as error:
        raise FetchError(ErrorClass.BAD_RULE, str(error)) from None


def _row(record: dict[str, Any], rules: ResultRules) -> HitFields:
    return HitFields(
        _value(record, rules.link),
        _shown(_value(record, rules.title)),
        _shown(_value(record, rules.abstract)),
        _value(record, rules.time),
        _post(record, rules.post) if rules.post is not None else None,
    )


def _post(record: dict[str, Any], rules: PostRules) -> PostFields:
    return PostFields(
        _value(record, rules.id),
        _shown(_value(record, rules.body)),
        _shown(_value(record, rules.author)),
        _value(record, rules.date),
        _value(record, rules.rating),
    )


def _value(record: Any, rule: str) -> str:
    """The first alternative of a value that is not empty; a template is empty where one of its paths is."""
    for template in _values(rule):
        value = _filled_in(template, record)
        if value:
            return value
    return ""


def _values(rule: str) -> tuple[Template, ...]:
    try:
        return values_of(rule)
    except ValueError as error:
        raise FetchError(ErrorClass.BAD_RULE, str(error)) from None


def _filled_in(template: Template, record: Any) -> str:
    text = ""
    for literal, path in template.parts:
        text += literal
        if path is not None:
            value = next(filter(None, map(_text, _walk(record, path))), "")
            if not value:
                return ""
            text += value
    return text.strip()


def _walk(value: Any, path: Path) -> Iterator[Any]:
    """What stands at a path, in the order of the document."""
    if not path:
        yield value
    elif path[0] == EACH:
        for member in value if isinstance(value, list) else ():
            yield from _walk(member, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _walk(value[path[0]], path[1:])


def _text(value: Any) -> str:
    """A value as text; empty for null, lists and objects."""
    if isinstance(value, str):
        return _SURROGATES.sub("", value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value) if isinstance(value, int | float) else ""


def _shown(text: str) -> str:
    """A text of an answer as a reader sees it: without its markup, lines kept apart by blanks."""
    if not _MARKUP.search(text):
        return collapsed(text)
    try:
        return page_text(parse(text))
    except FetchError:  # made to choke a parser
        return ""


def _number(document: Any, path: str) -> int | None:
    return next((number_of(_text(value)) for value in _walk(document, path_of(path))), None)


def _filled(value: Any) -> bool:
    return bool(value) and value not in ("0", "false")


def _holds(pattern: str, document: Any, text: str) -> bool:
    tests = condition_of(pattern)
    if tests is None:
        return _regex(pattern).search(text) is not None
    return all(
        any(_is(value, test.text) != test.differs for value in _walk(document, test.path)) for test in tests
    )


def _is(value: Any, text: str) -> bool:
    if not text:
        return value is None or value in ("", [], {})
    return _text(value) == text


def _raise_if_refused(document: Any, text: str, url: str, rules: ResultRules) -> None:
    for pattern in rules.blocked:
        if condition_of(pattern) is None:
            error = check_blocked(text, url, (pattern,))
        else:
            error = refusal(f"{pattern} {text[:500]}") if _holds(pattern, document, text) else None
        if error is not None:
            raise FetchError(error, f"{url[:200]} answers: {collapsed(text[:120])}")


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
