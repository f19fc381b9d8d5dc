"""Dates as Chinese sites write them: 2013年5月6日 12:30, 5月6日, 昨天 12:30, 3小时前, ISO 8601, epoch."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from unicodedata import normalize

CHINA = timezone(timedelta(hours=8), "UTC+8")

_EPOCH = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?\s?(?:Z|[+-]\d\d:?\d\d)", re.ASCII)
_CLOCK = r"(?:[T\s]*(上午|下午|晚上|中午|凌晨|早上)?\s*(\d{1,2})[:时点](\d{1,2})(?:[:分](\d{1,2}))?)?"
_FULL = re.compile(
    rf"(?<!\d)(\d{{4}})\s?[-/.年]\s?(\d{{1,2}})\s?[-/.月]\s?(\d{{1,2}})(?!\d)\s?日?{_CLOCK}", re.ASCII
)
_NO_YEAR = re.compile(rf"(?<!\d)(\d{{1,2}})\s?[-/月]\s?(\d{{1,2}})(?!\d)\s?日?{_CLOCK}", re.ASCII)
_DAY_WORD = re.compile(rf"(今天|昨天|昨日|前天|前日|今日){_CLOCK}", re.ASCII)
_AGO = re.compile(r"(半|\d{1,5})\s*个?\s*(秒钟?|分钟?|小时|天|周|星期)\s*(?:之|以)?前", re.ASCII)
_JUST_NOW = ("刚刚", "刚才")

_DAYS_BACK = {"今": 0, "昨": 1, "前": 2}
_SECONDS = {"秒": 1, "分": 60, "小": 3600, "天": 86400, "周": 604800, "星": 604800}
_AFTERNOON = frozenset({"下午", "晚上", "中午"})
# A date without year is of this year unless that lies further ahead than clocks and zones may differ.
_AHEAD = timedelta(days=1)


def read_date(text: str, now: datetime, zone: tzinfo = CHINA) -> datetime | None:
    """The moment a site means, in ``zone`` unless it says otherwise; None where it can't be read.

    Words around the date are passed over (发表于 2013-5-6). A date without time is its midnight.

    Args:
        now: aware; what relative dates and dates without year count from.
        zone: the site's own.
    """
    text = normalize("NFKC", text[:200]).strip()
    if not text:
        return None
    for reader in _READERS:
        try:
            moment = reader(text, now.astimezone(zone))
        except (ValueError, OverflowError):  # 2013-02-30, 25:61
            return None
        if moment is not None:
            return moment
    return None


def _epoch(text: str, now: datetime) -> datetime | None:
    if not _EPOCH.fullmatch(text):
        return None
    seconds = int(text) / (1000 if len(text) == 13 else 1)
    return datetime.fromtimestamp(seconds, UTC).astimezone(now.tzinfo)


def _iso(text: str, _now: datetime) -> datetime | None:
    match = _ISO.search(text)
    return datetime.fromisoformat(match.group().replace(" ", "T", 1).replace(" ", "")) if match else None


def _full(text: str, now: datetime) -> datetime | None:
    match = _FULL.search(text)
    if match is None:
        return None
    day = now.replace(year=int(match[1]), month=int(match[2]), day=int(match[3]))
    return _at_clock(day, match.groups()[3:])


def _no_year(text: str, now: datetime) -> datetime | None:
    match = _NO_YEAR.search(text)
    if match is None:
        return None
    month, day = int(match[1]), int(match[2])
    for year in range(now.year, now.year - 5, -1):  # 2月29日 may be some years back
        try:
            moment = _at_clock(now.replace(year=year, month=month, day=day), match.groups()[2:])
        except ValueError:
            continue
        if moment <= now + _AHEAD:
            return moment
    return None


def _day_word(text: str, now: datetime) -> datetime | None:
    match = _DAY_WORD.search(text)
    return _at_clock(now - timedelta(days=_DAYS_BACK[match[1][0]]), match.groups()[1:]) if match else None


def _ago(text: str, now: datetime) -> datetime | None:
    if text.startswith(_JUST_NOW):
        return now
    match = _AGO.search(text)
    if match is None:
        return None
    amount = 0.5 if match[1] == "半" else int(match[1])
    return now - timedelta(seconds=amount * _SECONDS[match[2][0]])


def _at_clock(day: datetime, clock: tuple[str | None, ...]) -> datetime:
    part, hour, minute, second = clock
    hours = int(hour or 0)
    if part in _AFTERNOON and hours < 12 and not (part == "中午" and hours == 11):
        hours += 12
    return day.replace(hour=hours, minute=int(minute or 0), second=int(second or 0), microsecond=0)


# In this order: what says most about itself first.
_READERS: tuple[Callable[[str, datetime], datetime | None], ...] = (
    _epoch,
    _iso,
    _full,
    _day_word,
    _ago,
    _no_year,
)
