"""Result pages that are JSON, or hold it in script elements, read by the catalog's paths (splitter.catalog.paths).

Strangers write these documents. So their length, depth and number of hits are limited, and characters that no database
takes are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from splitter.catalog.paths import EACH, Path, Template, condition_of, path_of, paths_of, values_of
from splitter.catalog.rules import ResultRules

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.interstitials import check_blocked, refusal
from tasks.reading.markup import collapsed, page_text, parse, parse_whole, select

_LONGEST = 4_000_000
"""Characters of one document: real answers have some hundred thousand; in memory it may be fifty times as much."""
_MOST_HITS = 1000
_SCANNED = 200_000
_MAX_FOUND_DIGITS = 15
_MARKUP = re.compile(r"[<&]")
_SURROGATES = re.compile("[\\ud800-\\udfff\\0]")


_Compiled = TypeVar("_Compiled")


class JsonAnswer:
    """A result page in JSON, before its records are read as hits.

    Attributes:
        records: the objects that the hit rule finds.
    """

    def __init__(self, text: str, url: str, rules: ResultRules) -> None:
        """Raises FetchError for what is no JSON, too large, or a refusal in its place."""
        self._text, self._url, self._rules = text[:_SCANNED], url, rules
        self._document = _embedded(text, rules) if rules.embedded else _document(text, url, rules)
        found = (record for path in _compiled(paths_of, rules.hit) for record in _walk(self._document, path))
        self.records = list(islice((record for record in found if isinstance(record, dict)), _MOST_HITS))

    def values(self, rule: str) -> list[str]:
        """A rule's value in every record; empty where it finds nothing, or where the rule is empty."""
        return [_value(record, rule) for record in self.records]

    def texts(self, rule: str) -> list[str]:
        """The same, as a reader sees it: without markup."""
        return [_shown(value) for value in self.values(rule)]

    def everywhere(self, path: str) -> list[str]:
        """The values at a path of the whole document, without empty ones; none for the empty path."""
        return [text for value in self._walk(path) if (text := _text(value))]

    def found(self) -> int | None:
        """The number of hits it reports; None where it reports none."""
        return next((number_of(_text(value)) for value in self._walk(self._rules.found)), None)

    def has_next(self) -> bool:
        """Whether there is a next page."""
        return any(value and value not in ("0", "false") for value in self._walk(self._rules.next))

    def raise_unless_empty(self) -> None:
        """Of an answer without hits: raise a refusal (often an empty list) or BAD_RULE; not if it is proven empty."""
        rules, says = self._rules, collapsed(self._text[:120])
        for pattern in rules.blocked:
            if condition_of(pattern) is None:
                error = check_blocked(self._text, self._url, (pattern,))
            else:
                error = refusal(f"{pattern} {self._text[:500]}") if self._holds(pattern) else None
            if error is not None:
                raise FetchError(error, f"{self._url[:200]} answers: {says}")
        if any(map(self._holds, rules.empty)):
            return
        raise FetchError(
            ErrorClass.BAD_RULE,
            f"hit {rules.hit!r} matches {len(self.records)} objects, none with a usable link {rules.link!r}; "
            f"no mark of an empty answer; it says: {says}",
        )

    def _walk(self, path: str) -> Iterator[Any]:
        return _walk(self._document, path_of(path)) if path else iter(())

    def _holds(self, pattern: str) -> bool:
        tests = condition_of(pattern)
        if tests is None:
            return re.search(pattern, self._text) is not None
        return all(
            any(_is(value, test.text) != test.differs for value in _walk(self._document, test.path))
            for test in tests
        )


def number_of(text: str) -> int | None:
    """A number of hits as a page writes it, without its commas; None for what is none."""
    digits = re.sub(r"[,，\s]", "", text)
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_FOUND_DIGITS else None


def _document(text: str, url: str, rules: ResultRules) -> Any:
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped:
        raise FetchError(ErrorClass.BAD_CONTENT, "an empty answer where JSON was due")
    if stripped[0] not in "{[":
        # A page where JSON was due is a refusal, whatever it says: these addresses have no pages.
        shown = page_text(parse(stripped))
        error = check_blocked(shown, url, rules.blocked) or refusal(f"{url} {shown[:2000]}")
        raise FetchError(error, f"{url[:200]} answers no JSON: {shown[:120]}")
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


def _embedded(text: str, rules: ResultRules) -> list[Any]:
    """The documents in script elements, of those that hold JSON."""
    documents = []
    for node in select(parse_whole(text), rules.embedded):
        try:
            documents.append(_loaded(node.text(deep=True).strip()))
        except FetchError as error:
            if error.error is ErrorClass.TOO_LARGE:
                raise
    return documents


def _compiled(compiler: Callable[[str], tuple[_Compiled, ...]], rule: str) -> tuple[_Compiled, ...]:
    try:
        return compiler(rule)
    except ValueError as error:
        raise FetchError(ErrorClass.BAD_RULE, str(error)) from None


def _value(record: Any, rule: str) -> str:
    """The first alternative of a value that is not empty; a template is empty where one of its paths is."""
    return next(filter(None, (_filled_in(one, record) for one in _compiled(values_of, rule))), "")


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


def _is(value: Any, text: str) -> bool:
    if not text:
        return value is None or value in ("", [], {})
    return _text(value) == text
