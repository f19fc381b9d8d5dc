"""Words of a name joined to whole ones: what jieba cut out of a word it does not know, and models of several parts.

jieba cuts 小黑瓶 into 小黑 and 瓶, and 气泡水 into 气泡 and 水: half a word is no keyword. Whether two neighbours are
one word is decided by logistic regression over their lengths, characters and frequencies (``data/join-weights.txt``,
made by `research.training.train_joins` from the word boundaries that people marked in product titles).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from splitter.category import is_goods
from splitter.keyword_classifier import look_up_role
from splitter.lexicon import Role, data, is_brand, lexicon, numbered_brand, roles, rows, title_role
from splitter.words import rarity

_LEAST_ODDS = {False: (1.0, -0.5), True: (2.5, 1.5)}
"""Least log odds of two words that are one, of a name and of a shop's title: both longer, one a single character."""

_CHINESE = re.compile("[\u4e00-\u9fff]+")
_OWN = (Role.BRAND, Role.SERIES, Role.NOISE, Role.PLATFORM, Role.PLACE, Role.TRAIT)
_LONGEST = 6  # characters of a joined word
LONGEST_NAME = 8
"""Maximum number of words and marks of a name. More are a shop's title, where 大 and 新 are mere praise."""

_RANKS = {False: "系代级号", True: "系代"}  # behind a number or a letter, of a name and of a shop's title
_RANKED = re.compile(r"\d+|[A-Za-z]")
_ORDINAL = re.compile("[一二三四五六七八九十]号")
YEAR = re.compile(r"20[1-4]\d")
"""A model year; older numbers like it are models: 标致2008."""


def whole_words(words: Sequence[str]) -> list[str]:
    """Return the words of a name (`splitter.words.words_of`, marks among them), those joined that are parts of one."""
    title = len(words) > LONGEST_NAME
    least = _LEAST_ODDS[title]
    ranks = _RANKS[title]
    known = roles()
    noise = lexicon().noise if title else frozenset()
    found: list[str] = []
    last = ""
    for word in words:
        if (word in ranks and _RANKED.fullmatch(last)) or (last == "0" and _CHINESE.fullmatch(word)):
            found[-1] += word  # 3系, 4代, C级, 0蔗糖
        elif not title and _ORDINAL.fullmatch(word) and may_join(last, word):
            found[-1] += word  # 皇家一号
        elif not title and last not in known and _is_model(found[-2:], word):
            found[-1] += f" {word}" if word.isascii() else word
        elif (
            last
            and last not in noise
            and len(found[-1]) + len(word) <= _LONGEST
            and may_join(last, word)
            and _odds(last, word) > least[1 in (len(found[-1]), len(word))]
        ):
            found[-1] += word
        else:
            found.append(word)
        last = word
    return found


def _is_model(before: Sequence[str], word: str) -> bool:
    """Return True for letters that belong to a model of a single character, which follows its brand: 秦 PLUS."""
    *brand, first = before or ("",)
    named = bool(brand) and is_brand(brand[0]) and len(first) == 1 and _CHINESE.fullmatch(first) is not None
    return named and _LETTERS.fullmatch(word) is not None and len(word) <= _SHORT


def join_names(words: Sequence[str]) -> list[str]:
    """Return the words of a name, those that are one name behind its brand as one: 喜茶 and 多肉葡萄, 一加 15.

    Two unknown words stay together unless both are goods, if nothing else follows them. So do a brand and a
    bare number, which means nothing alone.
    """
    found: list[str] = []
    for place, word in enumerate(words):
        after = "".join(words[place + 1 : place + 2])
        numbered = found and _BARE.fullmatch(word) and not (len(after) == 1 and _CHINESE.match(after))
        if numbered and numbered_brand(f"{found[-1]} {word}"):
            found[-1] += f" {word}"
        elif _is_pair(found[-2:], word, after):
            found[-1] += word
        else:
            found.append(word)
    return found


def _is_pair(before: Sequence[str], word: str, after: str) -> bool:
    """Return True for the second of two words that are a name of their own behind a brand, or behind its line."""
    followed = _CHINESE.match(after) and roles().get(after) is not Role.NOISE
    first = "".join(before[1:])
    if not first or followed or not may_join(first, word):
        return False
    attribute = look_up_role(first)[-1] in "234"  # quarters of what people marked it as: 静音, 纯棉
    if attribute or 1 in (len(first), len(word)) or len(first + word) > _LONGEST:
        return False
    goods = is_goods(first) and is_goods(word)
    return not goods and (is_brand(before[0]) or _LETTERS.match(before[0]) is not None)


