"""Dates as pages write them: 2013年5月6日 12:30, 昨天 12:30, 1天2小时前, 周三, ISO 8601, May 6 2013, 14. März 2015.

Each form of a date is one pattern with one reader. `DATE` joins those that are a date wherever they stand in a text.
A number is never read inside a longer one, and no part of a date is dropped: what can't be read whole is no date.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple, cast
from unicodedata import normalize

from tasks.reading.clocks import CLOCK, NUMERALS, PART, UNTOUCHED, ZONE, set_clock

_MONTHS = (
    "一月 january jan januar januari janvier enero gennaio janeiro января stycznia ocak",
    "二月 february feb februar februari février fevrier febrero febbraio fevereiro февраля lutego şubat",
    "三月 march mar märz maart mars marzo março марта marca mart",
    "四月 april apr avril abril aprile апреля kwietnia nisan",
    "五月 may mai mayo maggio maio mei мая maja mayıs",
    "六月 june jun juni juin junio giugno junho июня czerwca haziran",
    "七月 july jul juli juillet julio luglio julho июля lipca temmuz",
    "八月 august aug août aout agosto augustus августа sierpnia ağustos",
    "九月 september sept sep septembre septiembre settembre setembro сентября września eylül",
    "十月 october oct oktober octobre octubre ottobre outubro октября października ekim",
    "十一月 november nov novembre noviembre novembro ноября listopada kasım",
    "十二月 december dec dezember décembre decembre diciembre dicembre dezembro декабря grudnia aralık",
)
_MONTH_OF = {name: month for month, names in enumerate(_MONTHS, 1) for name in names.split()}
_DAYS_BACK = {"今": 0, "昨": 1, "前": 2, "大": 3, "t": 0, "y": 1}
_SECONDS = {"秒": 1, "分": 60, "小": 3600, "钟": 3600, "天": 86400, "日": 86400, "周": 604800, "星": 604800}
_SECONDS |= {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DAY_S = 86400
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_UNITS = tuple(f"one two three four five six seven eight nine {_TEENS}".split())
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {"半": 0.5, "两": 2, "a": 1, "an": 1, "half an": 0.5, "half a": 0.5}
_NUMBERS |= {numeral: value for value, numeral in enumerate(_UNITS, 1)}
_NUMBERS |= {numeral: 10 * value for value, numeral in enumerate(_TENS, 2)}
_HAN_DIGITS = {numeral: value for value, numeral in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
    "几": 3,
}
_WEEKDAYS = {numeral: day for day, numeral in enumerate("一二三四五六日")} | {"天": 6}
_WEEKDAYS |= {name: day for day, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])}
_SIMPLE = str.maketrans("時鐘點個週剛間後發於號禮晝兩幾裡國", "时钟点个周刚间后发于号礼昼两几里国")

# A clock behind a day; a weekday may stand between them. Blanks are never given back (*+): a pattern with several runs
# of them in a row would try every way to share them.
_WEEKDAY = (
    r"(?:(?:星期|[周週]|[礼禮]拜)[一二三四五六日天][)）]?|[一二三四五六日月火水木金土][)）]"
    r"|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}[)）]?),?"
)
_LINK = r"(?:(?:at|um|à|a\slas|às|kl\.?|в|om|alle|on|the|le|am|den|北京时间|北京時間)(?![^\W\d_]))"
_BLANKS = r"[\s,(（·•|@–-]*+"
_BEHIND = rf"(?:[T:](?=\d)|{_BLANKS}(?:{_WEEKDAY}{_BLANKS})?(?:{_LINK}\s*+)?){CLOCK}"
_LATE_YEAR = r"(?:\s(?P<late>(?:19|2\d)\d\d)(?![\d年:/.-]))?"
_TAIL = re.compile(f"(?:{_BEHIND})?{_LATE_YEAR}", re.I)
_BEFORE = re.compile(rf"{CLOCK}{_BLANKS}(?:{_WEEKDAY}{_BLANKS})?(?:{_LINK}\s*+)?$", re.I)
_ZONE_BEHIND = re.compile(rf"\s?\(?{ZONE}", re.I)
_MONTH = rf"(?P<m>{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})(?![^\W\d_])\.?"
_ORDINAL = r"(?:st|nd|rd|th)?"
# What shows that a day is not read whole: a clock that can't be read, or for a weekday any number or month.
_CLOCK_LEFT = re.compile(
    rf"[\s,(（·•|@–-]{{0,3}}(?:at\s)?(?:{PART}\s?)?[{NUMERALS}]{{0,3}}\d+(?:[:：]\d|[点时]|\s?[ap]\.?m\b)",
    re.I,
)
_CLOCK_FAR = re.compile(
    rf"\d:\d\d?(?:\s?[ap]\.?m\.?)?(?:\s[A-Z]{{2,4}})?{_BLANKS}(?:{_WEEKDAY}{_BLANKS})?$", re.I
)
_ANY_DIGIT = re.compile(r"\d")
_NUMBER_FAR = re.compile(r"\d[日号]?[\s,.(（-]{0,3}$")
_NUMBER_LEFT = re.compile(rf"[\s,.(（-]{{0,3}}(?:{_MONTH}|[{NUMERALS}]{{0,3}}\d)", re.I)

# Most dates have this form and nothing around it: one match, no search.
_PLAIN = re.compile(
    r"(?:(?P<y>\d{4})[-/.年])?(?P<m>\d{1,2})[-/月](?P<d>\d{1,2})日?(?:\s(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?)?",
    re.ASCII,
)
_COMPACT = re.compile(
    r"(?P<y>(?:19|20)\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)(?:(?P<hour>[012]\d)(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?)?",
    re.ASCII,
)
SHORT_AGO = r"\d{1,2}\s?(?:mo|hr|min|yr|m|h|d|w|y)"
"""A pattern of a time in a count and a letter, as some sites link to a post: 4y, 12d, 3mo."""

# How far a date that must be past may lie ahead: clocks differ.
_AHEAD = timedelta(hours=1)
# Numbers of seconds outside these years are no dates: order numbers, telephone numbers.
_FIRST_YEAR = 1995
_YEARS = range(1970, 2101)
_TAIWAN_YEAR = 1911
_LONGEST = 100
"""Characters of a text that are searched for a date."""


def read_date(text: str, now: datetime) -> datetime | None:
    """Return the time that a date on a page means, in the zone that it names or else in that of `now`.

    The result is `None` if the date can't be read. A year outside 1970 to 2100 is no date either: sites write
    0001-01-01 if they have none. Words around the date are passed over (发表于 2013-5-6). A date without a clock (also:
    3天前) is its midnight; one without a year, the latest that is not in the future.

    Args:
        now: aware, in the site's zone; relative dates and dates without a year count from it.
    """
    text = text[:_LONGEST].strip()
    found = _read(text, now) if text else None
    return found if found is not None and found.year in _YEARS else None


def _read(text: str, now: datetime) -> datetime | None:
    if (text[4:5] == "-" or text[8:9] == "T") and text.isascii():
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    try:
        if match := _PLAIN.fullmatch(text) or _COMPACT.fullmatch(text):
            return _day(match.groupdict(), match, now)
        if not text.isascii():
            text = normalize("NFKC", text).translate(_SIMPLE)
        for pattern, reader in _readers(_signs(text)):
            if match := pattern.search(text):
                return reader(_parts(match), match, now)
    except (ValueError, OverflowError):  # 2013-02-30, 25:61
        pass
    return None


def _signs(text: str) -> frozenset[str]:
    """Return the signs of forms that a text has: without them most patterns need not be tried."""
    lower = text.lower()
    signs = _SIGNS.intersection(lower)
    if lower == text.upper():
        return signs
    return signs.union([_LETTERS, *(word for word in _WORDS if word in lower)])


def _parts(match: re.Match[str]) -> dict[str, str | None]:
    """Return the groups of a date, with those of the clock behind it, or of one in front of it if there is none.

    Raises:
        ValueError: a clock behind the date can't be read.
    """
    found = match.groupdict()
    if "hour" in found:
        return found
    behind = _TAIL.match(match.string, match.end())
    end = match.end()
    if behind is not None:
        found |= behind.groupdict()
        end = behind.end()
    if found["hour"] is not None:
        return found
    if _CLOCK_LEFT.match(match.string, end):
        raise ValueError
    if not _ANY_DIGIT.search(match.string, 0, match.start()):
        return found
    if before := _BEFORE.search(match.string, 0, match.start()):
        found |= before.groupdict()
        if not found["zone"] and (zone := _ZONE_BEHIND.match(match.string, match.end())):
            found["zone"] = zone["zone"]
    elif _CLOCK_FAR.search(match.string, 0, match.start()):
        raise ValueError
    return found


_Parts = Mapping[str, str | None]
_Reader = Callable[[_Parts, re.Match[str], datetime], datetime | None]


def _day(found: _Parts, match: re.Match[str], now: datetime) -> datetime | None:
    """Read a match with the groups y, m and d; without a year, the latest such day."""
    year = found.get("y") or found.get("year") or found.get("late")
    month = _month(match["m"])
    day = int(_number(match["d"]))
    if month > 12 and match.string[match.end("m")] in "/-" and match.start("m") < match.start("y"):
        month, day = day, month  # 16/5/2013
    if year:
        return set_clock(datetime(_year(year, now), month, day, tzinfo=now.tzinfo), found)
    for past in range(now.year, now.year - 9, -1):  # 2月29日 may be eight years back
        if day <= monthrange(past, month)[1]:
            moment = set_clock(datetime(past, month, day, tzinfo=now.tzinfo), found)
            if moment <= now + _AHEAD:
                return moment
    return None


def _taiwan_day(found: _Parts, match: re.Match[str], now: datetime) -> datetime | None:
    return _day({**found, "y": str(_TAIWAN_YEAR + int(match["roc"]))}, match, now)


def _year(text: str, now: datetime) -> int:
    if text.isdecimal():
        return int(text) if len(text) > 2 else 2000 + int(text)
    if text[0] in "今去前":
        return now.year - "今去前".index(text[0])
    if text[0] in _HAN_DIGITS:
        return int("".join(str(_HAN_DIGITS[numeral]) for numeral in text))
    return int(text[-4:]) if text[-4:-2].isdecimal() else 2000 + int(text[-2:])


def _month(text: str) -> int:
    return int(text) if text.isdecimal() else _MONTH_OF.get(text.lower()) or int(_number(text))


def _number(text: str) -> float:
    """Return the value of a count in digits, English or Chinese numerals.

    Raises:
        ValueError: it is no number: 十3, 两三.
    """
    if text.isdecimal():
        return int(text)
    text = text.lower()
    if text in _NUMBERS:
        return _NUMBERS[text]
    if text[0].isdecimal():
        return float(text)
    if text.isascii():
        tens, one = re.split(r"[\s-]", text)
        return _NUMBERS[tens] + _NUMBERS[one]
    match = _HAN_NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    hundreds, tens, ten, one = match.groups()
    value = 100 * _HAN_DIGITS[hundreds] if hundreds else 0
    if ten:
        value += 20 if ten == "廿" else 10 * _HAN_DIGITS[tens or "一"]
    return value + (_HAN_DIGITS[one] if one else 0)


_HAN_NUMBER = re.compile(
    r"(?:([一二三四五六七八九两几])百零?)?(?:([一二三四五六七八九几])?([十廿])|(?=.))?([零一二三四五六七八九几])?"
)


def _day_word(found: _Parts, match: re.Match[str], now: datetime) -> datetime:
    word = match["word"].lower()
    if word[-1] in "早晚" and found["part"] is None:
        found = {**found, "part": word[-1]}
    return set_clock(now - timedelta(days=_DAYS_BACK[word[0]]), found)


def _weekday(found: _Parts, match: re.Match[str], now: datetime) -> datetime | None:
    if found["hour"] is None and _NUMBER_LEFT.match(match.string, match.end()):
        return None
    if _NUMBER_FAR.search(match.string, 0, match.start()):
        return None
    day = now - timedelta(days=now.weekday() - _WEEKDAYS[match["weekday"].lower()])
    moment = set_clock(day, found)
    last = found.get("last") or moment > now + _AHEAD
    return moment - timedelta(days=7) if last else moment


def _time(found: _Parts, _match: re.Match[str], now: datetime) -> datetime:
    moment = set_clock(now, found)
    return moment if moment <= now + _AHEAD else moment - timedelta(days=1)


def _ago(found: _Parts, match: re.Match[str], now: datetime) -> datetime | None:
    if _COUNT_FAR.search(match.string, 0, match.start()):
        return None
    months = seconds = 0.0
    has_clock = False
    parts = _AGO_PARTS_EN if match["ago"].isascii() else _AGO_PARTS
    for part in parts.finditer(match["ago"]):
        amount = _number(part["number"].lstrip("零"))
        unit = part["unit"].lower()
        if "half" in parts.groupindex and (part["half"] or part["after"]):
            amount += 0.5
        if unit.startswith(("月", "mo", "mt")):
            months += amount
        elif unit[0] in "年y":
            months += 12 * amount
        else:
            unit_s = _SECONDS[unit[0]]
            has_clock = has_clock or unit_s < _DAY_S
            seconds += amount * unit_s
    if months:
        now = _months_back(now, months)
    back = timedelta(seconds=seconds)
    if has_clock and found["hour"] is None:
        return (now.astimezone(UTC) - back).astimezone(now.tzinfo)  # also across a change of summer time
    return set_clock(now - back, found)


def _months_back(now: datetime, months: float) -> datetime:
    """Return the same day some months ago, or the last of a shorter month; half a month is 15 days."""
    year, month = divmod(now.year * 12 + now.month - 1 - int(months), 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day) - timedelta(days=30 * (months % 1))


def _epoch(_found: _Parts, match: re.Match[str], now: datetime) -> datetime | None:
    number = match["epoch"]
    moment = datetime.fromtimestamp(int(number) / (1000 if len(number) == 13 else 1), UTC)
    return moment.astimezone(now.tzinfo) if _FIRST_YEAR <= moment.year <= now.year + 1 else None


def _now(found: _Parts, _match: re.Match[str], now: datetime) -> datetime:
    return now if found["hour"] is None else set_clock(now, found)


# A form is a date everywhere, only with a clock, or only if a date is expected.
_ALWAYS, _CLOCKED, _EXPECTED = 2, 1, 0
# The sign of a form with a name: any letter that has a capital one.
_LETTERS = "A"


class _Form(NamedTuple):
    found: int
    signs: str  # a text without all of these is not searched for it; every text is if there are none
    first: str  # characters that it can begin with, for `DATE`
    reader: _Reader
    pattern: str  # of the day; a clock may follow


_ALONE = rf"(?<!\d[-/.~]){UNTOUCHED}"
_DIGITS_ALONE = rf"(?=\d){_ALONE}"  # most places fail at once
_DIGIT = r"\d"
_LETTER = "".join(sorted({name[0] for name in _MONTH_OF} | set("mtwfs")))
_HAN = rf"[{NUMERALS}]"
_EITHER = rf"\d{NUMERALS}刚剛今大昨前去民ahotfsenjmty"
_DAY_NUMBER = rf"(?:\d{{1,2}}|{_HAN}{{1,3}})(?![\d{NUMERALS}])"
_YEAR_BEHIND = r"(?:,?\s(?P<year>(?:19|2\d)\d\d)(?![\d:/.-])年?)?"
# No number beside it that is not read: 12023 Jan 7.
_NO_YEAR = rf"(?<!\d{{3}}[\s,./-])(?<!\d{{3}},\s)(?<!{_HAN}\d[\s-])(?<!{_HAN}\d\d[\s-])"
_UNIT = r"(?P<unit>秒[钟鐘]?|分[钟鐘]?|小[时時]|[钟鐘][头頭]|天|日|[周週]|星期|月|年)"
_AGO = rf"(?P<number>\d{{1,5}}(?:\.\d)?|{_HAN}{{1,5}})"
_AGO += rf"\s*+多?\s*+(?:[个個](?P<half>半)?)?多?\s*+{_UNIT}(?:(?P<after>半)(?![小个個天年]))?多?"
_UNIT_EN = (
    r"(?P<unit>s|m|h|d|w|y|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|wks?|weeks?|mos?|mths?|months?|yrs?|years?)"
    r"(?![a-z])"
)
_NUMBER_EN = rf"(?:{'|'.join(_TENS)})[\s-](?:{'|'.join(_UNITS[:9])})|{'|'.join([*_TENS, *reversed(_UNITS)])}"
_AGO_EN = rf"(?P<number>\d{{1,5}}(?:\.\d)?(?=\s?[a-z])|(?:half an?|an?|{_NUMBER_EN})(?=\s))\s?{_UNIT_EN}\.?"
# A relative date in a sentence is what the text is about: 三个月前在商场买了.
_SPOKEN = (
    r"(?![,，、]?\s?(?!发|發|更新|回[复復覆]|[编編][辑輯]|修改|[评評][论論]|追?[点點][评評]|追[评評]|[来來]自|提[问問出]|回答|[浏瀏][览覽]|[阅閱]|[创創]建"
    r"|上[传傳线線]|下[载載]|查看|在[线線]|登[录錄]|[购購][买買]|收藏|分享|[转轉]|[关關]注|[通于於]|[上下中]午|[凌早清傍晚深半夜午]|[星周週礼禮]"
    r"|北京|天津|上海|重庆|河|山西|山东|辽宁|吉林|黑龙江|江苏|江西|浙江|安徽|福建|湖|广|海南|四川|贵州|云南|陕西|甘肃|青海|[内台香澳西]|宁夏|新疆)"
    r"[\u4e00-\u9fff])(?!,?\s(?:I|we|my|our|it|the|he|she|they|and|but|when|after|this|that)\b)"
)

# The least ambiguous first.
# fmt: off
_FORMS = (
    _Form(_ALWAYS, "- / . 月", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?P<y>(?:19|2\d)\d\d)(?:\s?[-/.年]\s?|\s(?=\d{{1,2}}\s?[-/月]))"
          r"(?P<m>\d{1,2})\s?[-/.月]\s?(?P<d>\d{1,2})(?!\d)\s?[日号號]?"),
    _Form(_ALWAYS, "月", rf"\d{NUMERALS}", _day, rf"{_ALONE}(?P<y>(?:19|2\d)\d\d|[〇零一二三四五六七八九]{{4}})\s?年"
          rf"\s?(?P<m>{_DAY_NUMBER})\s?月\s?(?P<d>{_DAY_NUMBER})\s?[日号號]"),
    _Form(_ALWAYS, "月 A", _DIGIT, _day, rf"{_DIGITS_ALONE}(?P<y>(?:19|2\d)\d\d),?[\s./-]{_MONTH}"
          rf"[\s./-]?(?P<d>\d{{1,2}})(?![\d:]){_ORDINAL},?"),
    _Form(_ALWAYS, "年", r"\d民", _taiwan_day,
          rf"(?:民[国國]\s?)?{_DIGITS_ALONE}(?P<roc>1[01]\d)\s?年\s?(?P<m>\d{{1,2}})\s?月\s?"
          r"(?P<d>\d{1,2})(?!\d)\s?[日号號]?"),
    _Form(_EXPECTED, "/", _DIGIT, _taiwan_day,
          rf"{_DIGITS_ALONE}(?P<roc>1[01]\d)/(?P<m>\d{{1,2}})/(?P<d>\d{{1,2}})(?![\d/])"),
    _Form(_ALWAYS, "前", _EITHER, _ago,
          rf"{_ALONE}(?<!\d,)(?<![月年])(?P<ago>{_AGO}(?:\s*+[零又]?\s*+{_AGO}){{0,3}})"
          rf"\s*+[之以]?前{_SPOKEN}"),
    _Form(_ALWAYS, "刚 now ago", _EITHER, _now,
          rf"(?:[刚剛][刚剛才]|just now|(?:moments?|few seconds) ago){_SPOKEN}"),
    _Form(_ALWAYS, "ago", _EITHER, _ago,
          rf"(?<![^\W_])(?<!ty[\s-])(?<!and\s)(?<!hundred\s)(?<!\d[.,~-])(?P<ago>{_AGO_EN}"
          rf"(?:,?\s?(?:and\s)?{_AGO_EN}){{0,3}})\sago\b{_SPOKEN}"),
    _Form(_EXPECTED, "A", _DIGIT, _ago, rf"^(?P<ago>{SHORT_AGO})$"),
    _Form(_ALWAYS, "月 A", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?<![\d:])(?P<d>\d{{1,2}}){_ORDINAL}\.?[\s/.-](?:of\s|de\s)?{_MONTH}"
          rf"(?P<y>,?(?:[\s/.-](?:de\s)?)\d{{4}}(?!\d)|-\d\d(?![\d:])|\s?['’]\d\d|,?\s\d\d(?=$|,|\s\d\d?:\d\d))"),
    _Form(_ALWAYS, "月 A", _LETTER + NUMERALS, _day, rf"(?<![^\W_]){_NO_YEAR}(?=[^\W\d_]{{2,10}}\.?[\s-]\s?\d)"
          rf"(?!(?-i:may)\s\d+\s[a-z]){_MONTH}[\s-]\s?"
          rf"(?P<d>\d{{1,2}})(?!\d|:){_ORDINAL}(?P<y>(?:,\s?|\s|-)\d{{4}}(?!\d)|,?\s?['’]\d\d)?,?"),
    _Form(_ALWAYS, "月 A", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?<![\d:])(?P<d>\d{{1,2}}){_ORDINAL}\.?[\s-](?:of\s|de\s)?"
          rf"(?!(?-i:may)\s[a-z]){_MONTH}"),
    _Form(_CLOCKED, "今 day", _EITHER, _day_word, r"(?P<word>今[天日]|今[早晚](?=\s?\d)|(?<![a-z])today(?![a-z]))"),
    _Form(_ALWAYS, "昨 前 day", _EITHER, _day_word, rf"(?P<word>大前天|昨[天日]|前[天日]|昨[早晚]|"
          rf"(?<![a-z])yesterday(?![a-z])){_SPOKEN}"),
    _Form(_EXPECTED, "", _DIGIT, _epoch, r"^(?P<epoch>\d{10}(?:\d{3})?)$"),
    _Form(_ALWAYS, "- /", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?<![\d-])(?P<m>\d{{1,2}})[/-](?P<d>\d{{1,2}})[/-](?P<y>\d{{4}})(?!\d)"),
    _Form(_ALWAYS, "/ .", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?<![\d./])(?P<m>0?[1-9]|1[0-2])[/.](?P<d>1[3-9]|2\d|3[01])[/.]"
          r"(?P<y>\d\d)(?![\d./])"),
    _Form(_ALWAYS, ".", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?<![\d.])(?P<d>\d{{1,2}})\.\s?(?P<m>\d{{1,2}})\.\s?(?P<y>\d{{4}})(?!\d)"),
    _Form(_CLOCKED, "- / 年", _DIGIT, _day, rf"{_DIGITS_ALONE}(?<![\d./-])(?P<y>\d\d)[-/年](?P<m>\d{{1,2}})[-/月]"
          r"(?P<d>\d{1,2})(?![\d/-])日?"),
    _Form(_ALWAYS, "月", _EITHER, _day, rf"(?P<y>今年|去年|前年)?\s?{_ALONE}(?<![\d{NUMERALS}]年)"
          rf"(?P<m>{_DAY_NUMBER})\s?月\s?(?P<d>{_DAY_NUMBER})"
          rf"\s?[日号號]{_YEAR_BEHIND}"),
    _Form(_ALWAYS, "月", _DIGIT, _day,
          rf"{_DIGITS_ALONE}(?P<m>\d{{1,2}})\s?月\s(?P<d>\d{{1,2}}),\s?(?P<year>(?:19|2\d)\d\d)(?!\d)"),
    _Form(_CLOCKED, "- / 月", _EITHER, _day, rf"(?P<y>今年|去年|前年)?\s?{_ALONE}{_NO_YEAR}(?<![\d{NUMERALS}]年)"
          rf"(?P<m>\d{{1,2}})\s?[-/月]\s?(?P<d>\d{{1,2}})"
          r"(?!\d)\s?[日号號]?"),
    _Form(_EXPECTED, "周 星 礼", _EITHER, _weekday, r"(?P<last>上)?个?(?:星期|周|礼拜)(?P<weekday>[一二三四五六日天])"),
    _Form(_CLOCKED, "A", _LETTER, _weekday, r"(?<![a-z])(?P<weekday>mon|tue|wed|thu|fri|sat|sun)"
          r"(?:s|rs?|(?:s|rs|nes|ur)?day)?(?![a-z])"),
)
# fmt: on
_NAME = re.compile(r"\?P<\w+>")


def _drop_names(pattern: str) -> str:
    """Return a pattern with groups without names, so that it may stand several times in another."""
    return _NAME.sub("?:", pattern)


def _repeatable(pattern: str) -> str:
    """Return a form's pattern whose groups inside `ago` have no names."""
    head, mark, tail = pattern.partition("(?P<ago>")
    return head + mark + _drop_names(tail) if mark else pattern


