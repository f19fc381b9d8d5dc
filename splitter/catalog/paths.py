"""How the rules of JSON answers name things: paths, values, conditions.

path        ``feed.entry[]``: keys, from the top; ``[]`` is every member of a list, ``[2]`` its third. A list at the top
            is ``[]``.
paths       ``data.cards[].mblog, data.cards[].card_group[].mblog``: of all of them, as in CSS.
value       a path (its first value that is not empty) or a text with ``{path}`` in it; ``a | b``: b if a is
            empty.
condition   ``path=text``, ``path!=text``, several joined by `` & ``. A path that isn't there meets neither; an
            empty text stands for ``""``, ``null``, ``[]`` and ``{}``. Any other text is a regular
            expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter

from splitter.errors import Message, WrongValue

EACH = "[]"
"""The step of a path that stands for every member of a list."""

Path = tuple[str, ...]
"""Keys, places in lists (``[2]``) and EACH, from the top."""

_KEY = r"[^\s.,\[\]{}|=!&<>\"'()\\^$*+?]+"
_MEMBER = r"\[\d{0,4}\]"
_PATH = re.compile(rf"(?:{_KEY}|{_MEMBER})(?:{_MEMBER})*(?:\.{_KEY}(?:{_MEMBER})*)*")
_STEP = re.compile(rf"{_MEMBER}|{_KEY}")
_TEST = re.compile(rf"({_PATH.pattern})(!?=)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    """A value of a record: a text with the values of paths put in.

    Attributes:
        parts: literal text, and the path whose value follows it (None at the end).
    """

    parts: tuple[tuple[str, Path | None], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a condition: the value at `path` equals `text`, or differs from it if `differs`."""

    path: Path
    text: str
    differs: bool


def place_of(step: str) -> int | None:
    """The place in a list that a step names, from 0; None for a key and for EACH."""
    return int(step[1:-1]) if step[0] == "[" and step != EACH else None


@lru_cache(maxsize=1024)
def path_of(text: str) -> Path:
    """Parse a path. Raises WrongValue if the text is none."""
    stripped = text.strip()
    if not _PATH.fullmatch(stripped):
        raise WrongValue(
            "{text!r} is no path; write keys and dots, [] for a list's members, [0] for its first: "
            "data.cards[].mblog",
            text=text,
        )
    return tuple(_STEP.findall(stripped))


@lru_cache(maxsize=256)
def paths_of(text: str) -> tuple[Path, ...]:
    """Parse paths between commas. Raises WrongValue if one is none."""
    return tuple(path_of(part) for part in text.split(","))


@lru_cache(maxsize=1024)
def values_of(text: str) -> tuple[Template, ...]:
    """Parse a value's alternatives, none for an empty rule. Raises WrongValue if one is none."""
    return tuple(_template(part) for part in text.split(" | ")) if text.strip() else ()


def _template(text: str) -> Template:
    if "{" not in text and "}" not in text:
        return Template((("", path_of(text)),))
    parts: list[tuple[str, Path | None]] = []
    try:
        for literal, name, spec, conversion in Formatter().parse(text.strip()):
            if spec or conversion:
                raise ValueError(f"{name!r}")
            parts.append((literal, path_of(name) if name is not None else None))
    except ValueError as error:
        raise WrongValue(
            "{text!r} is no text with {{path}} in it ({error}); write one such as https://example.com/{{id}}",
            text=text,
            error=error if isinstance(error, Message) else Message(str(error)),
        ) from error
    return Template(tuple(parts))


@lru_cache(maxsize=256)
def condition_of(text: str) -> tuple[Comparison, ...] | None:
    """Parse a condition whose parts must all hold; return `None` for a regular expression."""
    tests = []
    for part in text.split(" & "):
        match = _TEST.fullmatch(part.strip())
        if match is None:
            return None
        tests.append(Comparison(path_of(match[1]), match[3].strip(), match[2] == "!="))
    return tuple(tests)
