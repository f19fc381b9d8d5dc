"""What stands in a name for how much, how many and when: found, so that it does not become a keyword.

Sizes (250ml), counts (12盒/箱), products of both (1x16x400g), stages (1段), ages (8-36个月), dates (7月产,
20年3月) and percentages.
"""

from __future__ import annotations

import re

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
_AMOUNT = rf"{_NUMBER}\s?{_UNIT}{{1,2}}"
_TIMES = r"\s?[*x×]\s?"
_MORE = rf"(?:(?:{_TIMES}|\s?[/+~-]\s?)?(?:{_AMOUNT}|(?<=[*x×]){_NUMBER})|\s?/\s?{_UNIT})"
_MEASURE = re.compile(
    rf"(?<![a-z0-9.])"
    rf"(?!3m(?![a-z0-9])|58同|360(?!\s?(?:ml|g|克)))"  # brands that begin like an amount
    rf"(?:{_NUMBER}\s?[~-]\s?)?"
    rf"(?:{_AMOUNT}|{_NUMBER}{_TIMES}(?=\d)){_MORE}*(?:装|产|底|初|起)?"
    r"|(?<![\d.])[0-6]\s?段|[一二三四]段(?!式)"
    r"|[一二三四五六七八九十两]+(?:盒|瓶|袋|罐|听|箱|桶)装?"
    r"|[*×]\s?\d+(?![a-z0-9])",
    re.IGNORECASE,
)


def without_measures(text: str) -> str:
    """A name (normalized) with a comma wherever an amount, a stage or a date stood."""
    return _MEASURE.sub(",", text)


def measures_in(text: str) -> list[str]:
    """The amounts, stages and dates of a name (normalized), in their order."""
    return [found.group().strip() for found in _MEASURE.finditer(text)]
