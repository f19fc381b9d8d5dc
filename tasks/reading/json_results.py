"""Pages in JSON, whole or in script elements, read by the catalog's paths (splitter.catalog.paths).

Strangers write these documents, so their length, depth and number of hits are limited, and characters that no database
takes are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from splitter.catalog.paths import (
    EACH,
    Comparison,
    Path,
    Template,
    condition_of,
    path_of,
    paths_of,
    place_of,
    values_of,
)
from splitter.catalog.patterns import compile_pattern
from splitter.catalog.rules import PageRules, ResultRules
from splitter.errors import Message, json_reason

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.interstitials import check_blocked, refusal
from tasks.reading.markup import collapse, page_text, parse, parse_whole, select
from tasks.reading.records import MOST_RECORDS

_LONGEST = 4_000_000
"""Maximum characters of a document. Real ones have some hundred thousand; memory may take fifty times as much."""
_SCANNED = 200_000
_MAX_FOUND_DIGITS = 15
_MARKUP = re.compile(r"[<&]")
_SURROGATES = re.compile("[\\ud800-\\udfff\\0]")


class JsonRecords:
    """A page in JSON, before its records are read as hits or reviews.

    Attributes:
        records: the objects that the rule matches.
    """

    def __init__(self, text: str, url: str, rules: ResultRules | PageRules, rule: str) -> None:
        """Parse the answer. Raises FetchError if it is no JSON, is too large, or is a refusal."""
        self._text, self._url, self._blocked = text[:_SCANNED], url, rules.blocked
        self._document = (
            _load_embedded(text, rules.embedded) if rules.embedded else _document(text, url, rules)
        )
        found = (record for path in paths_of(rule) for record in _walk(self._document, path))
        self.records = list(islice((record for record in found if isinstance(record, dict)), MOST_RECORDS))

    def values(self, rule: str) -> list[str]:
        """Return a rule's value in every record; empty if it finds nothing, or if the rule is empty."""
        return [_value(record, rule) for record in self.records]

    def texts(self, rule: str) -> list[str]:
        """Return a rule's value in every record without its markup."""
        return [_shown(value) for value in self.values(rule)]

    def everywhere(self, path: str) -> list[str]:
        """Return the filled values at a path of the whole document; none for the empty path."""
        return [text for value in self._walk(path) if (text := _text(value))]

    def first(self, rule: str) -> str:
        """Return a rule's value from the top of the document; empty if it finds nothing."""
        return _value(self._document, rule)

    def raise_if_blocked(self) -> None:
        """Raise FetchError if the rules' patterns and conditions show a refusal."""
        for pattern in self._blocked:
            tests = condition_of(pattern)
            if tests is None:
                error, says = (
                    check_blocked(self._text, self._url, (pattern,)),
                    Message("answers: {text}", text=self.begins),
                )
            else:
                error = refusal(f"{pattern} {self._text[:500]}") if self._holds(pattern) else None
                says = Message("{text}", text="; ".join(map(self._describe, tests))[:300])
            if error is not None:
                raise FetchError(error, Message("{says} ({url})", says=says, url=self._url[:200]))

    @property
    def begins(self) -> str:
        """Return the beginning of the answer."""
        return collapse(self._text[:120])

    def _walk(self, path: str) -> Iterator[Any]:
        return _walk(self._document, path_of(path)) if path else iter(())

    def _describe(self, test: Comparison) -> str:
        """Describe the value in a condition; for a member of a list, the whole list."""
        path = test.path[:-1] if place_of(test.path[-1]) is not None else test.path
        found = (member for value in _walk(self._document, path) for member in _members(value))
        texts = (" ".join(map(_text, _members(one))) for one in found)
        return f"{'.'.join(path)}: {', '.join(filter(None, texts)) or 'nothing'}"

    def _holds(self, pattern: str) -> bool:
        tests = condition_of(pattern)
        if tests is None:
            return compile_pattern(pattern).search(self._text) is not None
        return all(
            any(_is(value, test.text) != test.differs for value in _walk(self._document, test.path))
            for test in tests
        )


