"""Dates as pages write them: 2013年5月6日 12:30, 昨天 12:30, 3小时前, 周三, ISO 8601, May 6 2013, 14. März 2015, epoch.

Each form of a date is one pattern with one reader. `DATE` joins those that are a date wherever they stand in a text.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from unicodedata import normalize

from splitter.spans import CHINA

_MONTHS = (
    "january jan januar januari janvier enero gennaio janeiro января stycznia ocak",
    "february feb februar februari février fevrier febrero febbraio fevereiro февраля lutego şubat",
    "march mar märz maart mars marzo março марта marca mart",
    "april apr avril abril aprile апреля kwietnia nisan",
    "may mai mayo maggio maio mei мая maja mayıs",
    "june jun juni juin junio giugno junho июня czerwca haziran",
    "july jul juli juillet julio luglio julho июля lipca temmuz",
    "august aug août aout agosto augustus августа sierpnia ağustos",
    "september sept sep septembre septiembre settembre setembro сентября września eylül",
    "october oct oktober octobre octubre ottobre outubro октября października ekim",
    "november nov novembre noviembre novembro ноября listopada kasım",
    "december dec dezember décembre decembre diciembre dicembre dezembro декабря grudnia aralık",
)
_MONTH_OF = {name: month for month, names in enumerate(_MONTHS, 1) for name in names.split()}
_ZONES = {"Z": UTC, "GMT": UTC, "UTC": UTC}
_DAYS_BACK = {"今": 0, "昨": 1, "前": 2, "大": 3, "t": 0, "y": 1}
_SECONDS = {"秒": 1, "分": 60, "小": 3600, "钟": 3600, "天": 86400, "日": 86400, "周": 604800, "星": 604800}
_SECONDS |= {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NUMERALS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBERS = {"半": 0.5, "两": 2, "几": 3, "a": 1, "an": 1, "half an": 0.5, "half a": 0.5}
_NUMBERS |= {numeral: value for value, numeral in enumerate("一二三四五六七八九十", 1)}
_NUMBERS |= {numeral: value for value, numeral in enumerate(_NUMERALS, 1)}
_WEEKDAYS = {numeral: day for day, numeral in enumerate("一二三四五六日")} | {"天": 6}
_WEEKDAYS |= {name: day for day, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])}
_SIMPLE = str.maketrans("時鐘點個週剛間後發於號禮晝兩", "时钟点个周刚间后发于号礼昼两")
_AFTERNOON = frozenset({"下午", "晚上", "中午", "傍晚"})

# A clock behind a day; a weekday may stand between them. Blanks are never given back (*+): a pattern with several runs
# of them in a row would try every way to share them.
_CLOCK = (
    r"(?:T(?=\d)|[\s,(（·•@|–-]*+(?:(?:星期|周|礼拜)[一二三四五六日天][)）]?|(?:at|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}),?)?)\s*+"
    r"(?P<part>上午|下午|晚上|中午|凌晨|早上|傍晚)?\s*+(?<!\d)(?P<hour>\d{1,2})[:时時点點](?P<minute>\d{1,2})"
    r"(?:[:分](?P<second>\d{1,2})(?:\.\d{1,9})?)?秒?(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"(?:\s?(?P<zone>Z\b|(?:GMT|UTC)(?![+-]\d)\b|(?:GMT|UTC)?[+-]\d\d:?\d\d\b))?"
)
_MONTH = rf"(?P<m>{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})(?![^\W\d_])\.?"
_ORDINAL = r"(?:st|nd|rd|th)?"

# Most dates have this form and nothing around it: one match, no search.
_PLAIN = re.compile(
    r"(?:(?P<y>\d{4})[-/.年])?(?P<m>\d{1,2})[-/月](?P<d>\d{1,2})日?(?:\s(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?",
    re.ASCII,
)
_COMPACT = re.compile(
    r"(?P<y>(?:19|20)\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)(?:(?P<hour>[012]\d)(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?)?",
    re.ASCII,
)
# As C writes it, with a zone: Tue Jul 07 23:12:00 +0800 2020.
_ASCTIME = re.compile(rf"[A-Z][a-z]{{2}} {_MONTH} (\d\d?) (\d\d:\d\d:\d\d) ([+-]\d{{4}}) (\d{{4}})", re.I)
SHORT_AGO = r"\d{1,2}\s?(?:mo|hr|min|yr|m|h|d|w|y)"
"""A pattern of a time in a count and a letter, as some sites link to a post: 4y, 12d, 3mo."""

# How far a date that must be past may lie ahead: clocks differ.
_AHEAD = timedelta(hours=1)
# Numbers of seconds outside these years are no dates: order numbers, telephone numbers.
_FIRST_YEAR = 1995
_YEARS = range(1970, 2101)
_LONGEST = 100
"""Characters of a text that are searched for a date."""


def read_date(text: str, now: datetime) -> datetime | None:
    """Return the time that a date on a page means, in China unless it names a zone; None if it can't be read.

    A year outside 1970 to 2100 is no date either: sites write 0001-01-01 if they have none.

    Words around the date are passed over (发表于 2013-5-6). A date without time is its midnight; one without year, the
    latest that is not in the future.

    Args:
        now: aware; what relative dates and dates without year count from.
    """
    text = text[:_LONGEST].strip()
    found = _read(text, now) if text else None
    return found if found is not None and found.year in _YEARS else None


def _read(text: str, now: datetime) -> datetime | None:
    if text[4:5] == "-" and text.isascii():
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return moment if moment.tzinfo else moment.replace(tzinfo=CHINA)
    if now.tzinfo is not CHINA:
        now = now.astimezone(CHINA)
    try:
        if match := _PLAIN.fullmatch(text) or _COMPACT.fullmatch(text):
            return _day(match, now)
        if text[-4:].isdecimal() and (match := _ASCTIME.fullmatch(text)):
            month, day, clock, offset, year = match.groups()
            return datetime.fromisoformat(f"{year}-{_month(month):02}-{int(day):02}T{clock}{offset}")
        if not text.isascii():
            text = normalize("NFKC", text).translate(_SIMPLE)
        for pattern, reader in _READERS:
            if match := pattern.search(text):
                return reader(match, now)
    except (ValueError, OverflowError):  # 2013-02-30, 25:61
        pass
    return None


def _day(match: re.Match[str], now: datetime) -> datetime | None:
    """Read a match with the groups y, m and d; without a year, the latest such day."""
    found = match.groupdict()
    year, month, day = found.get("y"), _month(found["m"]), int(found["d"])
    if month > 12 and match.string[match.end("m")] in "/-" and match.start("m") < match.start("y"):
        month, day = day, month  # 16/5/2013
    if year:
        return _set_clock(datetime(_year(year, now), month, day, tzinfo=now.tzinfo), found)
    for past in range(now.year, now.year - 9, -1):  # 2月29日 may be eight years back
        if day <= monthrange(past, month)[1]:
            moment = _set_clock(datetime(past, month, day, tzinfo=now.tzinfo), found)
            if moment <= now + _AHEAD:
                return moment
    return None


def _year(text: str, now: datetime) -> int:
    if text[0] in "今去前":
        return now.year - "今去前".index(text[0])
    return int(text[-4:]) if text[-4:-2].isdecimal() else 2000 + int(text[-2:])


def _month(text: str) -> int:
    return int(text) if text.isdecimal() else _MONTH_OF[text.lower()]


def _day_word(match: re.Match[str], now: datetime) -> datetime:
    word, clock = match["word"].lower(), match.groupdict()
    if word == "昨晚" and clock["part"] is None:
        clock["part"] = "晚上"
    return _set_clock(now - timedelta(days=_DAYS_BACK[word[0]]), clock)


def _weekday(match: re.Match[str], now: datetime) -> datetime:
    day = now - timedelta(days=now.weekday() - _WEEKDAYS[match["weekday"].lower()])
    moment = _set_clock(day, match.groupdict())
    last = match.groupdict().get("last") or moment > now + _AHEAD
    return moment - timedelta(days=7) if last else moment


def _time(match: re.Match[str], now: datetime) -> datetime:
    moment = _set_clock(now, match.groupdict())
    return moment if moment <= now + _AHEAD else moment - timedelta(days=1)


def _ago(match: re.Match[str], now: datetime) -> datetime:
    number, unit = match["number"].lower(), match["unit"].lower()
    amount = _NUMBERS[number] if number in _NUMBERS else int(number)
    if "个半" in match.group():
        amount += 0.5
    if unit.startswith(("月", "mo", "mt")):
        return _months_back(now, amount)
    if unit[0] in "年y":
        return _months_back(now, 12 * amount)
    return now - timedelta(seconds=amount * _SECONDS[unit[0]])


def _months_back(now: datetime, months: float) -> datetime:
    """Return the same day some months ago, or the last of a shorter month; half a month is 15 days."""
    year, month = divmod(now.year * 12 + now.month - 1 - int(months), 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day) - timedelta(days=30 * (months % 1))


def _epoch(match: re.Match[str], now: datetime) -> datetime | None:
    number = match.group()
    moment = datetime.fromtimestamp(int(number) / (1000 if len(number) == 13 else 1), UTC)
    return moment.astimezone(now.tzinfo) if _FIRST_YEAR <= moment.year <= now.year + 1 else None


def _now(_match: re.Match[str], now: datetime) -> datetime:
    return now


def _set_clock(day: datetime, clock: dict[str, str | None]) -> datetime:
    hour, part, half, zone = map(clock.get, ("hour", "part", "half", "zone"))
    if hour is None:
        return day.replace(hour=0, minute=0, second=0, microsecond=0)
    hours, half = int(hour), (half or "").lower()
    if (part in _AFTERNOON or half == "p") and hours < 12 and not (part == "中午" and hours == 11):
        hours += 12
    elif hours == 12 and (part == "凌晨" or half == "a"):
        hours = 0
    minute, second = (int(clock.get(name) or 0) for name in ("minute", "second"))
    moment = day.replace(hour=hours, minute=minute, second=second, microsecond=0)
    return moment.replace(tzinfo=_zone(zone.upper())) if zone else moment


def _zone(text: str) -> tzinfo:
    if text in _ZONES:
        return _ZONES[text]
    text = text.removeprefix("GMT").removeprefix("UTC")
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


# A form is a date everywhere, only with a clock, or only if a date is expected.
_ALWAYS, _CLOCKED, _EXPECTED = 2, 1, 0


class _Form(NamedTuple):
    found: int
    first: str  # characters that it can begin with, for `DATE`
    reader: Callable[[re.Match[str], datetime], datetime | None]
    pattern: str  # of the day; a clock may follow


_DIGIT = r"\d"
_LETTER = "".join(sorted({name[0] for name in _MONTH_OF} | set("mtwfs")))
_EITHER = r"\d半几幾一二两兩三四五六七八九十刚剛今大昨前ahotfsenjmty"
# The least ambiguous first.
# fmt: off
_FORMS = (
    _Form(_ALWAYS, _DIGIT, _day, r"(?<!\d)(?P<y>(?:19|2\d)\d\d)\s?[-/.年]\s?(?P<m>\d{1,2})\s?[-/.月]\s?"
          r"(?P<d>\d{1,2})(?!\d)\s?[日号號]?"),
    _Form(_ALWAYS, _EITHER, _ago, r"(?P<number>[半几幾一二两兩三四五六七八九十]|(?<!\d)\d{1,5})\s*+多?\s*+"
          r"(?:[个個]半?)?多?\s*+(?P<unit>秒[钟鐘]?|分[钟鐘]?|小[时時]|[钟鐘][头頭]|天|日|[周週]|星期|月|年)\s*+[多半]?\s*+[之以]?前"),
    _Form(_ALWAYS, _EITHER, _now, r"[刚剛][刚剛才]|just now|(?:moments?|few seconds) ago"),
    _Form(_ALWAYS, _EITHER, _ago, rf"(?<![^\W_])(?P<number>\d{{1,5}}|half an?|an?|{'|'.join(_NUMERALS)})\s?"
          r"(?P<unit>s|m|h|d|w|y|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|wks?|weeks?|mos?|mths?|months?"
          r"|yrs?|years?)\.?\sago\b"),
    _Form(_EXPECTED, _DIGIT, _ago, r"^(?P<number>\d{1,2})\s?(?P<unit>mo|hr|min|yr|m|h|d|w|y)$"),
    _Form(_ALWAYS, _DIGIT, _day, rf"(?<![\d:])(?P<d>\d{{1,2}}){_ORDINAL}\.?[\s-](?:of\s|de\s)?{_MONTH},?"
          rf"(?P<y>(?:[\s-](?:de\s)?)\d{{4}}(?!\d)|-\d\d(?![\d:])|\s?['’]\d\d)"),
    _Form(_ALWAYS, _LETTER, _day, rf"(?<![^\W\d_])(?=[^\W\d_]{{3,10}}\.?\s\d)(?!(?-i:may)\s\d+\s[a-z]){_MONTH}\s"
          rf"(?P<d>\d{{1,2}})(?!\d|:){_ORDINAL}(?P<y>,?\s\d{{4}}(?!\d)|,?\s?['’]\d\d)?,?"),
    _Form(_ALWAYS, _DIGIT, _day, rf"(?<![\d:])(?P<d>\d{{1,2}}){_ORDINAL}\.?[\s-](?:of\s|de\s)?"
          rf"(?!(?-i:may)\s[a-z]){_MONTH}"),
    _Form(_CLOCKED, _EITHER, _day_word, r"(?P<word>今天|今日|(?<![a-z])today(?![a-z]))"),
    _Form(_ALWAYS, _EITHER, _day_word, r"(?P<word>大前天|昨天|昨日|前天|前日|昨晚|(?<![a-z])yesterday(?![a-z]))"),
    _Form(_EXPECTED, _DIGIT, _epoch, r"^\d{10}(?:\d{3})?$"),
    _Form(_ALWAYS, _DIGIT, _day, r"(?<![\d-])(?P<m>\d{1,2})[/-](?P<d>\d{1,2})[/-](?P<y>\d{4})(?!\d)"),
    _Form(_ALWAYS, _DIGIT, _day, r"(?<![\d./])(?P<m>0?[1-9]|1[0-2])[/.](?P<d>1[3-9]|2\d|3[01])[/.]"
          r"(?P<y>\d\d)(?![\d./])"),
    _Form(_ALWAYS, _DIGIT, _day, r"(?<![\d.])(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})(?!\d)"),
    _Form(_CLOCKED, _DIGIT, _day, r"(?<![\d./-])(?P<y>\d\d)[-/年](?P<m>\d{1,2})[-/月](?P<d>\d{1,2})(?![\d/-])日?"),
    _Form(_ALWAYS, _DIGIT, _day, r"(?P<y>今年|去年|前年)?(?<![\d.])(?P<m>\d{1,2})\s?月\s?(?P<d>\d{1,2})"
          r"(?!\d)\s?[日号號]"),
    _Form(_CLOCKED, _DIGIT, _day, r"(?P<y>今年|去年|前年)?(?<!\d)(?P<m>\d{1,2})\s?[-/月]\s?(?P<d>\d{1,2})"
          r"(?!\d)\s?[日号號]?"),
    _Form(_EXPECTED, _EITHER, _weekday, r"(?P<last>上)?个?(?:星期|周|礼拜)(?P<weekday>[一二三四五六日天])"),
    _Form(_CLOCKED, _LETTER, _weekday, r"(?<![a-z])(?P<weekday>mon|tue|wed|thu|fri|sat|sun)"
          r"(?:s|rs?|(?:s|rs|nes|ur)?day)?(?![a-z])"),
)
# fmt: on
_READERS = [(re.compile(f"{form.pattern}(?:{_CLOCK})?", re.I), form.reader) for form in _FORMS]
_READERS.append((re.compile(f"^{_CLOCK}$", re.I), _time))


def _finder() -> re.Pattern[str]:
    by_first: dict[str, list[str]] = defaultdict(list)
    for form in _FORMS:
        if form.found:
            by_first[form.first].append(f"{form.pattern}(?:{_CLOCK}){'?' * (form.found == _ALWAYS)}")
    found = "|".join(f"(?=[{first}])(?:{'|'.join(patterns)})" for first, patterns in by_first.items())
    # Most characters begin no date, nor does a Latin letter inside a word.
    begins = f"(?=[{''.join(by_first)}])(?<![a-z](?=[a-z]))"
    return re.compile(begins + re.sub(r"\?P<\w+>", "", f"(?:{found})"), re.I)


DATE = _finder()
"""A pattern of dates that say a day by themselves."""
