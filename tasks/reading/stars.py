"""Ratings that a page shows as stars: in words, signs, widths, class names or a row of icons."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from tasks.reading.outline import Outline

_NUMBER = r"\d{1,3}(?:[.,]\d{1,2})?"
_LABEL = r"(?:rat(?:ed|ing)|评分|打分|星级|给)\s*(?:is|as|of|at|为|了)?\s*[:：]?\s*"
_UNIT = r"(?:-?\s?stars?|\s?颗?星级?)"
_OF_BEST = re.compile(
    rf"(?:{_LABEL}|(?:scored?|得分)\s*[:：]?\s*)?({_NUMBER})(?:{_UNIT}|分)?"
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
_LONGEST, _BEST, _SCALES, _MOST_ICONS = 40, 5.0, (5, 10, 100), 12


@lru_cache(maxsize=1024)
def rating_in(text: str) -> float | None:
    """Return the rating that a short text states, in stars of five: "Rated 1 out of 5", 4.5星, ★★★☆☆; else `None`."""
    text = text.strip().strip("()（）.。")
    if not 0 < len(text) <= _LONGEST:
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


def shown_rating(page: Outline, element: int) -> tuple[float | None, bool]:
    """Return the rating that an element shows, in stars of five, and whether it is sure.

    A row of five icons that are called alike is not sure: it may stand for any rating.
    """
    attributes = page.nodes[element].attributes
    called = page.called[element]
    starry = _STAR.search(called) is not None
    stated = [attributes.get(name) or "" for name in _STATED_IN]
    if 0 < page.chars(element) <= _LONGEST:
        stated.append(page.text_of(element))
    for text in stated:
        rating = rating_in(text)
        if rating is None and starry and (match := _ALONE.fullmatch(text)):
            rating = _within(match[1])
        if rating is not None:
            return rating, True
    if match := _CALLED.search(called):
        value = float(match[1])
        return (value if value <= _BEST else value / 10), True
    if not (starry or _STAR.search(page.called[max(0, page.parents[element])])):
        return None, False
    if match := _WIDTH.search(attributes.get("style") or ""):
        return _within(str(float(match[1]) * _BEST / 100)), True
    return _count_icons(page, element)


def _count_icons(page: Outline, element: int) -> tuple[float | None, bool]:
    """Return how many of the stars in a row are full, and whether some are not."""
    icons = [
        f"{one.attributes.get('class') or ''} {one.attributes.get('src') or ''}"
        for one in islice(page.nodes[element].iter(), _MOST_ICONS)
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
