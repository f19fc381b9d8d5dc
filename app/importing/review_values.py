"""Parse ratings and dates of reviews, as people write them.

Each function returns `None` for an empty cell, and raises `NotUnderstood` for a cell that it can't read.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from app.importing.cell_words import NotUnderstood, arabic, arabic_year, is_nothing, meanings_of, plain_cell
from splitter.spans import CHINA
from tasks.reading.dates import read_date

_RATINGS = {word: float(stars) for word, stars in meanings_of("rating").items()}
"""Ratings by word, in stars from 1 to 5."""
_STARS = re.compile(r"[★⭐✭✮🌟]")
_SIGNS = re.compile(r"[★⭐✭✮🌟☆✩⯪半 \ufe0f]+")
_MOST_SIGNS = 10
_REMARK = re.compile(r"[(\[【〔][^()\[\]【】〔〕]*[)\]】〕]")
_FRACTION = re.compile(r"(\d{1,3}(?:\.\d{1,4})?) ?(?:/|out of|of|星,最多|,最多) ?(\d{1,3}(?:\.\d{1,4})?)")
_NUMBER = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)")
_AROUND = re.compile(
    r"^(?:评分|打分|得分|评价|星级|给|rated|rating|score)[:为是 ]*|(?<=\d) ?(?:颗?星级?|分|stars?|★|points?)",
    re.ASCII,
)
_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}$)")
_HALF = re.compile(r"^([0-5]) ?(?:颗?星|分)半$")
_BEST, _MOST = 5, 100
_REMEMBERED = 10_000

_USUAL = re.compile(r"(?:19[7-9]|20\d)\d[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)")
_SERIAL = re.compile(r"[1-9]\d{4}(?:\.\d+)?")
_FIRST_DAY = datetime(1899, 12, 30, tzinfo=CHINA)
_SERIALS = range(25_569, 73_051)
"""Excel's numbers for the days of the years 1970 to 2099."""
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−－﹣", "-") | dict.fromkeys("。．·﹒", ".") | {"号": "日"})
_CHINESE_DAY = re.compile(
    r"(?:([〇零一二三四五六七八九\d]{4})年)?([一二三四五六七八九十\d]{1,3})月([一二三四五六七八九十\d]{1,3})[日]"
)
_SHORT_YEAR = re.compile(r"(\d\d)[-/.年](\d{1,2})[-/.月](\d{1,2})日?")
_MOST_MONTHS = 12
_MONTH_ONLY = re.compile(r"(?:\d{4})[-/.年] ?\d{1,2}月?|\d{1,2}月|\d{4}年?")
_NO_DATES = ("0", "0000-00-00", "0000-00-00 00:00:00")


@lru_cache(_REMEMBERED)
def read_rating(text: str) -> float | None:
    """Return a rating. Words, stars, fractions and percentages become 1 to 5 stars; a plain number stays as it is."""
    if is_nothing(text):
        return None
    plain = plain_cell(text.replace("½", "半")).strip("!~。. ")
    for form in (plain, _REMARK.sub("", plain).strip(" !"), plain.strip("()[]【】")):
        rating = _read_rating(form)
        if rating is not None:
            return rating
    raise NotUnderstood


def _read_rating(text: str) -> float | None:
    word = "".join(text.split())
    for one in (word, word.removeprefix("给").removesuffix("评价")):
        if one in _RATINGS:
            return _RATINGS[one]
    if _SIGNS.fullmatch(text) and len(text) <= _MOST_SIGNS + _MOST_SIGNS:
        stars = len(_STARS.findall(text))
        half = 0.5 if "半" in text else 0.0
        return stars + half if stars <= _MOST_SIGNS else None
    number = arabic(text)
    if match := _HALF.fullmatch(number):
        return float(match[1]) + 0.5
    if number.endswith("%") and (match := _NUMBER.fullmatch(number[:-1].strip())):
        return _scale(float(match[1]), _MOST)
    number = _COMMA.sub(".", _AROUND.sub("", number).replace(",最多", "/").strip())
    number = _AROUND.sub("", number).strip()
    if match := _FRACTION.fullmatch(number):
        return _scale(float(match[1]), float(match[2]))
    match = _NUMBER.fullmatch(number)
    return float(match[1]) if match and float(match[1]) <= _MOST else None


def _scale(value: float, best: float) -> float | None:
    """Convert a rating on a scale that ends at `best` to one that ends at 5; `None` if it is outside the scale."""
    if not 1 < best <= _MOST or value > best:
        return None
    return round(value * _BEST / best, 2)


def read_day(text: str, now: datetime) -> datetime | None:
    """Return the time that a date means, written as text or as Excel's number; `None` for an empty cell.

    The time is in China's zone unless the date states another one.

    Args:
        now: the current time, to compute relative dates; aware, in China's zone.

    Raises:
        NotUnderstood: the text is not a date.
    """
    if _USUAL.match(text):
        date = read_date(text, now)
        if date is not None:
            return date
    if is_nothing(text) or text in _NO_DATES:
        return None
    plain = plain_cell(text).translate(_DASHES)
    if _SERIAL.fullmatch(plain) and int(plain.partition(".")[0]) in _SERIALS:
        return _FIRST_DAY + timedelta(days=float(plain))
    if _MONTH_ONLY.fullmatch(plain):
        raise NotUnderstood
    if match := _CHINESE_DAY.match(plain):
        month, day, rest = arabic(match[2]), arabic(match[3]), plain[match.end() :]
        plain = f"{month}-{day}{rest}"
        if match[1]:
            plain = f"{arabic_year(match[1])}-{plain}"
    elif (match := _SHORT_YEAR.fullmatch(plain)) and _MOST_MONTHS < int(match[1]) <= now.year % 100:
        plain = f"20{match[1]}-{match[2]}-{match[3]}"
    date = read_date(text, now) or read_date(plain, now)
    if date is None:
        raise NotUnderstood
    return date
