"""One way of writing for every name, and the amounts in it.

Written the one way: half-width, simplified, without emoji and control characters. Amounts never become keywords:
sizes (250ml), counts (12盒/箱), products of both (1x16x400g), stages (1段), ages (8-36个月), dates (7月产, 20年3月) and
percentages.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import cache
from types import ModuleType

from splitter.lexicon import Role, roles

_PLAIN = re.compile("[\u4e00-\u9fa5 -_a-~\n【】《》「」、。]*")  # no control character, no symbol that goes
_MARKS = re.compile("[™®©℠]")  # NFKC would turn them into letters of the word before
_KEYCAPS = re.compile("[\ufe00-\ufe0f\u20e3]")
# GB2312 holds simplified characters only, but for these, which stand for another one (乾, 後).
_DOUBTFUL = re.compile("[乾吒夥後徵拚捱摺於榘渖甯菸薹谘醣醯钜锺镟馀麴麽]")
_SEPARATORS = re.compile("[,，、;；|]")
_WIDE = {"，": ",", "！": "!", "？": "?", "：": ":", "；": ";", "（": "(", "）": ")", "～": "~", "…": "..."}


def nfkc(text: str) -> str:
    """The text in the normal form NFKC.

    Compatibility characters of most Chinese texts are replaced first: a text that is normal already is known as such
    many times as fast as it is made normal.
    """
    for wide, narrow in _WIDE.items():
        text = text.replace(wide, narrow)
    return unicodedata.normalize("NFKC", text)


def normalize(text: str) -> str:
    """Writes a name the one way: the same product typed in different ways gives the same text.

    Full-width characters become half-width (NFKC), traditional ones simplified, emoji
    a blank; control, format and unassigned characters go; runs of blanks become one, none at the ends.
    """
    text = nfkc(_MARKS.sub(" ", text))
    if not _PLAIN.fullmatch(text):
        text = _KEYCAPS.sub("", text)
        if not text.isprintable() or not text.isascii():
            text = text.translate(_KEPT)
    if _may_be_traditional(text):
        text = _zhconv().convert(text, "zh-hans").replace("哪咤", "哪吒")
    return " ".join(text.split())


def list_spellings(text: str) -> list[str]:
    """Return all spellings of each character of a text, after `normalize` and without case: 奶粉 gives 奶嬭 and 粉.

    Characters that stand for several, such as ㎏, are not found.
    """
    known = _spellings()
    return [known.get(char, char) for char in normalize(text).casefold()]


@cache
def _spellings() -> dict[str, str]:
    """Return the characters that `normalize` writes the same way, by the character that they become (0.1 s of CPU)."""
    found = {" ": "\t\n\v\f\r"}
    chars = [*map(chr, range(0x20, 0xD800)), *map(chr, range(0xE000, 0x10000))]
    plain = [nfkc(char).casefold() for char in chars]
    written, singles = zip(
        *(pair for pair in zip(chars, plain, strict=True) if len(pair[1]) == 1), strict=True
    )
    simplified = _zhconv().convert("\n".join(singles), "zh-hans").split("\n")
    for char, one in zip(written, simplified, strict=True):
        found[one] = found.get(one, "") + char
    return {one: spellings for one, spellings in found.items() if len(spellings) > 1}


def name_key(name: str) -> str:
    """Return a name without case, blanks, width and emoji: products whose names have one key are one product."""
    return "".join(normalize(name).casefold().split())


def split_list(text: str) -> tuple[str, ...]:
    """Split at the separators that people put between names: , ， 、 ; ； and |."""
    return tuple(filter(None, map(str.strip, _SEPARATORS.split(text))))


def split_words(text: str) -> tuple[str, ...]:
    """Split keywords at the same separators, and at blanks if none of these occurs."""
    return split_list(text) if _SEPARATORS.search(text) else tuple(text.split())


class _GrowingTable(dict[int, int | str]):
    """A table for `str.translate`, filled as characters come.

    Whole pages are normalized, and a call of Python a character would be most of the cost of a crawl.
    """

    def __missing__(self, code: int) -> int | str:
        char = chr(code)
        category = unicodedata.category(char)
        if char.isspace() or category in ("So", "Sk"):
            kept: int | str = " "
        else:
            kept = "" if category[0] == "C" else code
        if code < _REMEMBERED:
            self[code] = kept
        return kept


_REMEMBERED = 0x20000
"""Characters below are remembered: bounds the memory that pages of rare characters can take."""

_KEPT = _GrowingTable()


def _may_be_traditional(text: str) -> bool:
    if _DOUBTFUL.search(text):
        return True
    try:
        text.encode("gb2312")
    except UnicodeEncodeError:
        return True
    return False


@cache
def _zhconv() -> ModuleType:
    """The conversion tables, loaded (20 ms) by the first name that needs them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it leaves its table's file to the garbage collector
        import zhconv

        zhconv.loaddict()
    module: ModuleType = zhconv
    return module


