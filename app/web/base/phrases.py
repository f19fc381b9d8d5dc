"""The dashboard's words in the reader's language: the English phrase is the key, phrases.yaml has the Chinese.

Sentences that other rooms make, or that the store keeps in English, are told by their form (sentences.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml

LANGUAGES = {"en": "English", "zh": "中文"}
Translate = Callable[..., str]

_LONGEST = 500
"""Of a sentence: a longer text is no sentence of ours, and the forms take its length squared."""
_UNITS = {
    "en": ("{} ms", "{} s", "{} min", "{} h", "{} d"),
    "zh": ("{} 毫秒", "{} 秒", "{} 分钟", "{} 小时", "{} 天"),
}


@cache
def chinese(name: str = "phrases.yaml") -> Mapping[str, str]:
    """By English phrase, or sentence."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    found: dict[str, str] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


@cache
def _sentences() -> list[tuple[re.Pattern[str], str]]:
    """The form of each English sentence, and the Chinese one."""
    return [
        (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(english)), re.DOTALL), said)
        for english, said in chinese("sentences.yaml").items()
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
    return chinese().get(text) or chinese().get(text.replace(" ", "_"))


def chosen(query: str, cookie: str, accepted: str) -> str:
    """The language: what was asked for, else what was chosen before, else what the browser prefers."""
    for one in (query, cookie):
        if one in LANGUAGES:
            return one
    for part in accepted.split(","):
        name = part.partition(";")[0].strip().lower()
        if name[:2] in LANGUAGES:
            return name[:2]
    return "en"


def translator(language: str) -> Translate:
    """`t(phrase, name=value)`: the phrase in a language, with its values put in."""
    words = chinese() if language == "zh" else {}

    def t(phrase: str, **values: object) -> str:
        said = words.get(phrase, phrase)
        return said.format(**values) if values else said

    return t


def length(language: str, seconds: float | None) -> str:
    """A length of time, as people say it; a dash where it is not known."""
    if seconds is None:
        return "–"
    ms, s, minutes, hours, days = _UNITS[language]
    if seconds < 1:
        return ms.format(round(seconds * 1000))
    if seconds < 120:
        return s.format(f"{seconds:.3g}")
    if seconds < 7200:
        return minutes.format(f"{seconds / 60:.3g}")
    return (
        hours.format(f"{seconds / 3600:.3g}") if seconds < 172_800 else days.format(f"{seconds / 86_400:.3g}")
    )


def moment(when: datetime | None) -> str:
    """A moment in UTC; a dash where there is none."""
    return "–" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
