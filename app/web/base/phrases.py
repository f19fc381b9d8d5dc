"""The language of a request, and sentences that are still found by their English form (sentences.yaml)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

import yaml

from app.views.moments import clock_text
from app.views.words import LANGUAGES, find_language, translate

_LONGEST = 500
"""Of a sentence: a longer text is no sentence of ours, and the forms take its length squared."""


@cache
def chinese() -> Mapping[str, str]:
    """Return the Chinese form of sentences by their English form."""
    text = Path(__file__).with_name("sentences.yaml").read_text("utf-8")
    found: dict[str, str] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


@cache
def _sentences() -> list[tuple[re.Pattern[str], str]]:
    """The form of each English sentence, and the Chinese one."""
    return [
        (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(english)), re.DOTALL), said)
        for english, said in chinese().items()
    ]


def translated(language: str, text: str) -> str:
    """An English sentence in a language; as it is where its form is not known."""
    if language != "zh" or len(text) > _LONGEST:
        return text
    for form, said in _sentences():
        if (found := form.fullmatch(text)) is not None:
            return said.format(**{name: translated(language, one) for name, one in found.groupdict().items()})
    head, colon, rest = text.partition(": ")
    if colon and (kind := _phrase(head)):  # an error with its class before it
        return f"{kind}：{translated(language, rest)}"
    return _phrase(text) or text


def _phrase(text: str) -> str | None:
    for key in (text, text.replace(" ", "_")):
        phrase = translate(key)
        if phrase != key:
            return phrase
    return None


def choose_language(query: str, cookie: str, accepted: str) -> str:
    """Return the language of a request: the one asked for, else the one chosen before, else the browser's."""
    for one in (query, cookie):
        if one in LANGUAGES:
            return one
    for part in accepted.split(","):
        code = find_language(part.partition(";")[0])
        if code is not None:
            return code
    return "en"


def moment(when: datetime | None) -> str:
    """Return the clock time of a moment; a dash if there is none."""
    return "–" if when is None else clock_text(when)
