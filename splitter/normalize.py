"""One way of writing for every name: half-width, simplified, without emoji and control characters."""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import cache
from types import ModuleType

_PLAIN = re.compile("[\u4e00-\u9fa5 -_a-z{|}~【】《》「」、。]*")  # nothing here is changed by any rule below
_MARKS = re.compile("[™®©℠]")  # NFKC would turn them into letters of the word before
_KEYCAPS = re.compile("[\ufe00-\ufe0f\u20e3]")
# GB2312 holds simplified characters only, but for these, which stand for another one (乾, 後).
_DOUBTFUL = frozenset("乾吒夥後徵拚捱摺於榘渖甯菸薹谘醣醯钜锺镟馀麴麽")


def normalize(text: str) -> str:
    """Writes a name the one way: the same product typed in different ways gives the same text.

    Full-width characters become half-width (NFKC), traditional ones simplified, emoji
    a blank; control, format and unassigned characters go; runs of blanks become one, none at the ends.
    """
    if not _PLAIN.fullmatch(text):
        text = unicodedata.normalize("NFKC", _MARKS.sub(" ", text))
        text = _KEYCAPS.sub("", text)
        if not text.isprintable() or not text.isascii():
            text = "".join(map(_kept, text))
    if _may_be_traditional(text):
        text = _zhconv().convert(text, "zh-hans")
    return " ".join(text.split())


def _kept(char: str) -> str:
    category = unicodedata.category(char)
    if char.isspace() or category in ("So", "Sk"):
        return " "
    return "" if category[0] == "C" else char


def _may_be_traditional(text: str) -> bool:
    if not _DOUBTFUL.isdisjoint(text):
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
