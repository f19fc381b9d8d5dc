"""Ratings that a page shows as stars: in words, signs, widths, class names or a row of icons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from selectolax.lexbor import LexborNode

_NUMBER = r"\d{1,3}(?:[.,]\d{1,2})?"
_LABEL = r"(?:rat(?:ed|ing)|评分|打分|星级|给)\s*+(?:(?:is|as|of|at|为|了)\s*+)?(?:[:：]\s*+)?"
_UNIT = r"(?:-?\s?stars?|\s?颗?星级?)"
_OF_BEST = re.compile(
    rf"(?:{_LABEL}|(?:scored?|得分)\s*+(?:[:：]\s*+)?)?({_NUMBER})(?:{_UNIT}|分)?"
    rf"\s?(?:/|out of|of|von|sur|[/，,]?\s?(?:满分|最多|共))\s?({_NUMBER})"
    r"\s?(?:stars?|颗?星|分|points?)?(?:\s(?:rating|review))?",
    re.IGNORECASE,
)
_OF_FIVE = re.compile(
    rf"(?:{_LABEL})?({_NUMBER}){_UNIT}(?:\s(?:rating|review))?|{_LABEL}({_NUMBER})\s?分?", re.IGNORECASE
)
# 三星 alone is a brand.
_NUMERAL = re.compile(r"[给打]([一二三四五])颗?星|([一二三四五])(?:颗星|星(?:级|好评|差评|推荐))")
_SIGNS = re.compile(r"[★⭐✭✮🌟]{1,5}[☆✩✰]{0,4}|[☆✩✰]{5}")
_FULL_SIGN = re.compile(r"[★⭐✭✮🌟]")
_ALONE = re.compile(rf"({_NUMBER})\s?分?")
_STAR = re.compile(r"star|rating|评分|xingji", re.IGNORECASE)
_CALLED = re.compile(r"(?:^|[-_\s])(?:all)?(?:stars?|rating|rated)[-_]?([0-5]|[1-4][05]|50)(?:$|[-_\s])")
_WIDTH = re.compile(r"(?<!-)width\s*:\s*(\d{1,3}(?:\.\d{1,4})?)\s*%", re.IGNORECASE)
_EMPTY_ICON = re.compile(
    r"(?<![a-z])(?:o|empty|off|gr[ae]y|blank|outlined?|inactive|unfilled|line|regular|far|0)(?![a-z])",
    re.IGNORECASE,
)
_HALF_ICON = re.compile(r"half", re.IGNORECASE)
_STATED_IN = ("aria-label", "alt", "title", "data-rating")
_MAYBE = re.compile(r"[\d★⭐✭✮🌟☆✩✰一二三四五]")
_BEST, _SCALES, _MOST_ICONS = 5.0, (5, 10, 100), 12
LONGEST = 40
"""Maximum number of characters of a text that states a rating."""

Shown = tuple[float | None, bool]
"""A rating, and whether it is sure."""


@lru_cache(maxsize=1024)
def rating_in(text: str) -> float | None:
    """Return the rating that a short text states, in stars of five: "Rated 1 out of 5", 4.5星, ★★★☆☆; else `None`."""
    text = text.strip().strip("()（）.。")
    if not 0 < len(text) <= LONGEST:
        return None
    if _SIGNS.fullmatch(text):
        return float(len(_FULL_SIGN.findall(text)))
    if match := _NUMERAL.fullmatch(text):
        return float(1 + "一二三四五".index(match[1] or match[2]))
    if match := _OF_BEST.fullmatch(text):
        value, best = _float(match[1]), _float(match[2])
        return round(value * _BEST / best, 2) if value <= best and best in _SCALES else None
    match = _OF_FIVE.fullmatch(text)
    return _within(match[1] or match[2]) if match else None


def shown_rating(node: LexborNode, text: str) -> Shown:
    """Return the rating that an element shows, in stars of five, and whether it is sure; (`None`, `False`) for none.

    A row of five icons that are called alike is not sure: it may stand for any rating.

    Args:
        text: of the element; empty if it is longer than `LONGEST`.
    """
    attributes = node.attributes
    called = _names_of(node)
    starry = _STAR.search(called) is not None
    for stated in (*map(attributes.get, _STATED_IN), text):
        if not stated or not _MAYBE.search(stated[: LONGEST + 1]):
            continue
        rating = rating_in(stated)
        if rating is None and starry and (match := _ALONE.fullmatch(stated)):
            rating = _within(match[1])
        if rating is not None:
            return rating, True
    if match := _CALLED.search(called):
        value = float(match[1])
        return (value if value <= _BEST else value / 10), True
    above = node.parent
    if not starry and (above is None or not _STAR.search(_names_of(above))):
        return None, False
    if match := _WIDTH.search(attributes.get("style") or ""):
        return _within(str(float(match[1]) * _BEST / 100)), True
    return _count_icons(node)


def sure_ratings(shown: Sequence[Shown]) -> list[float | None]:
    """Return the ratings that elements at one place of records show; none if none of them is sure."""
    if not any(sure for _, sure in shown):
        return [None] * len(shown)
    return [rating for rating, _ in shown]


def _names_of(node: LexborNode) -> str:
    attributes = node.attributes
    return f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()


def _count_icons(node: LexborNode) -> Shown:
    """Return how many of the stars in a row are full, and whether some are not."""
    icons = [
        f"{one.attributes.get('class') or ''} {one.attributes.get('src') or ''}"
        for one in islice(node.iter(), _MOST_ICONS)
    ]
    if not 1 < len(icons) <= _BEST or not all(map(_STAR.search, icons)):
        return None, False
    halves = sum(_HALF_ICON.search(one) is not None for one in icons)
    empty = sum(_EMPTY_ICON.search(one) is not None and not _HALF_ICON.search(one) for one in icons)
    full = len(icons) - empty - halves
    return full + halves / 2, len(icons) < _BEST or full < len(icons)


def _within(number: str) -> float | None:
    value = _float(number)
    return round(value, 2) if value <= _BEST else None


def _float(number: str) -> float:
    return float(number.replace(",", "."))
