"""Show numbers of a sheet as Excel does, by the number formats of cells (ECMA-376, part 1, 18.8.30 and 18.8.31)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

_DATE = "yyyy-mm-dd"
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    46: "[h]:mm:ss",
    **dict.fromkeys((*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)), _DATE),
}
"""Built-in formats by number, including the date formats of Chinese Excel. Other built-in ones change nothing."""
LONGEST_FORMAT = 255
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*+)"?|\\(?P<escaped>.)|\[(?P<brackets>[^\]]*+)\]?|[_*].|General|(?P<sign>.)',
    re.DOTALL | re.IGNORECASE,
)
_GENERAL = "General"
_DIGITS = "0#?"
_OTHER_FORMS = "/Ee@"
"""Signs of fractions, powers of ten and texts. A pattern with one of them is not applied."""
_DATE_SIGNS = frozenset("ymdhsYMDHS")
_MOST_DECIMALS = 30
_PRECISE = Context(prec=60)
_MOST_PERCENTS = 2
_EXACT = 1e15
"""Largest number shown by its format. Excel stores 15 digits."""


class Section(NamedTuple):
    """One pattern of a number format. A format may have several, for positive and negative numbers and zero.

    Attributes:
        tokens: parts of the pattern: single signs, and literal texts, which begin with a quote.
        is_plain: True if the pattern shows a number unchanged.
        is_date: True if the pattern shows a point in time.
        is_duration: True if the pattern shows a duration, which may exceed a day.
    """

    tokens: tuple[str, ...]
    is_plain: bool
    is_date: bool
    is_duration: bool


@lru_cache(maxsize=1024)
def sections(code: str) -> tuple[Section, ...]:
    """Return the patterns of a format, one to three: for positive numbers, negative numbers and zero."""
    parts: list[list[str]] = [[]]
    for match in _TOKEN.finditer(code[:LONGEST_FORMAT]):
        quoted, escaped, brackets, sign = match.group("quoted", "escaped", "brackets", "sign")
        if sign == ";":
            parts.append([])
        elif sign:
            parts[-1].append(sign)
        elif brackets is not None:
            parts[-1].append(_literal(brackets))
        elif quoted or escaped:
            parts[-1].append(f'"{quoted or escaped}')
        elif match[0].casefold() == "general":
            parts[-1].append(_GENERAL)
    return tuple(map(_section, parts))


def _literal(brackets: str) -> str:
    """Return the text that a part in brackets shows: a currency or a part of a duration.

    It is empty for a colour or a language.
    """
    if brackets.startswith("$"):
        return '"' + brackets[1:].partition("-")[0]
    if brackets and set(brackets.casefold()) <= set("hms"):
        return f"[{brackets}]"
    return '"'


def _section(tokens: list[str]) -> Section:
    signs = [token for token in tokens if not token.startswith('"')]
    return Section(
        tuple(tokens),
        is_plain=not any(sign in _DIGITS for sign in signs) or any(sign in _OTHER_FORMS for sign in signs),
        is_date=any(sign in _DATE_SIGNS or sign[0] == "[" for sign in signs),
        is_duration=any(sign[0] == "[" for sign in signs),
    )


def show_number(value: float, code: str) -> str:
    """Return the text that a number format gives to a number. The format must not be a date format."""
    patterns = sections(code)
    pattern = patterns[0]
    if value < 0 and len(patterns) > 1:
        pattern = patterns[1]
    elif value == 0 and len(patterns) > 2:
        pattern = patterns[2]
    if not pattern.is_plain and abs(value) < _EXACT:
        sign = "-" if value < 0 and pattern is patterns[0] else ""
        return sign + "".join(_fill(pattern.tokens, Decimal(repr(abs(value))))).strip()
    texts = [token for token in pattern.tokens if token.startswith('"')]
    if _GENERAL in pattern.tokens:
        return "".join(
            _show_plain(value) if token == _GENERAL else token.removeprefix('"') for token in pattern.tokens
        )
    if len(texts) == len(pattern.tokens) and (len(patterns) > 1 or any(len(text) > 1 for text in texts)):
        return "".join(text[1:] for text in texts)
    return _show_plain(value)


def _show_plain(value: float) -> str:
    if value.is_integer():
        return str(int(value))
    return f"{value:.15g}"


def _fill(tokens: tuple[str, ...], number: Decimal) -> Iterator[str]:
    """Fill a pattern with a number, and yield the parts of the text. The number must not be negative."""
    signs = "".join(token for token in tokens if len(token) == 1)
    before, _, after = "".join(sign for sign in signs if sign in _DIGITS + ".,").partition(".")
    whole = before.rstrip(",")
    decimal_places = after.rstrip(",")
    scale = len(before) - len(whole) + len(after) - len(decimal_places)
    decimal_places = decimal_places[:_MOST_DECIMALS]
    number = number * 100 ** min(signs.count("%"), _MOST_PERCENTS) / 1000**scale
    rounded = number.quantize(Decimal(1).scaleb(-len(decimal_places)), ROUND_HALF_UP, _PRECISE)
    digits, _, decimals = f"{rounded:f}".partition(".")
    while decimals.endswith("0") and decimal_places[len(decimals) - 1] == "#":
        decimals = decimals[:-1]
    digits = digits.lstrip("0").rjust(whole.count("0"), "0")
    places = len(whole)
    if "," in whole:
        digits = f"{int(digits or 0):,}"
        places = 1
    left = digits
    is_after = False
    for token in tokens:
        if token in _DIGITS and not is_after:
            if places:
                end = max(0, len(left) - places + 1)
                yield left[:end]
                left = left[end:]
                places -= 1
        elif token == ".":
            is_after = True
            yield f".{decimals}" if decimals else ""
        elif token.startswith('"'):
            yield token[1:]
        elif token != "," and token not in _DIGITS:
            yield token