_BARE = re.compile(rf"(?!{YEAR.pattern})[1-9]\d{{0,3}}")


def may_join(left: str, right: str) -> bool:
    """Whether two neighbours may be parts of one word: Chinese, and none that our dictionary knows for itself."""
    role = roles().get
    if left == right and len(left) > 1:
        return False  # 一汽解放 解放J6P
    if role(left) in _OWN or role(right) in _OWN:
        return False
    if role(right) is Role.PRODUCT or (role(left) is Role.PRODUCT and len(right) > 1):
        return False
    return _CHINESE.fullmatch(left) is not None and _CHINESE.fullmatch(right) is not None


@lru_cache(65_536)
def _odds(left: str, right: str) -> float:
    """Return the log odds that two neighbours are one word."""
    weights = join_weights()
    return sum(weights.get(trait, 0.0) for trait in join_traits(left, right))


def join_traits(left: str, right: str) -> list[str]:
    """Traits of two neighbours, as a pair and by themselves."""
    a, b = min(len(left), 4), min(len(right), 4)
    noise = lexicon().noise
    found = [
        f"long {a}{b}",
        f"end {left[-1]}",
        f"first {left[0]} {a}",
        f"head {right[-1]} {b}",
        f"begin {right[0]} {b}",
        f"rare {a}{b} {_bin(left)} {_bin(right)}",
        f"left {a} {_bin(left)}",
        f"right {b} {_bin(right)}",
        f"role {title_role(left)} {b}",
    ]
    if right in noise:
        found.append(f"noise {b}")
    if left in noise:
        found.append(f"after noise {a}")
    if a <= 2:
        found.append(f"whole left {left}")
    if b <= 2:
        found.append(f"whole right {right}")
    return found


def _bin(word: str) -> str:
    rare = rarity(word)
    return "new" if rare is None else str(int(rare) // 2)


@cache
def join_weights() -> Mapping[str, float]:
    """The weights that come with the project."""
    return {trait: float(weight) for trait, weight in rows(data("join-weights.txt"))}


# --- models of several parts --------------------------------------------------------------------------------

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.'-]*")
_LETTERS = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"(?!(?:19|20)\d\d)\d{1,4}")
_VERSION = re.compile(r"[1-9]\.0")

_PARTS = 5  # most parts of a model's name


def join_models(words: Sequence[str]) -> list[str]:
    """The words of a name, the parts of a model's name as one, with blanks: iPhone 15 Pro Max, Model Y, V12 Detect.

    Letters follow letters and digits, a number follows letters; a brand that we know and a word that is never a keyword
    stand apart, and so does a second word with digits (荣耀 9X 8X).
    """
    found: list[str] = []
    last = False
    for word in words:
        part = _is_part(word)
        if part and last and _continues(found[-1], word):
            found[-1] += f" {word}"
        else:
            found.append(word)
        last = part
    return found


def _is_part(word: str) -> bool:
    if not _PART.fullmatch(word) or word.lower() in lexicon().noise:
        return False
    return roles().get(word) not in _OWN and word.lower() not in lexicon().brand_named


def _continues(model: str, word: str) -> bool:
    """Whether a word continues a model's name."""
    if model.count(" ") + 1 >= _PARTS:
        return False
    numbered = any(char.isdigit() for char in model)
    if _VERSION.fullmatch(word):
        return numbered and not model.isdigit()  # 160X 6.0
    if model[0].isdigit():
        return word.lower().rstrip("+") in _AFFIXES
    if _LETTERS.fullmatch(letters := word.rstrip("+")):
        return numbered or len(word) == 1 or letters.lower() in _AFFIXES
    return (
        not numbered
        and not YEAR.fullmatch(word)
        and (_NUMBER.fullmatch(word) is not None or len(word) <= _SHORT)
    )


_SHORT = 5
_AFFIXES = frozenset(
    ["pro", "max", "plus", "ultra", "mini", "air", "se", "lite", "note", "fold", "flip", "turbo", "x"]
)
