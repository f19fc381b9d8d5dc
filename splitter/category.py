"""The category of a product, guessed from the words of its name.

``data/categories.txt`` lists words by category and by what they say of a name (`Says`). The longest word at a place
counts (王者荣耀 is a game, 荣耀 a maker of phones), wherever blanks stand. The kind of goods that a name mentions last
decides; if it mentions none, the product line, then the brand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from splitter.catalog.names import Category
from splitter.lexicon import data, rows
from splitter.normalize import drop_amounts, drop_asides, normalize

_NUMBER = re.compile(r"\d+")
_CHINESE = re.compile("[\u4e00-\u9fff]")


class Says(StrEnum):
    """What a word of the table says of a name."""

    GOODS = "goods"  # the kind of goods; the last one decides
    PACKED = "packed"  # the same, of food that is sold in shops, by restaurants' brands too
    PRODUCTS = "products"  # a product or line; the last one decides
    BRANDS = "brands"  # the first one decides
    PLATFORMS = "platforms"  # a shop or portal, which also sells what others make
    ENDS = "ends"  # a last character that tells the kind of goods
    SKIP = "skip"  # nothing, though it contains a word that would


@dataclass(frozen=True, slots=True)
class _Entry:
    category: Category | None
    says: Says


def guess_category(name: str, keywords: Sequence[str] = ()) -> Category | None:
    """Return the category that a name suggests; `None` if it suggests none.

    Args:
        name: of the product, as a person wrote it.
        keywords: its keywords. They are asked if the name suggests nothing.
    """
    text = normalize(name)
    for asked in (drop_amounts(drop_asides(text)), text, " ".join(keywords)):
        found = _category_of(asked)
        if found is not None:
            return found
    return None


def _category_of(text: str) -> Category | None:
    entries = list(_entries_in(text))
    by_kind: dict[Says, list[Category | None]] = {}
    for entry in entries:
        by_kind.setdefault(entry.says, []).append(entry.category)
    goods = [one for one in entries if one.says in (Says.GOODS, Says.PACKED, Says.ENDS)]
    brands = by_kind.get(Says.BRANDS, [])
    if goods:
        last = goods[-1]
        served = last.category is Category.FOOD and last.says is not Says.PACKED
        if served and Category.RESTAURANT in brands:
            return Category.RESTAURANT  # 瑞幸生椰拿铁, but not 瑞幸咖啡豆
        return last.category
    if products := by_kind.get(Says.PRODUCTS):
        return products[-1]
    if brands:
        return brands[0]
    if platforms := by_kind.get(Says.PLATFORMS):
        return platforms[-1]
    return _ending(text)


def _entries_in(text: str) -> Iterator[_Entry]:
    """Yield the entries of a text's words in order, the longest at each place.

    A last character that follows a word of the table tells the kind of goods, too: 咖啡 and 杯.
    """
    table = _table()
    letters, breaks = _without_blanks(text)
    place = 0
    after_entry = False
    while place < len(letters):
        length, entry = _longest(table, letters, breaks, place)
        ends_here = _is_end(letters, breaks, place + 1)
        if entry is None and after_entry and ends_here:
            length, entry = 1, _ends().get(letters[place])
        if entry is not None and entry.says is not Says.SKIP:
            yield entry
        after_entry = entry is not None
        place += max(length, 1)


def _longest(table: _Table, letters: str, breaks: frozenset[int], place: int) -> tuple[int, _Entry | None]:
    """Return the length and entry of the longest word of the table at a place; 0 and `None` if there is none."""
    if not _may_part(letters, breaks, place):
        return 0, None
    for length in range(min(table.longest, len(letters) - place), 0, -1):
        word = letters[place : place + length]
        entry = table.entries.get(word) or table.entries.get(_NUMBER.sub("#", word))
        if entry is not None and _may_end(letters, breaks, place + length):
            return length, entry
    return 0, None


def _may_part(letters: str, breaks: frozenset[int], place: int) -> bool:
    """Return True if a word may begin at a place: not inside a Latin word or a number."""
    if place == 0 or place in breaks:
        return True
    return not (_is_latin(letters[place - 1]) and _is_latin(letters[place]))


def _may_end(letters: str, breaks: frozenset[int], place: int) -> bool:
    """Return True if a word may end before a place: a number may follow its letters (Mate70)."""
    if place == len(letters) or place in breaks:
        return True
    before = letters[place - 1]
    after = letters[place]
    if before.isdigit():
        return not after.isdigit()
    return not (_is_latin(before) and _is_latin(after) and not after.isdigit())


def _is_latin(char: str) -> bool:
    return char.isalnum() and not _CHINESE.match(char)


def _is_end(letters: str, breaks: frozenset[int], place: int) -> bool:
    return place == len(letters) or place in breaks or not _CHINESE.match(letters[place])


def _ending(text: str) -> Category | None:
    """Return the category of the last character of a text's words, the last word first."""
    for word in reversed(text.split()):
        entry = _ends().get(word[-1])
        if len(word) > 1 and entry is not None:
            return entry.category
    return None


def _without_blanks(text: str) -> tuple[str, frozenset[int]]:
    """Return a text in lower case without its blanks, and the places before which they stood."""
    words = text.casefold().split()
    breaks: list[int] = []
    length = 0
    for word in words:
        length += len(word)
        breaks.append(length)
    return "".join(words), frozenset(breaks)


@dataclass(frozen=True, slots=True)
class _Table:
    """The words of ``data/categories.txt`` without blanks, in lower case; ``#`` stands for a number.

    Attributes:
        longest: characters of the longest word.
    """

    entries: Mapping[str, _Entry]
    longest: int


@cache
def _table() -> _Table:
    entries = {word: entry for word, entry in _read() if entry.says is not Says.ENDS}
    return _Table(entries, max(map(len, entries)))


@cache
def _ends() -> Mapping[str, _Entry]:
    return {word: entry for word, entry in _read() if entry.says is Says.ENDS}


def _read() -> Iterator[tuple[str, _Entry]]:
    """Yield the words of the table: of a line ``category kind<tab>word<tab>word``; ``-`` stands for no category."""
    for head, *words in rows(data("categories.txt")):
        name, kind = head.split(" ")
        entry = _Entry(None if name == "-" else Category(name), Says(kind))
        for word in words:
            yield "".join(word.casefold().split()), entry