class JsonAnswer(JsonRecords):
    """A result page in JSON, before its records are read as hits."""

    def __init__(self, text: str, url: str, rules: ResultRules) -> None:
        """Raises FetchError as `JsonRecords`."""
        super().__init__(text, url, rules, rules.hit)
        self._rules = rules

    def hit_count(self) -> int | None:
        """Return the reported number of hits, if there is one."""
        return next((number_of(_text(value)) for value in self._walk(self._rules.found)), None)

    def has_next(self) -> bool:
        """Return True if there is a next page."""
        return any(value and value not in ("0", "false") for value in self._walk(self._rules.next))

    def raise_unless_empty(self) -> None:
        """Raise a refusal (often an empty list) or BAD_RULE unless this answer without hits is proven empty."""
        rules = self._rules
        self.raise_if_blocked()
        if any(map(self._holds, rules.empty)):
            return
        raise FetchError(
            ErrorClass.BAD_RULE,
            Message(
                "hit {hit!r} matches {n} objects, none with a usable link {link!r}; no mark of an empty answer; "
                "it says: {begins}",
                hit=rules.hit,
                n=len(self.records),
                link=rules.link,
                begins=self.begins,
            ),
        )


def number_of(text: str) -> int | None:
    """Convert a number as a page writes it, with commas; `None` if the text is no number."""
    digits = re.sub(r"[,，\s]", "", text)
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_FOUND_DIGITS else None


def _document(text: str, url: str, rules: ResultRules | PageRules) -> Any:
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped:
        raise FetchError(ErrorClass.BAD_CONTENT, Message("an empty answer where JSON was due"))
    if stripped[0] not in "{[":
        # These addresses have no pages: a page in place of JSON is a refusal.
        shown = page_text(parse(stripped))
        error = check_blocked(shown, url, rules.blocked) or refusal(f"{url} {shown[:2000]}")
        raise FetchError(error, Message("{url} answers no JSON: {shown}", url=url[:200], shown=shown[:120]))
    return _load(stripped)


def _load(text: str) -> Any:
    if len(text) > _LONGEST:
        raise FetchError(
            ErrorClass.TOO_LARGE,
            Message("{n} characters of JSON; {most} are read", n=len(text), most=_LONGEST),
        )
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise FetchError(ErrorClass.TOO_LARGE, Message("JSON nested too deeply")) from None
    except ValueError as error:  # also raised for numbers of thousands of digits
        raise FetchError(
            ErrorClass.BAD_CONTENT, Message("broken JSON: {error}", error=json_reason(error))
        ) from None


def _load_embedded(text: str, selector: str) -> list[Any]:
    """Return the documents in the script elements that hold JSON."""
    documents = []
    for node in select(parse_whole(text), selector):
        try:
            documents.append(_load(node.text(deep=True).strip()))
        except FetchError as error:
            if error.error is ErrorClass.TOO_LARGE:
                raise
    return documents


def _value(record: Any, rule: str) -> str:
    """Return the first filled alternative of a value; a template is empty if one of its paths is."""
    return next(filter(None, (_fill_in(one, record) for one in values_of(rule))), "")


def _fill_in(template: Template, record: Any) -> str:
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
    """Yield the values at a path, in the order of the document."""
    if not path:
        yield value
    elif path[0] == EACH:
        for member in value if isinstance(value, list) else ():
            yield from _walk(member, path[1:])
    elif (place := place_of(path[0])) is not None:
        if isinstance(value, list) and place < len(value):
            yield from _walk(value[place], path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _walk(value[path[0]], path[1:])


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    """Return a value as text; empty for null, lists and objects."""
    if isinstance(value, str):
        return _SURROGATES.sub("", value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value) if isinstance(value, int | float) else ""


def _shown(text: str) -> str:
    """Return a text of an answer without its markup, with blanks between lines."""
    if not _MARKUP.search(text):
        return collapse(text)
    try:
        return page_text(parse(text))
    except FetchError:  # made to choke a parser
        return ""


def _is(value: Any, text: str) -> bool:
    if not text:
        return value is None or value in ("", [], {})
    return _text(value) == text
