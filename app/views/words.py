"""Translate texts for people. The English text is the key in a gettext catalog (`app/locale`).

A command sets the language of its process once, the dashboard sets one for each request in a context variable.
`make locale` collects the texts from the sources and compiles the catalogs.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from splitter.errors import InputError, Message
from tasks.domain.reasons import Explanation, Reason, from_document

DOMAIN = "reviewloop"
FOLDER = Path(__file__).parents[1] / "locale"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""Names of the languages by code, each in its own language."""
TAGS: Mapping[str, str] = {"en": "en", "zh": "zh-CN"}
"""Language tags of HTML by code."""

_WORDS = frozenset({"cause", "causes", "failure", "kind", "lacks", "unit"})
"""Parameters of reasons whose values are stored words such as `forbidden`, or lists of them with commas."""

_OF_CATALOG = frozenset({Reason.CATALOG_PERMITS, Reason.ENGINE_UNSUPPORTED})
"""Reasons whose text is one of the catalog of sites. Those of the built-in catalogs are translated."""

_language: ContextVar[str | None] = ContextVar("language", default=None)


class _Process:
    """The language of the process. Each of its threads begins with this language."""

    language = "en"


def translate(text: str, /, **values: object) -> str:
    """Return a text in the current language, with its names in braces replaced by values.

    Args:
        text: English text, a literal in the source so that `make locale` finds it.
        values: values for the names in braces. Reasons and errors among them are translated.
    """
    translated = _catalog(language()).gettext(text) if text else ""
    return translated.format_map(_translate_values(values)) if values else translated


def name_text(name: object, text: object) -> str:
    """Return "name: text" with the colon of the current language."""
    return translate("{name}: {text}", name=name, text=text)


def join_words(words: Iterable[str]) -> str:
    """Return words as a list, with the comma of the current language."""
    return translate(", ").join(words)


def plural(one: str, many: str, n: int, /, **values: object) -> str:
    """Return `one` or `many` in the current language, depending on the number `n`.

    `{n}` in the text is replaced by it.
    """
    translated = _catalog(language()).ngettext(one, many, n)
    return translated.format_map(_translate_values({"n": n, **values}))


def describe(subject: object) -> str:
    """Return an error, a message or a reason as text in the current language; `str(subject)` for any other value."""
    if isinstance(subject, Explanation):
        words = {
            name: join_words(map(translate, str(value).split(", ")))
            for name, value in subject.parameters.items()
            if name in _WORDS
        }
        if subject.reason in _OF_CATALOG:
            words["text"] = translate(str(subject.parameters["text"]))
        return translate(subject.reason.sentence, **{**subject.parameters, **words})
    if isinstance(subject, Message):
        return translate(subject.template, **subject.parameters)
    if isinstance(subject, tuple | list):
        return join_words(map(describe, subject))
    return str(subject)


def describe_reason(detail: Mapping[str, Any]) -> str:
    """Return the reason stored in an event's detail as text in the current language.

    A sentence that an older version stored is returned in English.
    """
    return describe(from_document(detail["because"])) if "because" in detail else detail["why"]


def language() -> str:
    """Return the code of the current language."""
    return _language.get() or _Process.language


def use_language(code: str) -> None:
    """Set the language of this process. `switch_language` overrides it for a block.

    Raises:
        InputError: the program has no texts in this language.
    """
    _Process.language = parse_language(code)


@contextmanager
def switch_language(code: str) -> Iterator[None]:
    """Set the current language during the block.

    Raises:
        InputError: the program has no texts in this language.
    """
    token = _language.set(parse_language(code))
    try:
        yield
    finally:
        _language.reset(token)


def parse_language(code: str) -> str:
    """Return the code (zh) of a language given in a longer form, such as `zh_CN.UTF-8` or `en-US`.

    Raises:
        InputError: the program has no texts in this language.
    """
    found = find_language(code)
    if found is None:
        raise InputError("{code!r} is not a language of reviewloop: zh or en", code=code)
    return found


def find_language(code: str) -> str | None:
    """Return the code of a language if the program has texts in it, else `None`. `code` may have a longer form."""
    short = code.strip().lower().replace("-", "_").partition("_")[0].partition(".")[0]
    return short if short in LANGUAGES else None


@cache
def _catalog(code: str) -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, FOLDER, [code])


def _translate_values(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: _translate_value(value) for name, value in values.items()}


def _translate_value(value: object) -> object:
    if isinstance(value, StrEnum):
        return translate(str(value))
    return describe(value) if isinstance(value, Explanation | Message | tuple | list) else value