_NUMBER = r"\d+(?:\.\d+)?"
_LATIN_UNIT = (
    r"(?:ml|kg|mg|cm|mm|km|mah|gb|tb|mb|hz|khz|ghz|kw|db|oz|lb|pcs|μm|um|[glwvatm])(?![a-wyz])(?!x(?!\d))"
)
_CHINESE_UNIT = (
    r"(?:毫升|升|公斤|千克|毫克|克|斤|两|吨|厘米|毫米|公里|英寸|寸|米|流明|瓦|伏|毫安|安时"
    r"|连包|连杯|小包|小袋|大包|盒|瓶|袋|罐|听|包(?!邮)|箱|提|支|片|只|条|件|套|粒|枚|双|张|本|组|块|桶|杯|排|板|根|卷|抽|层|颗|份|匹|键|孔"
    r"|个月|个|月龄|周岁|岁|周年|年|月|日|天|小时|分钟|元|折|倍|度|段|款|人份|人)"
)
_UNIT = rf"(?:{_CHINESE_UNIT}|{_LATIN_UNIT}|%)"
_SECOND_UNIT = (
    rf"(?!天然|双[^装]|组合|升级|折叠|本|两|包包|元|日|年)(?:{_UNIT})"  # 225g克, 3件套, but 500ml天然
)
_AMOUNT = rf"{_NUMBER}\s?{_UNIT}(?:{_SECOND_UNIT})?"
_TIMES = r"(?:\s?[*×]\s?|\sx\s|\s?x(?!\s))"  # 160X 6.0 is a model
_MORE = rf"(?:(?:{_TIMES}|\s?[/+~-]\s?)?(?:{_AMOUNT}|(?<=[*x×]){_NUMBER})|\s?/\s?{_UNIT})"
_NETWORKED = r"手机|老人机|路由|wi-?fi|无线|随身|网络|套餐|全网通|cpe|模块|上网|流量|平板|手表|摄像|宽带|鼠标|键盘|耳机"
_MODEL = (  # 一加13T
    r"(?:(?<=[一-龥])|(?<=[一-龥] ))(?-i:\d{1,2}T)(?![a-z0-9])(?!.*(?:硬盘|存储|固态|内存))"
)
_NETWORK = rf"(?:[2-6]|2\.4)g\s?(?:{_NETWORKED})"  # 5G手机, 2.4G鼠标: no weights


def drop_amounts(text: str) -> str:
    """A name (normalized) with a comma wherever an amount, a stage or a date stood."""
    return _amounts().sub(",", text)


def amounts_in(text: str) -> list[str]:
    """The amounts, stages and dates of a name (normalized), in their order."""
    return [found.group().strip() for found in _amounts().finditer(text)]


@cache
def _amounts() -> re.Pattern[str]:
    """Return the pattern of amounts. It leaves out the brands of our dictionary that begin like one."""
    brands = "|".join(word for word, role in roles().items() if role is Role.BRAND and word[0].isdigit())
    return re.compile(
        rf"(?<![a-z0-9.])(?!(?:{brands})(?![a-z0-9]|\s?{_UNIT}))(?!{_NETWORK})(?!{_MODEL})"
        rf"(?:{_NUMBER}\s?[~-]\s?)?"
        rf"(?:{_AMOUNT}|{_NUMBER}{_TIMES}(?=\d)){_MORE}*(?:装|产(?!后|品|妇)|底|初(?!学|级)|起(?!亚))?"
        r"|(?<![\d.])[0-6]\s?段|[一二三四]段(?!式)"
        r"|[一二三四五六七八九十两]+(?:盒|瓶|袋|罐|听|箱|桶)装?"
        r"|[*×]\s?\d+(?![a-z0-9])",
        re.IGNORECASE,
    )


# --- asides -------------------------------------------------------------------------------------------------

_BRACKETS = re.compile(r"【([^【】]*)】|\[([^\[\]]*)\]|\(([^()]*)\)|〔([^〔〕]*)〕|\{([^{}]*)\}")
_LATIN_NAME = re.compile(r"[A-Za-z][A-Za-z .'&-]+")


def drop_asides(text: str) -> str:
    """Return a name without what stands in brackets, unless that is a brand (方正（Founder）)."""
    return _BRACKETS.sub(_aside, text) if _BRACKETS.search(text) else text


def asides_in(text: str) -> list[str]:
    """Return the asides that `drop_asides` takes away, in order."""
    return [_inside(found) for found in _BRACKETS.finditer(text) if _aside(found) == "," and _inside(found)]


def _inside(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None).strip()


def _aside(found: re.Match[str]) -> str:
    inside = _inside(found)
    keep = roles().get(inside) in (Role.BRAND, Role.SERIES) or _LATIN_NAME.fullmatch(inside)
    return f" {inside} " if keep else ","