_READERS = [(frozenset(form.signs.split()), _repeatable(form.pattern), form.reader) for form in _FORMS]
_READERS.append((frozenset(), f"^{CLOCK}$", _time))
_SIGNS = frozenset(chain.from_iterable(form.signs.split() for form in _FORMS))
_WORDS = tuple(sign for sign in _SIGNS if len(sign) > 1)


@lru_cache(maxsize=1024)
def _readers(signs: frozenset[str]) -> list[tuple[re.Pattern[str], _Reader]]:
    """Return the pattern and the reader of each form that a text with these signs can have."""
    return [
        (_compile(pattern), reader) for needed, pattern, reader in _READERS if not needed or needed & signs
    ]


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a form when a text first needs it: all of them take 0.2 s."""
    return re.compile(pattern, re.I)


_COUNT_FAR = re.compile(
    rf"[\d{NUMERALS}]\s?(?:个?{_drop_names(_UNIT)}|{_drop_names(_UNIT_EN)})[\s,零又]{{0,3}}(?:and\s)?$", re.I
)
_AGO_PARTS = re.compile(_AGO, re.I)
_AGO_PARTS_EN = re.compile(_AGO_EN, re.I)


class _Finder:
    """A pattern that is compiled when it is first used: it takes 0.1 s, and pages with rules do not need it."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(_compile_finder(), name)
        setattr(self, name, found)
        return found


@cache
def _compile_finder() -> re.Pattern[str]:
    by_first: dict[str, list[str]] = defaultdict(list)
    for form in _FORMS:
        if form.found:
            by_first[form.first].append(f"{form.pattern}(?:{_BEHIND}){'?' * (form.found == _ALWAYS)}")
    found = "|".join(f"(?=[{first}])(?:{'|'.join(patterns)})" for first, patterns in by_first.items())
    # Most characters begin no date, nor does a Latin letter inside a word.
    begins = f"(?=[{''.join(by_first)}])(?<![a-z](?=[a-z]))"
    return re.compile(begins + _drop_names(f"(?:{found})"), re.I)


DATE = cast(re.Pattern[str], _Finder())
"""A pattern of dates that say a day by themselves."""
