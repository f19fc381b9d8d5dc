"""The category of a product, guessed from the words of its name.

``data/categories.txt`` lists words by category and by their meaning in a name (`Says`). The longest word at a place
counts (王者荣耀 is a game, 荣耀 a maker of phones), wherever blanks stand. The kind of goods that a name mentions last
decides; if it mentions none, the product line, then the brand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache

from splitter.catalog.names import Category
from splitter.lexicon import data, rows
from splitter.normalize import drop_amounts, drop_asides, normalize


class Says(StrEnum):
    """The meaning of a word of the table in a name."""

    GOODS = "goods"  # the kind of goods; the last one decides
    PACKED = "packed"  # the same, of food that is sold in shops, by restaurants' brands too
    PRODUCTS = "products"  # a product or line; the last one decides
    BRANDS = "brands"  # the first one decides
    PLATFORMS = "platforms"  # a shop or portal, which also sells what others make
    ENDS = "ends"  # a last character that names the kind of goods
    SKIP = "skip"  # nothing, though it contains a word that would


_Entry = tuple[Category | None, Says]

_LONGEST = 24  # characters of a word of the table, blanks among them
_NUMBER = re.compile(r"\d+")
_STARTS_INSIDE = re.compile(r"[a-z0-9]{2}")
_ENDS_INSIDE = re.compile(r"[a-z]{2}|\d{2}")  # a number may follow its letters: Mate70


def guess_category(name: str, keywords: Sequence[str] = ()) -> Category | None:
    """Return the category that a name suggests; `None` if it suggests none.

    Args:
        name: of the product, as a person wrote it.
        keywords: its keywords. They are asked if the name suggests nothing.
    """
    text = normalize(name)
    for asked in (drop_amounts(drop_asides(text)), text, " ".join(keywords)):
        found = _category_of(asked.casefold())
        if found is not None:
            return found
    return None


def is_goods(word: str) -> bool:
    """Return True for a word that is a kind of goods."""
    _, says = _table().get(word.casefold(), (None, Says.SKIP))
    return says in (Says.GOODS, Says.PACKED)


def _category_of(text: str) -> Category | None:
    entries = list(_entries_in(text))

    def entries_of(*kinds: Says) -> list[_Entry]:
        return [entry for entry in entries if entry[1] in kinds]

    brands = entries_of(Says.BRANDS)
    last = (entries_of(Says.GOODS, Says.PACKED, Says.ENDS) or entries_of(Says.PRODUCTS))[-1:]
    if last == [(Category.FOOD, Says.GOODS)] and (Category.RESTAURANT, Says.BRANDS) in brands:
        return Category.RESTAURANT  # 瑞幸生椰拿铁, but not 瑞幸咖啡豆
    endings = [_table().get(f"-{word[-1]}") for word in text.split() if len(word) > 1]
    decisive = last or brands[:1] or entries_of(Says.PLATFORMS)[-1:] or list(filter(None, endings))[-1:]
    return decisive[0][0] if decisive else None


def _entries_in(text: str) -> Iterator[_Entry]:
    """Yield the entries of a text's words in order, the longest at each place.

    A last character that follows a word of the table also tells the kind of goods: 咖啡 and 杯.
    """
    table = _table()
    end = 0
    after_entry = False
    while end < len(text):
        place = end
        end, entry = _longest(text, place)
        if entry is None and after_entry and not text[end : end + 1].isalpha():
            entry = table.get(f"-{text[place]}")
        after_entry = entry is not None
        if entry is not None and entry[1] is not Says.SKIP:
            yield entry


def _longest(text: str, place: int) -> tuple[int, _Entry | None]:
    """Return the end and entry of the longest word of the table at a place; the next place if there is none."""
    starts_inside = place > 0 and _STARTS_INSIDE.fullmatch(text[place - 1 : place + 1])
    if not starts_inside:
        for end in range(min(len(text), place + _LONGEST), place, -1):
            word = text[place:end].replace(" ", "")
            entry = _table().get(word) or _table().get(_NUMBER.sub("#", word))
            if entry is not None and not _ENDS_INSIDE.fullmatch(text[end - 1 : end + 1]):
                return end, entry
    return place + 1, None


@cache
def _table() -> Mapping[str, _Entry]:
    """Return the words of ``data/categories.txt`` without blanks, in lower case; ``-`` stands before a last character.

    A line is ``category kind<tab>word<tab>word``. In its words ``#`` stands for a number; ``-`` is no category.
    """
    table: dict[str, _Entry] = {}
    for head, *words in rows(data("categories.txt")):
        name, kind = head.split(" ")
        entry = (None if name == "-" else Category(name), Says(kind))
        before = "-" if kind == Says.ENDS else ""
        table |= {before + "".join(word.casefold().split()): entry for word in words}
    return table
