"""What people marked a word as in shop titles of another collection: a trait of the classifier.

``data/title-words.txt``, made by `research.training.train_title_words`, has a line for each mark and how often of four
times a word has it: ``mark share<tab>word<tab>word``. Marks are the numbers of that collection
(1 brand, 4 product, 8 whom it is for, 12 material, ...), ``O`` for none, ``?`` for a part of more than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

UNSEEN = "none"
"""The mark of a word that is in none of those titles, or in few."""


def seen_as(word: str) -> str:
    """The mark of a word that it has most often, and its share in quarters: ``12 3``; ``12 rare`` of a rare word."""
    return _marks().get(word.casefold(), UNSEEN)


def mark_of(seen: str) -> str:
    """The mark without its share."""
    return seen.partition(" ")[0]


@cache
def _marks() -> Mapping[str, str]:
    text = files("splitter").joinpath("data/title-words.txt").read_text("utf-8")
    return parse_title_words(text)


def parse_title_words(text: str) -> dict[str, str]:
    """Reads the table: each word with its mark and share."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            mark, *words = line.split("\t")
            found |= dict.fromkeys(words, mark)
    return found
