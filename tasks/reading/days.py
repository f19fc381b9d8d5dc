"""The day of a post: which text states it, and whether 06/03/2024 begins with the day or with the month.

A page writes all its dates alike. So another date on it may show whether 06/03/2024 begins with the day (a 25 is no
month), a reading that lies in the future can't be meant, posts stand in the order of their days, and last the language
of the page decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from tasks.reading.dates import DATE, read_date
from tasks.reading.outline import Outline

_DIGITS = re.compile(r"(?<![\d./-])(\d{1,2})([/-])(\d{1,2})\2((?:19|20)\d\d)(?![\d./-])", re.ASCII)
_DAY_FIRST_ORDER = r"\4-\3-\1"
_MONTHS = 12
_MOST, _SEVERAL = 500, 3
_MOST_CHARS = 2_000_000
_AHEAD = timedelta(days=1)
_LANGUAGE = re.compile(
    r"<html\b[^<>]{0,400}?\blang\s*=\s*[\"']?([a-z]{2,3}(?:[-_][a-z]{2,4})?)", re.IGNORECASE
)
_HEAD_CHARS = 20_000
# Where days come before months by custom, or do not: of the rest nothing is known.
_MONTH_FIRST = frozenset({"en", "en-us", "en_us", "en-ph", "fil"})
_DAY_FIRST = frozenset((
    "ar", "bg", "ca", "cs", "da", "de", "el", "es", "et", "fi", "fr", "he", "hr", "id", "it", "ms", "nb", "nl", "no",
    "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "vi",
))  # fmt: skip
NOT_ITS_DAY = re.compile(
    r"\bjoin|regist|\bsince\b|注册|註冊|加入|入会|入站|来到|最后|最後|\blast|(?<![(（])edit|编辑|編輯|修改|更新|seen|active|活动|在线|在線",
    re.IGNORECASE,
)
"""Words in or around a date that say another day than a record's: joined, last edited."""
_SENTENCE = re.compile(r"[，。；！？]|[a-z]{2}[,;]\s[a-z]{1,20}\s[a-z]{1,20}\s[a-z]|[a-z]{3}[.!?]$")
LONGEST_BYLINE = 120
"""Characters of a text with a name or a date and what stands around it."""
_LONGEST_DAY, _SHORT_DATE, _BESIDE_DAY = 40, 40, 20


def date_of(page: Outline, number: int, now: datetime) -> str:
    """Return a date as the page writes it: in full if the element around the text has it, else the text."""
    element = page.texts[number].owner
    for _ in range(2):
        attributes = page.attributes[element]
        for name in ("datetime", "content", "title", "data-time", "data-timestamp"):
            value = attributes.get(name, "")
            if value and read_date(value, now) is not None and (name == "datetime" or DATE.search(value)):
                return value
        element = max(0, page.parents[element])
    text = page.texts[number].text
    match = DATE.search(text)
    return " ".join(text[match.start() if match and len(text) > _SHORT_DATE else 0 :].split())[:60]


def is_its_day(page: Outline, number: int) -> bool:
    """Return True if a text is a date, and not the one of something else (last reply, joined)."""
    said = "".join(page.texts[n].text for n in range(max(0, number - 1), number + 1))
    text, owner = page.texts[number].text, page.texts[number].owner
    said += "".join(page.attributes[one].get("title", "") for one in (owner, max(0, page.parents[owner])))
    beside = len(DATE.sub("", text))
    return (
        page.dates[number]
        and len(text) <= _LONGEST_DAY
        and beside <= _BESIDE_DAY
        and not NOT_ITS_DAY.search(said)
    )


def is_in_sentence(text: str) -> bool:
    """Return True if a date stands in a sentence: the text is about that day, and was not written on it."""
    around = DATE.sub("", text[:LONGEST_BYLINE])
    return len(around) > _BESIDE_DAY and _SENTENCE.search(around) is not None


def read_dates(texts: Sequence[str], page: str, now: datetime) -> list[datetime | None]:
    """Read each date of a page as `read_date` does, with the order of day and month that this page has.

    Args:
        texts: the dates as written, in the order of the page.
        page: the whole page as HTML; searched only if a date is in doubt, up to two million characters.
        now: aware; what relative dates count from.
    """
    found = [read_date(text, now) for text in texts]
    doubtful = [match for text in texts if (match := _DIGITS.search(text)) and _is_in_doubt(match)]
    if not doubtful or not _day_first(doubtful, page, now):
        return found
    return [
        read_date(_DIGITS.sub(_DAY_FIRST_ORDER, text), now) if _DIGITS.search(text) else date
        for text, date in zip(texts, found, strict=True)
    ]


def list_readings(text: str, page: str, now: datetime) -> list[datetime | None]:
    """Return what a date can mean, the likeliest first: one reading, or two if day and month may stand in either order.

    Args:
        page, now: see `read_dates`.
    """
    likeliest = read_dates([text], page, now)
    match = _DIGITS.search(text)
    if match is None or not _is_in_doubt(match):
        return likeliest
    both = (read_date(text, now), read_date(_DIGITS.sub(_DAY_FIRST_ORDER, text), now))
    return likeliest + [one for one in both if one not in likeliest]


def _is_in_doubt(match: re.Match[str]) -> bool:
    return int(match[1]) <= _MONTHS and int(match[3]) <= _MONTHS and match[1] != match[3]


def _day_first(dates: Sequence[re.Match[str]], page: str, now: datetime) -> bool:
    others = [match for match, _ in zip(_DIGITS.finditer(page[:_MOST_CHARS]), range(_MOST), strict=False)]
    days = sum(int(match[1]) > _MONTHS >= int(match[3]) for match in others)
    months = sum(int(match[3]) > _MONTHS >= int(match[1]) for match in others)
    if days or months:
        return days > months
    month_first = [(int(match[4]), int(match[1]), int(match[3])) for match in dates]
    day_first = [(year, second, first) for year, first, second in month_first]
    latest = (now + _AHEAD).timetuple()[:3]
    ahead, behind = max(month_first) > latest, max(day_first) > latest
    if ahead != behind:
        return ahead
    if len(dates) >= _SEVERAL and (turns := _turns(month_first)) != (other := _turns(day_first)):
        return other < turns
    match = _LANGUAGE.search(page[:_HEAD_CHARS])
    language = match[1].lower() if match else ""
    return language not in _MONTH_FIRST and (language[:2] in _DAY_FIRST or language.startswith("en"))


def _turns(days: Sequence[tuple[int, int, int]]) -> int:
    """Return how many days go back, or forward, whichever is less; 0 if they are in order."""
    back = sum(one > following for one, following in pairwise(days))
    forward = sum(one < following for one, following in pairwise(days))
    return min(back, forward)
