"""Parse the optional columns of a list of products, as people write them.

Each function returns `None` for an empty cell, and raises `NotUnderstood` for a cell that it can't read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from app.actions.products import MOST_PAGES, MOST_PRIORITY, period
from app.importing.cell_words import NotUnderstood, arabic, is_nothing, meanings_of, plain_cell, words_of
from splitter.catalog.model import Site
from splitter.catalog.names import Category, Group
from splitter.category import guess_category
from splitter.errors import InputError

_LEVELS: Mapping[str, int] = meanings_of("priority")
"""Priorities by word."""
_BY_GRADE = {"0": 20, "1": 10, "2": 0, "3": -10, "4": -20, "5": -20}
"""Priorities by grade (1级, 第二优先, Level 3). The first grade is the highest priority."""
_GRADE_BEFORE = re.compile(
    r"(?:优先级别?|优先度|优先|紧急程度|重要程度|重要性|priority|prio|level|grade|等级|级别|第)+"
)
_GRADE_ENDS = (
    *(
        "优先级别",
        "优先处理",
        "优先级",
        "优先度",
        "优先",
        "priority",
        "level",
        "级别",
        "等级",
        "程度",
        "类别",
    ),
    *("级", "类", "等", "档"),
)
_REMARK = re.compile(r"[(\[【〔][^()\[\]【】〔〕]*[)\]】〕]")
_BRACKET = re.compile(r"[()\[\]【】〔〕]")
_BETWEEN = re.compile(r"[,，、。;:/\\|→>~+.!-]+")
_STARS = "★⭐✭🌟"
_FEWEST_STARS = "☆\ufe0f"

_COUNT = re.compile(
    r"(?:前|约|共|第|最多|不超过|至多|top|max|up to)? ?(?:\d{1,4} ?[-~至到] ?)?(\d{1,4})(?:\.0+)?"
    r" ?(?:个?页面?|pages?|p)?(?:以内|之内|左右)?"
)
_DEFAULT = words_of("default pages")
_ONCE = words_of("once")
_PERIOD_WORDS = {
    "hourly": "1小时", "daily": "1天", "weekly": "1周", "biweekly": "2周", "fortnightly": "2周", "monthly": "1月",
    "quarterly": "1季", "yearly": "1年", "annually": "1年", "隔天": "2天", "隔日": "2天", "隔周": "2周", "双周": "2周",
    "隔月": "2月", "双月": "2月", "半天": "12小时", "半日": "12小时", "半个月": "15天", "半月": "15天", "旬": "10天",
    "半年": "182天", "半年度": "182天",
}  # fmt: skip
_UNIT_DAYS = {
    **dict.fromkeys(["天", "日", "d", "day", "days"], 1.0),
    **dict.fromkeys(["周", "星期", "礼拜", "w", "wk", "week", "weeks"], 7.0),
    **dict.fromkeys(["月", "个月", "月度", "mo", "month", "months"], 30.0),
    **dict.fromkeys(["季", "季度", "个季度", "quarter", "quarters"], 91.0),
    **dict.fromkeys(["年", "年度", "y", "yr", "year", "years"], 365.0),
    **dict.fromkeys(["小时", "个小时", "时", "h", "hr", "hour", "hours"], 1 / 24),
    **dict.fromkeys(["分", "分钟", "min", "minute", "minutes"], 1 / 1440),
}
_UNITS = "|".join(sorted(_UNIT_DAYS, key=len, reverse=True))
_EVERY = re.compile(
    rf"(?P<every>每隔?|按|every|each|per|once every|once a)? ?(?P<n>\d{{1,3}}(?:\.\d)?)? ?(?P<unit>{_UNITS})"
    r"(?:(?<=周)[1-6日天]|(?<=月)(?:初|底|末|\d{1,2}[号日]))?(?: ?(?P<times>\d{1,2}) ?(?:次|遍|times?)| ?once)?"
    r"(?:重?采|更新|采集|巡检)?"
)
_HEADER_UNIT = re.compile(rf"[(（/] ?({_UNITS})[)）]?$")
_SHORTEST_PERIOD = timedelta(minutes=1)
_LONGEST_PERIOD = timedelta(days=3660)

_CATEGORIES = {word: Category(name) for word, name in meanings_of("category").items()}
_CATEGORY_ENDS = re.compile(r"(?:类|类目|产品|商品|类产品|类商品|行业)$")

_EVERYWHERE = words_of("everywhere")
_GROUPS = {word: Group(name) for word, name in meanings_of("group").items()}
_SITE_NAMES = {
    "新浪微博": "微博",
    "贴吧": "百度贴吧",
    "红书": "小红书",
    "点评": "大众点评",
    "公众号": "微信公众号",
}
_SITE_ENDS = ("官方旗舰店", "旗舰店", "商城", "平台", "网站", "官网", "论坛", "app", "自营", "网", "站")
_SITE_PARTS = re.compile(r"[\s,、;|&+]+|(?<=[^\x00-\x7f])[和与及](?=[^\x00-\x7f])")
_ENGINES = ("百度", "搜狗")
_MOST_SITES_TEXT = 5_000
_SHORTEST_SITE = 2
_DOMAIN_ENDS = ("com", "cn", "net", "org", "gov")


def read_priority(text: str) -> int | None:
    """Return a priority. A whole number is returned as it is, words give 20, 10, 0, -10 or -20."""
    if is_nothing(text):
        return None
    plain = plain_cell(text)
    number = _whole_number(plain)
    if number is not None:
        if abs(number) > MOST_PRIORITY:
            raise NotUnderstood
        return number
    stars = plain.strip(_FEWEST_STARS)
    if stars and not stars.strip(_STARS + _FEWEST_STARS):
        return sum(char in _STARS for char in stars)
    for form in (_REMARK.sub(" ", plain), _BRACKET.sub(",", plain)):
        levels = _levels(form.strip())
        if len(levels) == 1:
            return levels.pop()
    raise NotUnderstood


def _levels(text: str) -> set[int]:
    """Return the priorities that the known words of a text mean; empty if the first word is unknown."""
    if not text.isascii():  # blanks separate words of Chinese; English needs them within
        text = text.replace(" ", ",")
    parts = [*filter(None, ("".join(part.split()) for part in _BETWEEN.split(text)))]
    if not parts or (_level(parts[0]) is None and not parts[0].isdecimal()):
        return set()
    return {level for level in map(_level, parts) if level is not None}


def _level(word: str) -> int | None:
    """Return the priority that a word means; `None` if it is unknown. 级, 类 or 优先 may be attached to the word."""
    word = word.strip("\"'“”「」*+?")
    if word in _LEVELS:
        return _LEVELS[word]
    before = _GRADE_BEFORE.match(word)
    grade = word[before.end() :] if before else word
    for end in _GRADE_ENDS * 2:
        grade = grade.removesuffix(end)
    if grade == word:
        return None
    return _BY_GRADE.get(arabic(grade), _LEVELS.get(grade))


def _whole_number(text: str) -> int | None:
    try:
        value = float(text.replace(" ", ""))
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def read_pages(text: str) -> int | None:
    """Return the number of result pages to read per search, `None` for the site's default.

    Of a range, the end is returned. 0 means that the product is not crawled.
    """
    plain = plain_cell(text)
    if is_nothing(text) or plain in _DEFAULT:
        return None
    match = _COUNT.fullmatch(arabic(_REMARK.sub("", plain).strip()))
    if match is None or int(match[1]) > MOST_PAGES:
        raise NotUnderstood
    return int(match[1])


def read_recrawl(text: str, header: str = "") -> timedelta | None:
    """Return the time between two crawls; `None` if the product is crawled only once.

    A month has 30 days, a quarter 91, a year 365.

    Args:
        header: the column's name. Brackets in it give the unit of numbers that have none: 重采周期（天）.

    Raises:
        NotUnderstood: the text is not a period, or the period is too short or too long.
    """
    plain = _REMARK.sub("", plain_cell(text)).strip()
    if is_nothing(text) or plain in _ONCE:
        return None
    unit = _HEADER_UNIT.search(plain_cell(header))
    if unit is not None and _whole_number(plain) is not None:
        plain += unit[1]
    try:
        return period(plain)
    except InputError:
        pass
    match = _EVERY.fullmatch(_write_digits(plain))
    if match is None:
        raise NotUnderstood
    number, times = match["n"], match["times"]
    days = _UNIT_DAYS[match["unit"]]
    length = timedelta(days=days * float(number or 1) / max(1, int(times or 1)))
    is_period = match["every"] or number or times or days >= 1  # 小时 or m alone is not a period
    if not is_period or not _SHORTEST_PERIOD <= length <= _LONGEST_PERIOD:
        raise NotUnderstood
    return length


def _write_digits(text: str) -> str:
    """Return a period with its number in digits. Words for a period, such as 每周, become a number and a unit."""
    bare = text.removeprefix("每").removeprefix("按").removesuffix("一次").removesuffix("1次").strip()
    return arabic(_PERIOD_WORDS.get(text) or _PERIOD_WORDS.get(bare) or text)


def read_category(text: str) -> Category | None:
    """Return the category that a text means: by its name, by another word for it, or by goods named in the text."""
    if is_nothing(text):
        return None
    plain = _REMARK.sub("", plain_cell(text)).replace(" ", ",")
    parts = [*filter(None, _BETWEEN.split(plain))]
    for part in parts:
        for word in (part, _CATEGORY_ENDS.sub("", part)):
            if word in _CATEGORIES:
                return _CATEGORIES[word]
    found = guess_category(" ".join(parts))
    if found is None:
        raise NotUnderstood
    return found


def read_sites(text: str, sites: Mapping[str, Site]) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the domains of the sites that a cell names (`None` for all sites), and the words that name no known site.

    A site can be given by domain, address, title (京东), first part of its domain (jd) or group (电商).

    Args:
        sites: sites of the catalog by domain.
    """
    found: dict[str, None] = {}
    unknown: list[str] = []
    plain = _REMARK.sub(" ", plain_cell(text, _MOST_SITES_TEXT))
    words = list(_site_words(plain))
    if any(word in _EVERYWHERE for word in words):
        return None, []
    for word in words:
        named = list(_find_sites(word, sites))
        found |= dict.fromkeys(named)
        if not named:
            unknown.append(word)
    return tuple(found), unknown


