"""Whether a clause denies one of its terms: 没有任何异味, 破损倒是没有, 洗了很多次都没有起球、褪色.

A negation denies a term close behind it. It reaches further if a word such as 任何 or 出现 follows it, and through an
enumeration. A negation at the end of a clause denies a term before it if only words of emphasis are between them. A
fear or a condition (担心, 如果) denies as well. Double negations (没有一次不漏), rhetorical questions (怎么能没有异味)
and phrases that only look like negations (不但, 没想到) deny nothing.
"""

from __future__ import annotations

import re
from typing import Final

OWN: Final = frozenset("不没无未")
"""Negations in a term itself: a term with one of them is not denied by another one before it."""
SIGNS: Final = OWN | set("零非如万担怕避防")
"""Every denial before a term has one of these characters."""
LAST: Final = frozenset("有没无在现到过见的呢了啊哦吧呀哈")
"""A clause with a denial behind a term ends with one of these characters."""
REACH: Final = 16
"""Characters before and behind a term that are looked at, at most."""
ENUMERATES: Final = "、"
"""The mark between the parts of an enumeration. It ends a clause, too."""

_NEAR, _FAR = 3, 12
"""Characters between a negation and a term that it denies, at most."""
_FEARS = "如果|假如|万一|担心|怕|会不会|不像|避免|防止|希望不是"
_NO_DENIAL = (
    "不但|不仅|不过|不止|不光|不只|不料|不小心|不得|不知|不到|不久|不断|不时|不停|不一会|不管|不论|不能忍|不说|不如|不愧"
    "|不好|不行|不错|不满|不敢|不去|不喜欢|不开心|不方便|不买|不值|不推荐|没想|没几|没多久|没用|没法|没办法|没过几|没过多久"
    "|没见过|没吃过|没喝过|没买过|没用过|没人|没说|没有了|没了|无论|无比|无语|无法|无线|非常"
    "|(?<=是)不是|(?<=会)不会|(?<=有)没有|(?<=差)不多|(?<=[恐哪可])怕"
)
"""Phrases that look like a negation or a fear, and deny nothing behind them."""
_OPENERS = (
    "任何|一点|半点|丝毫|什么|明显|出现|发现|闻到|看[到见]|见到|[遇碰]到|发生|感[觉到]|存在|像|说的|那种|所谓"
)
"""Words behind a negation that let it reach further."""
_BREAKS = "就|才|却|但|也|而|结果|竟|居然|导致|所以|还|反|又|这么|这幺|如此|这样|真的|果然|果真"
"""Words that end the reach of a negation."""
_EMPHASIS = (
    "什么的|之类|这些|那些|问题|情况|现象|味道|气味|痕迹|地方|毛病|完全|一点点|一点|半点|基本上|基本|几乎|根本|丝毫|从来"
    "|真的|目前|暂时|压根|任何|结果|并|也|都|倒|是|从|还|的|它|味|儿"
)
"""Words between a term and the negation at the end of its clause."""
_CHAR = f"(?:(?!{_BREAKS})[^ ,;!?。、~.])"
_ITEM = f"(?!有)(?:(?!0){_CHAR}){{1,7}}{ENUMERATES}"
_BEFORE = re.compile(
    f"(?=[{''.join(sorted(SIGNS))}会希])(?!{_NO_DENIAL})"
    f"(?:(?:(?:没有?|[不无未])有?(?:{_OPENERS})|{_FEARS}){_CHAR}{{0,{_FAR}}}"
    f"|(?:没有?|[不无未])(?:{_ITEM}){{1,3}}{_CHAR}{{0,{_NEAR}}}"
    f"|[零非{''.join(sorted(OWN))}]{_CHAR}{{0,{_NEAR}}})$"
)
_BREAK = re.compile(_BREAKS)
_DOUBLE = re.compile("没有?(?:一.{1,3}|[哪几].{1,4})?[不没]|不是[不没]|不可能[不没]|无一不|的是.{1,8}不")
_RHETORICAL = re.compile("怎么能|怎么可能|怎么敢|难道|谁说|还说|明明")
_CHOICE = re.compile("就是|是什么|吗")
_BEHIND = re.compile(
    f"(?:{_EMPHASIS})*+(?:没有?(?:出现|发现|闻到|见过|遇到|过)?|无|不存在)[的呢了啊哦吧过呀哈]*+"
)


def is_denied_before(plain: str, begin: int, end: int, start: int, behind: int) -> bool:
    """Return True if something before a term denies it.

    Args:
        plain: the characters as they are compared.
        begin, end: of the clause.
        start: of the term; of a term with two parts, of the second one.
        behind: the end of the term.
    """
    if _BEFORE.search(plain, max(0, start - REACH), start) is None or _BREAK.match(plain, start):
        return False
    first = max(begin, start - REACH)
    if _RHETORICAL.search(plain, first, start) or _DOUBLE.search(plain, first, start + 1):
        return False
    is_choice = plain.find("不是", first, start) >= 0 and _CHOICE.search(plain, behind, end) is not None
    return not is_choice and plain.find("才怪", behind, end) < 0


def is_denied_behind(plain: str, behind: int, end: int) -> bool:
    """Return True if something between a term and the end of its clause denies it.

    Args:
        plain: the characters as they are compared.
        behind: the end of the term.
        end: of the clause.
    """
    return _BEHIND.fullmatch(plain, behind, min(end, behind + REACH)) is not None
