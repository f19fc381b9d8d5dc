"""The category of a product, guessed from its keywords."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from splitter.catalog.names import Category
from splitter.lexicon import data, rows

_MODEL = re.compile(r"[ \d]")


def guess_category(keywords: Sequence[str]) -> Category | None:
    """Return the category that a name's keywords suggest; None if they suggest none.

    The last words say what kind of goods it is, so they decide; a word that the table lacks counts by its longest end
    of two or more characters there (红烧牛肉面 by 牛肉面), a model by its letters (iPhone 17 Air, Mate70).
    """
    known = _categories()
    for word in map(str.casefold, reversed(keywords)):
        ends = [
            word,
            word.partition(" ")[0],
            _MODEL.split(word)[0],
            *(word[at:] for at in range(1, len(word) - 1)),
        ]
        if found := next((known[end] for end in ends if end in known), None):
            return found
    return None


@cache
def _categories() -> Mapping[str, Category]:
    """The words of ``data/categories.txt``: a line for each category, ``category<tab>word<tab>word``."""
    return {
        word.casefold(): Category(name) for name, *words in rows(data("categories.txt")) for word in words
    }