def _site_words(text: str) -> Iterator[str]:
    for part in _SITE_PARTS.split(text):
        if "://" in part:
            yield part
        else:
            yield from filter(None, part.split("/"))


def _find_sites(word: str, sites: Mapping[str, Site]) -> Iterator[str]:
    if word in _GROUPS:
        yield from (name for name, site in sites.items() if site.group == _GROUPS[word])
        return
    host = word.partition("://")[2].partition("/")[0] or word.partition("/")[0]
    labels = host.split(".")
    for place in range(len(labels) - 1):
        domain = ".".join(labels[place:])
        if domain in sites:
            yield domain
            return
    titles = {name: plain_cell(site.title).partition("(")[0].strip() for name, site in sites.items()}
    for title in _titles_meant(word):
        named = [name for name, one in titles.items() if one == title]
        if named:
            yield from named
            return
    yield from (
        name for name in sites if [one for one in name.split(".") if one not in _DOMAIN_ENDS] == [word]
    )
    if len(word) >= _SHORTEST_SITE and not word.isascii() and word not in _ENGINES:
        begun = [name for name, title in titles.items() if title.startswith(word)]
        if len({titles[name] for name in begun}) == 1:
            yield from begun


def _titles_meant(word: str) -> Iterable[str]:
    """Yield titles of sites that a word may mean, the most likely first."""
    yield word
    yield f"{word}网"
    if word in _SITE_NAMES:
        yield _SITE_NAMES[word]
    for end in _SITE_ENDS:
        if word.endswith(end):
            yield word.removesuffix(end)
