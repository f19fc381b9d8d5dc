"""Times of a day as pages write them beside a date: 12:30, 下午3点, 3:05 p.m. ET, 晚8:00, 15.05 GMT, 24:00."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo

NUMERALS = "〇零一二三四五六七八九十百两兩半几幾廿"
"""Chinese characters that numbers are written with."""
UNTOUCHED = rf"(?:(?<![\d{NUMERALS}])|(?<=[周週期拜][一二三四五六日]))"
"""A pattern of the place before a number that no digit or numeral makes longer; one of a weekday does not."""

_ZONES = (
    "GMT+0 UTC+0 WET+0 BST+1 WEST+1 CET+1 MEZ+1 CEST+2 MESZ+2 EET+2 SAST+2 EEST+3 MSK+3 IST+5.5 ICT+7 WIB+7 CST+8"
    " HKT+8 SGT+8 MYT+8 PHT+8 AWST+8 JST+9 KST+9 ACST+9.5 AEST+10 AEDT+11 NZST+12 NZDT+13 ADT-3 AST-4 EDT-4 EST-5"
    " CDT-5 MDT-6 MST-7 PDT-7 PST-8 AKDT-8 AKST-9 HST-10"
)
_HOURS = {name: float(hours) for name, hours in re.findall(r"([A-Z]+)(\S+)", _ZONES)}
# Zones of the United States whose clocks are set forward in summer, by their hours in winter.
_SET_FORWARD = {"ET": -5, "CT": -6, "MT": -7, "PT": -8}
_NAMED = "|".join(sorted([*_HOURS, *_SET_FORWARD], key=len, reverse=True))
_OFFSET = r"(?:\+(?:0\d|1[0-4])|-(?:0\d|1[0-2])):?(?:00|30|45)(?!\d)"
ZONE = (
    rf"(?P<zone>Z\b|(?:GMT|UTC)\s?(?:{_OFFSET}|[+-]\d{{1,2}}(?![\d:]))|{_OFFSET}|(?-i:{_NAMED})\b(?![+-]\d))"
)
"""A pattern of a zone behind a clock."""

PART = (
    r"(?P<part>上午|下午|晚上|中午|凌晨|早上|傍晚|清晨|早晨|午后|午後|深夜|半夜|夜里|夜裡|夜间|夜間|晚间|晚間|午间|午間|午夜|夜晚|[早晚]"
    r"|[ap]m(?=\s?\d))"
)
"""A pattern of a part of a day before a clock."""
CLOCK = (
    rf"(?:{PART}\s?)?{UNTOUCHED}(?:(?<!\d[:.])|(?<=/\d{{4}}:))(?P<hour>\d{{1,2}})"
    r"(?:\s?[:：时時点點h]\s?(?P<minute>\d\d|\d(?!\d))(?:[:：分]\s?(?P<second>\d\d|\d(?!\d))(?:[.,]\d{1,9})?)?[分秒]?"
    rf"|\.(?P<dotted>\d\d)(?=\s?(?:[ap]\.?m\b|uhr\b|(?-i:{_NAMED})\b))|[时時点點](?P<quarter>半|一刻|三刻)"
    r"|[时時](?![间間尚])|[点點](?![建意要内内心评評赞贊原])|(?=\s?[ap]\.?m\b|\suhr\b))"
    rf"(?:\s?uhr\b)?(?:\s?(?P<half>[ap])\.?m\b\.?)?(?:\s?\(?{ZONE}\)?)?"
)
"""A pattern of a time of a day."""

_LATE = frozenset(("下午", "晚上", "傍晚", "午后", "午後", "晚间", "晚間", "晚", "夜晚", "pm", "p"))
_NIGHT = frozenset(("深夜", "半夜", "夜里", "夜裡", "夜间", "夜間", "午夜"))
_EVENING = frozenset(("晚上", "晚间", "晚間", "晚", "夜晚"))
_NOON = frozenset(("中午", "午间", "午間"))
_FIRST = frozenset(("凌晨", "am", "a"))
_QUARTERS = {"半": 30, "一刻": 15, "三刻": 45}
_NOON_HOUR, _DAY_HOURS, _NIGHT_ENDS, _NOON_BEGINS = 12, 24, 6, 10


def set_clock(day: datetime, clock: Mapping[str, str | None]) -> datetime:
    """Return the moment on a day that the groups of `CLOCK` say; the day's midnight if they say no hour.

    24:00 is the midnight behind the day. A zone replaces the one of the day.

    Raises:
        ValueError: there is no such time.
    """
    hour = clock.get("hour")
    if hour is None:
        return day.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = int(hour)
    if part := clock.get("part") or clock.get("half"):
        hours = _hours(hours, part.lower())
    minute = int(clock.get("minute") or clock.get("dotted") or _QUARTERS.get(clock.get("quarter") or "", 0))
    if hours == _DAY_HOURS:
        day += timedelta(days=1)
        hours = 0
    moment = day.replace(hour=hours, minute=minute, second=int(clock.get("second") or 0), microsecond=0)
    zone = clock.get("zone")
    return moment.replace(tzinfo=read_zone(zone, moment)) if zone else moment


def _hours(hour: int, part: str) -> int:
    if part in _LATE and hour < _NOON_HOUR:
        return hour + _NOON_HOUR
    if part in _NOON and hour < _NOON_BEGINS:
        return hour + _NOON_HOUR
    if part in _NIGHT and _NIGHT_ENDS <= hour <= _NOON_HOUR:
        return hour + _NOON_HOUR
    if hour == _NOON_HOUR and part in _EVENING:
        return _DAY_HOURS
    if hour == _NOON_HOUR and part in _FIRST:
        return 0
    return hour


def read_zone(text: str, moment: datetime) -> tzinfo:
    """Return the zone that a match of `ZONE` names; CST is China's.

    Args:
        moment: decides whether a zone such as ET has its summer time.
    """
    name = text.upper().replace(" ", "")
    if name in _SET_FORWARD:
        return timezone(timedelta(hours=_SET_FORWARD[name] + _is_summer(moment)))
    if name in _HOURS:
        return timezone(timedelta(hours=_HOURS[name])) if _HOURS[name] else UTC
    digits = name.removeprefix("GMT").removeprefix("UTC").replace(":", "")
    if digits == "Z":
        return UTC
    sign = -1 if digits[0] == "-" else 1
    minutes = int(digits[3:] or 0)
    return timezone(sign * timedelta(hours=int(digits[1:3]), minutes=minutes))


def _is_summer(moment: datetime) -> bool:
    """Return True from the second Sunday of March to the first one of November, at 2 o'clock each."""
    year = moment.year
    begins = _first_sunday(year, 3) + timedelta(days=7)
    return begins <= moment.replace(tzinfo=None) < _first_sunday(year, 11)


def _first_sunday(year: int, month: int) -> datetime:
    first = datetime(year, month, 1, 2)  # noqa: DTZ001  (local time of the zone)
    return first + timedelta(days=6 - first.weekday())
