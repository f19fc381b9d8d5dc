"""Dates as sites write them: 2013年5月6日 12:30, 5月6日, 昨天 12:30, 3小时前, 周三, ISO 8601, May 6 2013, epoch."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from unicodedata import normalize

from splitter.spans import CHINA

from tasks.reading.month_names import MONTH_OF, NAMED_DAY

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {"Z": UTC, "z": UTC, "GMT": UTC, "UTC": UTC}
_DAYS_BACK = {"今": 0, "昨": 1, "前": 2, "大": 3, "t": 0, "y": 1}
_SECONDS = {"秒": 1, "分": 60, "小": 3600, "钟": 3600, "天": 86400, "日": 86400, "周": 604800, "星": 604800}
_SECONDS |= {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NUMBERS = {"半": 0.5, "两": 2, "a": 1, "an": 1, "half an": 0.5, "half a": 0.5}
_NUMBERS |= {numeral: value for value, numeral in enumerate("一二三四五六七八九十", 1)}
_WEEKDAYS = {numeral: day for day, numeral in enumerate("一二三四五六日")} | {"天": 6}
_SIMPLE = str.maketrans("時鐘點個週剛間後發於號禮晝兩", "时钟点个周刚间后发于号礼昼两")

# Clock: part of day, hour, minute, second, AM or PM, zone. A weekday may stand before it. Blanks are never given back
# (*+): what has several runs of them beside each other would try every way to share them.
_CLOCK = (
    r"(?:(?:T(?=\d)|[\s,(（]*+(?:(?:星期|周|礼拜)[一二三四五六日天][)）]?|(?:at|[A-Z][a-z]{2,8},?))?)\s*+"
    r"(上午|下午|晚上|中午|凌晨|早上|傍晚)?\s*+(?<!\d)(\d{1,2})[:时点](\d{1,2})(?:[:分](\d{1,2})(?:\.\d{1,9})?)?秒?"
    r"(?:\s?([AaPp])\.?[Mm]\b)?(?:\s?(Z\b|(?:GMT|UTC)(?![+-]\d)\b|(?:GMT|UTC)?[+-]\d\d:?\d\d\b))?)?"
)
_MONTH = r"(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_NUMBER = r"(?P<number>半|[一二两三四五六七八九十]|\d{1,5})"

# Most dates have this form and nothing around it: one match, no search.
_PLAIN = re.compile(
    r"(?:(\d{4})[-/.年])?(\d{1,2})[-/月](\d{1,2})日?(?:\s(\d{1,2}):(\d\d)(?::(\d\d))?)?", re.ASCII
)
_EPOCH = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_COMPACT = re.compile(r"((?:19|20)\d\d)([01]\d)([0-3]\d)(?:([012]\d)([0-5]\d)([0-5]\d)?)?", re.ASCII)
# As C and its heirs write it, with a zone: Tue Jul 07 23:12:00 +0800 2020.
_ASCTIME = re.compile(
    rf"[A-Z][a-z]{{2}} {_MONTH} (\d\d?) (\d\d:\d\d:\d\d) ([+-]\d{{4}}) (\d{{4}})", re.ASCII | re.I
)
_FULL = re.compile(
    rf"(?<!\d)(?P<y>\d{{4}})\s?[-/.年]\s?(?P<m>\d{{1,2}})\s?[-/.月]\s?(?P<d>\d{{1,2}})(?!\d)\s?[日号]?{_CLOCK}",
    re.ASCII,
)
_SHORT_YEAR = re.compile(
    rf"(?<![\d./-])(?P<y>\d\d)[-/年](?P<m>\d{{1,2}})[-/月](?P<d>\d{{1,2}})(?![\d/-])日?{_CLOCK}", re.ASCII
)
_AMERICAN = re.compile(
    rf"(?<![\d-])(?P<m>\d{{1,2}})[/-](?P<d>\d{{1,2}})[/-](?P<y>\d{{4}})(?!\d){_CLOCK}", re.ASCII
)
_DOTTED = re.compile(
    rf"(?<![\d.])(?P<d>\d{{1,2}})\.\s?(?P<m>\d{{1,2}})\.\s?(?P<y>\d{{4}})(?!\d){_CLOCK}", re.ASCII
)
_NO_YEAR = re.compile(
    rf"(?P<y>今年|去年|前年)?(?<!\d)(?P<m>\d{{1,2}})\s?(?:-|/|月)\s?(?P<d>\d{{1,2}})(?!\d)\s?[日号]?{_CLOCK}",
    re.ASCII,
)
_DAY_WORD = re.compile(
    rf"(今天|昨天|昨日|大前天|前天|前日|今日|昨晚|\b(?:[Tt]oday|[Yy]esterday)\b){_CLOCK}", re.ASCII
)
_WEEKDAY = re.compile(rf"(上)?个?(?:星期|周|礼拜)([一二三四五六日天]){_CLOCK}", re.ASCII)
_AGO = re.compile(
    rf"{_NUMBER}\s*+多?\s*+(?:个半|个)?多?\s*+(?P<unit>秒钟?|分钟?|小时|钟头|天|日|周|星期|月|年)\s*+(?:多|半)?\s*+(?:之|以)?前",
    re.ASCII,
)
_AGO_ENGLISH = re.compile(
    r"\b(?P<number>\d{1,5}|half an?|an?)\s?"
    r"(?P<unit>s|m|h|d|w|y|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?)\sago\b",
    re.ASCII | re.I,
)
_DAY_MONTH = re.compile(
    rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[\s-](?:of\s)?{_MONTH}\.?,?[\s-](?P<y>\d{{4}})\b{_CLOCK}",
    re.ASCII | re.I,
)
_NAMED_DAY = re.compile(rf"{NAMED_DAY}\.?,?\s(?:de\s)?(?P<y>\d{{4}})\b{_CLOCK}", re.I)
_MONTH_DAY = re.compile(
    rf"\b{_MONTH}\.?\s(?P<d>\d{{1,2}})(?!\d|:)(?:st|nd|rd|th)?(?:,?\s(?P<y>\d{{4}})\b)?,?{_CLOCK}",
    re.ASCII | re.I,
)
# As sites that count in one letter write it, alone: 4y, 12d, 3mo.
_SHORT_AGO = re.compile(r"^(?P<number>\d{1,2})\s?(?P<unit>m|h|d|w|y|mo|hr|min|yr)$", re.ASCII)
_TIME = re.compile(_CLOCK.removesuffix("?"), re.ASCII)
_JUST_NOW = re.compile(r"刚刚|刚才|几秒前|just now|moments? ago", re.I)

_AFTERNOON = frozenset({"下午", "晚上", "中午", "傍晚"})
# How far a date that must be past may lie ahead: clocks differ.
_AHEAD = timedelta(hours=1)
# Numbers of seconds outside these years are no dates: order numbers, telephone numbers.
_FIRST_YEAR = 1995


_LONGEST = 100
"""Characters of a text that a date is looked for in."""


def read_date(text: str, now: datetime) -> datetime | None:
    """The time that a date on a page means, in China unless it names a zone; None where it can't be read.

    Words around the date are passed over (发表于 2013-5-6). A date without time is its midnight; one without year, the
    latest that is not in the future.

    Args:
        now: aware; what relative dates and dates without year count from.
    """
    text = text[:_LONGEST].strip()
    if not text:
        return None
    if text[4:5] == "-" and text.isascii():
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return moment if moment.tzinfo else moment.replace(tzinfo=CHINA)
    if text[-4:].isdecimal() and (match := _ASCTIME.fullmatch(text)):
        return _asctime(match)
    if now.tzinfo is not CHINA:
        now = now.astimezone(CHINA)
    readers = _ENGLISH
    if match := _PLAIN.fullmatch(text):
        readers = (partial(_plain, match.groups()),)
    elif not text.isascii():
        text, readers = normalize("NFKC", text).translate(_SIMPLE), _CHINESE
    for reader in readers:
        try:
            found = reader(text, now)
        except (ValueError, OverflowError):  # 2013-02-30, 25:61
            return None
        if found is not None:
            return found
    return None


def _asctime(match: re.Match[str]) -> datetime | None:
    month, day, clock, offset, year = match.groups()
    try:
        return datetime.fromisoformat(f"{year}-{_month(month):02}-{int(day):02}T{clock}{offset}")
    except ValueError:  # the 31st of February
        return None


def _plain(parts: tuple[str | None, ...], _text: str, now: datetime) -> datetime | None:
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    if parts[0]:
        return datetime(year, month, day, hour, minute, second, tzinfo=now.tzinfo)
    return _latest(month, day, (None, *parts[3:], None, None), now)


def _dated(pattern: re.Pattern[str], text: str, now: datetime) -> datetime | None:
    """A date by a pattern with the groups y, m and d; its other groups, behind them, are the clock."""
    match = pattern.search(text)
    if match is None:
        return None
    month, day, clock = _month(match["m"]), int(match["d"]), match.groups()[3:]
    if match["y"] is None:
        return _latest(month, day, clock, now)
    if pattern is _AMERICAN and month > 12:  # 16/5/2013
        month, day = day, month
    return _moment(_year(match["y"], now), month, day, clock, now)


def _year(text: str, now: datetime) -> int:
    if not text.isdecimal():
        return now.year - "今去前".index(text[0])
    return int(text) if len(text) > 2 else 2000 + int(text)


def _month(text: str) -> int:
    if text.isdecimal():
        return int(text)
    name = text.lower()
    return MONTH_OF[name] if name in MONTH_OF else _MONTHS.index(name) + 1


def _latest(month: int, day: int, clock: tuple[str | None, ...], now: datetime) -> datetime | None:
    for year in range(now.year, now.year - 9, -1):  # 2月29日 may be eight years back
        try:
            moment = _moment(year, month, day, clock, now)
        except ValueError:
            continue
        if moment <= now + _AHEAD:
            return moment
    return None


def _day_word(text: str, now: datetime) -> datetime | None:
    match = _DAY_WORD.search(text)
    if match is None:
        return None
    clock = match.groups()[1:]
    if match[1] == "昨晚" and clock[0] is None:
        clock = ("晚上", *clock[1:])
    return _at_clock(now - timedelta(days=_DAYS_BACK[match[1][0].lower()]), clock)


def _weekday(text: str, now: datetime) -> datetime | None:
    match = _WEEKDAY.search(text)
    if match is None:
        return None
    day = now - timedelta(days=now.weekday() - _WEEKDAYS[match[2]] + (7 if match[1] else 0))
    moment = _at_clock(day, match.groups()[2:])
    return moment if moment <= now + _AHEAD else moment - timedelta(days=7)


def _time(text: str, now: datetime) -> datetime | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    moment = _at_clock(now, match.groups())
    return moment if moment <= now + _AHEAD else moment - timedelta(days=1)


def _ago(pattern: re.Pattern[str], text: str, now: datetime) -> datetime | None:
    match = pattern.search(text)
    if match is None:
        return now if _JUST_NOW.search(text) else None
    amount, unit = _amount(match["number"].lower()), match["unit"].lower()
    if "个半" in match.group():
        amount += 0.5
    if unit.startswith(("月", "mo")):
        return _months_back(now, amount)
    if unit[0] in "年y":
        return _months_back(now, 12 * amount)
    return now - timedelta(seconds=amount * _SECONDS[unit[0]])


def _amount(number: str) -> float:
    return _NUMBERS[number] if number in _NUMBERS else int(number)


def _months_back(now: datetime, months: float) -> datetime:
    """The same day so many months ago, or the last of a shorter month; half a month is 15 days."""
    year, month = divmod(now.year * 12 + now.month - 1 - int(months), 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day) - timedelta(days=30 * (months % 1))


def _number(text: str, now: datetime) -> datetime | None:
    """Digits alone: 20130506, 20130506142000, seconds or milliseconds since 1970, where they make a plausible date."""
    if not text.isdigit():
        return None
    if match := _COMPACT.fullmatch(text):
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=now.tzinfo)
    if not _EPOCH.fullmatch(text):
        return None
    moment = datetime.fromtimestamp(int(text) / (1000 if len(text) == 13 else 1), UTC)
    return moment.astimezone(now.tzinfo) if _FIRST_YEAR <= moment.year <= now.year + 1 else None


def _moment(year: int, month: int, day: int, clock: tuple[str | None, ...], now: datetime) -> datetime:
    return _at_clock(datetime(year, month, day, tzinfo=now.tzinfo), clock)


def _at_clock(day: datetime, clock: tuple[str | None, ...]) -> datetime:
    part, hour, minute, second, half, zone = clock
    if hour is None:
        return day.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = int(hour)
    pm = part in _AFTERNOON or (half or "") in ("p", "P")
    if pm and hours < 12 and not (part == "中午" and hours == 11):
        hours += 12
    elif hours == 12 and (part == "凌晨" or (half or "") in ("a", "A")):
        hours = 0
    moment = day.replace(hour=hours, minute=int(minute or 0), second=int(second or 0), microsecond=0)
    return moment.replace(tzinfo=_zone(zone)) if zone else moment


def _zone(text: str) -> tzinfo:
    if text in _ZONES:
        return _ZONES[text]
    text = text.removeprefix("GMT").removeprefix("UTC")
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


# Least ambiguous first. Text outside ASCII may hold either language's forms.
_Reader = Callable[[str, datetime], datetime | None]
_full, _short_year, _american, _dotted, _no_year, _day_month, _named_day, _month_day = (
    partial(_dated, pattern)
    for pattern in (_FULL, _SHORT_YEAR, _AMERICAN, _DOTTED, _NO_YEAR, _DAY_MONTH, _NAMED_DAY, _MONTH_DAY)
)
_ago_chinese, _ago_english = partial(_ago, _AGO), partial(_ago, _AGO_ENGLISH)
_ago_short = partial(_ago, _SHORT_AGO)
_NUMERIC: tuple[_Reader, ...] = (_number, _american, _dotted, _short_year, _no_year, _time)
_ENGLISH: tuple[_Reader, ...] = (
    _full,
    _ago_english,
    _ago_short,
    _day_month,
    _named_day,
    _month_day,
    _day_word,
    *_NUMERIC,
)
_CHINESE: tuple[_Reader, ...] = (
    _full,
    _ago_chinese,
    _day_word,
    _short_year,
    _no_year,
    _weekday,
    *_ENGLISH[1:],
)
