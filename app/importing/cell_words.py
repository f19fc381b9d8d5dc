"""Functions to read cells of any column: normal form of a text, marks of an empty cell, Chinese numerals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unicodedata import normalize

import yaml

from app.files.visible_text import visible

_REMEMBERED = 10_000
_LONGEST = 200
"""Maximum number of characters of a cell that are read."""
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_DIGIT = re.compile("(?<![零一二三四五六七八九〇两])[零一二三四五六七八九〇两](?![零一二三四五六七八九〇两])")
_NUMERAL = re.compile(r"([一两二三四五六七八九]?)十([一二三四五六七八九]?)")


def words_of(name: str) -> frozenset[str]:
    """Return the words that an entry of ``cell_words.yaml`` lists."""
    return frozenset(_load()[name].split())


def meanings_of(name: str) -> dict[str, Any]:
    """Return an entry of ``cell_words.yaml`` as a mapping from words to their meanings."""
    return {word: value for value, words in _load()[name].items() for word in words.split()}


@cache
def _load() -> Mapping[str, Any]:
    text = Path(__file__).with_name("cell_words.yaml").read_text("utf-8")
    words: Mapping[str, Any] = yaml.safe_load(text)
    return words


_NOTHING = words_of("nothing")


class NotUnderstood(Exception):
    """A cell has a text that does not fit its column. The importer leaves the cell empty and counts it."""


def plain_cell(text: str, longest: int = _LONGEST) -> str:
    """Return the first `longest` characters of a cell in lower case and half width, with single blanks."""
    return visible(normalize("NFKC", text[:longest])).casefold()


@lru_cache(_REMEMBERED)
def is_nothing(text: str) -> bool:
    """Return True if a cell is empty or has a sign for "nothing": -, /, N/A, 无."""
    return is_dash(text) or plain_cell(text) in _NOTHING


def is_dash(text: str) -> bool:
    """Return True if a cell is empty or has only a dash."""
    return not plain_cell(text).strip("-—–−_/\\.·~*、,")


def arabic(text: str) -> str:
    """Replace Chinese numerals up to 99 by digits: 十二个月 becomes 12个月. Ranges such as 三四个月 stay."""
    text = _NUMERAL.sub(lambda found: f"{_DIGITS.get(found[1], 1)}{_DIGITS.get(found[2], 0)}", text)
    return _DIGIT.sub(lambda found: str(_DIGITS[found[0]]), text)


def arabic_year(text: str) -> str:
    """Replace each Chinese digit by an Arabic one: 二〇二六 becomes 2026."""
    return "".join(str(_DIGITS.get(char, char)) for char in text)
