"""The trained model of long names: how likely each word belongs to a brand, a product word or a model.

A word is described by itself (role in our dictionary, length, characters, how common, which letters and
digits) and by its place (position, neighbours, repetition). Each description has three weights
(``data/keyword-weights.txt``), one each for brand, product word and model; their sums give the probabilities
(multinomial logistic regression; none of the three has the weight 0). Words seen often have weights of their own.
``docs/keywords.md`` has the making of the weights and their scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from math import exp

from splitter.lexicon import data, rows, title_role
from splitter.words import rarity

Odds = tuple[float, float, float]
"""Odds of a brand, a product word and a model."""

Weights = Mapping[str, Odds]

_LETTERS = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"[\d.%+-]+")


def word_traits(word: str) -> list[str]:
    """Traits of a word by itself."""
    known = title_role
    found = ["all", f"role {known(word)}", f"seen {look_up_role(word)}"]
    if word.isascii():
        found += [f"shape {_shape(word)}{min(len(word), 5)}", f"latin {word.casefold()}"]
        return found
    rare = rarity(word)
    found += [
        f"long {min(len(word), 5)}",
        f"last {word[-1]}",
        f"first {word[0]}",
        f"rare {'new' if rare is None else int(rare)}",
    ]
    if len(word) > 2:
        found += [f"ends {known(word[-2:])}", f"tail {word[-2:]}", f"head {word[:2]}"]
    found += [f"char {char}" for char in word]
    found += [f"chars {word[at : at + 2]}" for at in range(len(word) - 1)]
    found.append(f"word {word}")
    return found


def opening_trait(word: str) -> str:
    """The trait of a word that opens a name."""
    return f"opens {'latin' if word.isascii() else title_role(word)}"


def traits_beside(side: str, word: str) -> list[str]:
    """Return the traits that a word gives the word behind it ("before") or in front of it ("after")."""
    kind = neighbour_kind(word)
    found = [f"{side} {kind}", f"{side} seen {look_up_role(word)}"]
    if not word.isascii():
        found += [f"{side} {kind} {word[-1]}", f"{side} word {word}"]
    return found


def pair_traits(before: str, word: str, after: str) -> tuple[str, str, str, str]:
    """Return the traits that a word has with its neighbours, which are words or marks, empty at an end."""
    marks = [look_up_role(one).partition(" ")[0] if one else "" for one in (before, word, after)]
    return (
        f"pair {before} {word}",
        f"{word} pair {after}",
        f"pair seen {marks[0]} {marks[1]}",
        f"seen pair {marks[1]} {marks[2]}",
    )


def neighbour_kind(word: str) -> str:
    """Return the class of a word, as a trait of its neighbours."""
    if role := title_role(word):
        return role
    if not word[:1].isalnum():
        return "mark"
    return _shape(word) if word.isascii() else "word"


def _shape(word: str) -> str:
    if _LETTERS.fullmatch(word):
        return "letters"
    return "number" if _NUMBER.fullmatch(word) else "mixed"


class Model:
    """Gives words their odds: the weights of their traits, added up without naming each trait of a word's place.

    Sums of a word's own traits are remembered (of the last 65,536 words, not of names); a model may be shared
    by threads.
    """

    def __init__(self, weights: Weights) -> None:
        """Lays the weights out by place and neighbour."""
        self.weights = weights
        self._of_word = lru_cache(65_536)(self._word)
        self._sizes = self._table("of {}", 7)
        self._starts = self._table("from start {}", 5)
        self._ends = self._table("from end {}", 4)
        self._again = weights.get("again", _NONE)
        self._ending_again = weights.get("ending again", _NONE)
        self._mark = (weights.get("before mark", _NONE), weights.get("after mark", _NONE))

    def odds(self, words: Sequence[str], places: Sequence[int]) -> list[Odds]:
        """The probabilities that each of some words of a name belongs to a brand, a product, a model.

        Args:
            words: every word and mark of the name, in order.
            places: places of those words, ascending.
        """
        count = len(places)
        size = self._sizes[min(count // 3, 6)]
        endings = [words[place][-1] for place in places]
        folded = [words[place].casefold() for place in places]
        last = len(words) - 1
        found: list[Odds] = []
        of_word, mark, known = self._of_word, self._mark, self.weights
        for number, place in enumerate(places):
            word = words[place]
            itself, opens, _, _ = of_word(word)
            start, end = self._starts[min(number, 4)], self._ends[min(count - 1 - number, 3)]
            before = of_word(words[place - 1])[2] if place else mark[0]
            after = of_word(words[place + 1])[3] if place < last else mark[1]
            more = [opens] if not number else []
            beside = words[place - 1] if place else "", words[place + 1] if place < last else ""
            more += [known[pair] for pair in pair_traits(beside[0], word, beside[1]) if pair in known]
            if folded.count(folded[number]) > 1:
                more.append(self._again)
            if endings.count(word[-1]) > 1 and not word.isascii():
                more.append(self._ending_again)
            found.append(_shares(_total(itself, size, start, end, before, after, *more)))
        return found

    def odds_alone(self, word: str) -> Odds:
        """The same for a word without a name around it."""
        return _shares(self._of_word(word)[0])

    def _word(self, word: str) -> tuple[Odds, Odds, Odds, Odds]:
        """Weights of a word: by itself, opening a name, before and after another one."""
        return (
            self._sum(word_traits(word)) if word else _NONE,
            self._sum([opening_trait(word)]),
            self._sum(traits_beside("before", word)),
            self._sum(traits_beside("after", word)),
        )

    def _sum(self, traits: Sequence[str]) -> Odds:
        return _total(*(self.weights.get(trait, _NONE) for trait in traits))

    def _table(self, traits: str, size: int) -> list[Odds]:
        return [self.weights.get(traits.format(number), _NONE) for number in range(size)]


_NONE: Odds = (0.0, 0.0, 0.0)


def _total(*parts: Odds) -> Odds:
    brand, product, model = map(sum, zip(*parts, strict=True))
    return brand, product, model


def _shares(sums: Odds) -> Odds:
    """Return the probabilities that log odds stand for."""
    b, p, m = exp(min(sums[0], 50.0)), exp(min(sums[1], 50.0)), exp(min(sums[2], 50.0))
    whole = 1.0 + b + p + m
    return b / whole, p / whole, m / whole


@cache
def classifier() -> Model:
    """The model over the data that comes with the project."""
    return Model(parse_weights(data("keyword-weights.txt")))


def parse_weights(text: str) -> dict[str, Odds]:
    """Read weights: a line ``trait<tab>brand<tab>product<tab>model`` each."""
    return {
        trait: (float(brand), float(product), float(model)) for trait, brand, product, model in rows(text)
    }


# --- what words were marked as ------------------------------------------------------------------------------

UNSEEN = "none"
"""The mark of a word that is in none of those titles, or in few."""


def look_up_role(word: str) -> str:
    """Return what people marked a word as, most often, in shop titles of another collection.

    ``data/title-words.txt``, made by `research.training.train_title_words`, has a line for each mark and how often of
    four times a word has it: ``mark share<tab>word<tab>word``. Marks are the numbers of that collection (1 brand, 4
    product, 8 whom it is for, 12 material, ...), ``O`` for none, ``?`` for a part of more than one.

    Returns:
        The mark and its share in quarters: ``12 3``; ``12 rare`` of a rare word.
    """
    return title_marks().get(word.casefold(), UNSEEN)


@cache
def title_marks(text: str = "") -> Mapping[str, str]:
    """Return each word of a table, by default the one that comes with the project, with its mark and share."""
    return {word: mark for mark, *words in rows(text or data("title-words.txt")) for word in words}
