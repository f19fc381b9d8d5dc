"""Which words of a name identify the product: cutting, sorting out and, for long names, weighing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from splitter.dictionary import Role, user_words
from splitter.keyword_classifier import Model, classifier
from splitter.lexicon import Lexicon, lexicon
from splitter.measures import without_measures
from splitter.segment import Segmenter, segmenter
from splitter.word_weight import BRAND_RANK, PLACE_RANK, SINGLE_RANK, names_model, rank_of
from splitter.words import words_of

MAX_KEYWORDS = 5
"""Most keywords made from a name by itself (``--keywords`` may give more)."""

AT_ITS_WORD = 3
"""A name of up to so many words was chosen by a person: the model throws none of them away."""

ENOUGH = (0.3, 0.5, 0.3)
"""Least probability that a word of a long name is of a brand, a product, a model; lower where a miss costs more."""

_BRACKETS = re.compile(r"【([^【】]*)】|\[([^\[\]]*)\]|\(([^()]*)\)|〔([^〔〕]*)〕|\{([^{}]*)\}")
_LATIN_NAME = re.compile(r"[A-Za-z][A-Za-z .'&-]+")
_LONG_NUMBER = re.compile(r"\d{3,}(?:-\d+)*")
_PROPER = (Role.BRAND, Role.SERIES, Role.PRODUCT, Role.TRAIT)
_MARK = ","


def without_asides(text: str) -> str:
    """A name without what stands in brackets, unless that is a brand (方正（Founder）)."""
    return _BRACKETS.sub(_aside, text) if _BRACKETS.search(text) else text


def asides_in(text: str) -> list[str]:
    """What `without_asides` takes away, in order."""
    found = [(_inside(match), _aside(match)) for match in _BRACKETS.finditer(text)]
    return [inside for inside, left in found if inside and left == _MARK]


def _inside(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None).strip()


def _aside(found: re.Match[str]) -> str:
    inside = _inside(found)
    role = user_words().get(inside, (0, None))[1]
    keep = role in (Role.BRAND, Role.SERIES) or _LATIN_NAME.fullmatch(inside)
    return f" {inside} " if keep else _MARK


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds keywords in normalized names."""

    segmenter: Segmenter
    roles: Mapping[str, Role]
    lexicon: Lexicon
    model: Model

    def find(self, text: str) -> tuple[str, ...]:
        """The keywords of a name; none where nothing is left."""
        ranked = self.rank(words_of(self.segmenter, without_measures(text)))
        return best(without_contained(self.with_brand(ranked, text)))

    def rank(self, words: Sequence[str]) -> dict[str, float]:
        """The words that may be keywords, once, in their order, with their rank (0 says most).

        Args:
            words: of a name, with its punctuation marks.

        Returns:
            Of a name with few words, or with none that our dictionary doesn't know: all of them, ranked by their
            roles. Of another one (a shop's title): those that tell enough by the model, ranked by it, with brands
            we know in front.
        """
        words = self.without_companies(words)
        places, ranks = self.candidates(words)
        ruled = [(words[place], rank) for place, rank in zip(places, ranks, strict=True) if rank is not None]
        if self.plain([word for word, _ in ruled]):
            return self._once(ruled)
        values = self.values(words, places)
        enough = least_value(values)
        return self._once(
            # Where there are too many, a single character goes before longer words.
            (word, 1.0 / (1.0 + value) + (len(word) == 1 and not word.isascii()))
            for word, value in values.items()
            if value >= enough
        )

    def without_companies(self, words: Sequence[str]) -> Sequence[str]:
        """The words without what only says that a brand is a company, where more follows: 吉利汽车帝豪, 长城汽车H6."""
        company, roles = self.lexicon.company, self.roles
        short: dict[int, str] = {}
        for place, word in enumerate(words[:-1]):
            if word[-2:] in company and words[place + 1][0].isalnum():
                if roles.get(word) is Role.BRAND:
                    short[place] = word[:-2]
                elif word in company and place and roles.get(words[place - 1]) is Role.BRAND:
                    short[place] = _MARK
        return [short.get(place, word) for place, word in enumerate(words)] if short else words

    def candidates(self, words: Sequence[str]) -> tuple[list[int], list[int | None]]:
        """Where the words stand that may be keywords, and their ranks by role.

        A long number (the model of some shop's goods) has no rank: it takes part only where the model decides.
        """
        places: list[int] = []
        ranks: list[int | None] = []
        after_name = False  # a bare number or letter there is the number of a model: iPhone 15
        for place, word in enumerate(words):
            rank = rank_of(word, after_name=after_name)
            after_name = names_model(word, rank)
            if rank is not None or (word[:1].isdigit() and _LONG_NUMBER.fullmatch(word)):
                places.append(place)
                ranks.append(rank)
        return places, ranks

    def plain(self, words: Sequence[str]) -> bool:
        """Whether a name with these words is taken at its word: they are few, or our dictionary knows them all."""
        most = MAX_KEYWORDS if all(word in self.roles for word in words) else AT_ITS_WORD
        return len(words) <= most or len({word.casefold() for word in words}) <= most

    def values(self, words: Sequence[str], places: Sequence[int]) -> dict[str, float]:
        """How much the words at some places tell, each once at its best; 1 is just enough for a keyword."""
        values: dict[str, float] = {}
        for place, (brand, product, model) in zip(places, self.model.odds(words, places), strict=True):
            value = max(brand / ENOUGH[0], product / ENOUGH[1], model / ENOUGH[2])
            word = words[place]
            if value > values.get(word, 0.0):
                values[word] = value
        for word in self.proper_name(words):
            values[word] = 1.0 + max(values.get(word, 0.0), 1.0)
        return values

    def proper_name(self, words: Sequence[str]) -> list[str]:
        """The words of our dictionary that stand together with a brand or line: 蒙牛特仑苏纯牛奶."""
        found: list[str] = []
        run: list[str] = []
        branded = False
        for word in [*words, ","]:
            role = self.roles.get(word)
            if role in _PROPER:
                run.append(word)
                branded = branded or role in (Role.BRAND, Role.SERIES)
            elif role is not Role.NOISE:
                if branded:
                    found += run
                run, branded = [], False
        return found

    def _once(self, ranked: Iterable[tuple[str, float]]) -> dict[str, float]:
        """Each word once, in its one spelling."""
        once: dict[str, float] = {}
        seen: set[str] = set()
        for written, rank in ranked:
            word = self.lexicon.same.get(written, written)
            if (folded := word.casefold()) not in seen:
                seen.add(folded)
                once[word] = rank
        return once

    def with_brand(self, ranked: dict[str, float], text: str) -> dict[str, float]:
        """The words, after the brands that the name leaves out; of many, without a brand's second name."""
        if len(ranked) > AT_ITS_WORD:
            named = self.lexicon.brand_named
            twice = [
                word
                for word in ranked
                if named.get(word.lower(), word) != word and named[word.lower()] in ranked
            ]
            for word in twice:
                del ranked[word]
        brands = [brand for word in ranked if (brand := self.lexicon.brand_of.get(word))]
        if not brands:
            return ranked
        written = text.lower()
        names_of = self.lexicon.names_of
        missing = {brand: 0.0 for brand in brands if not any(name in written for name in names_of[brand])}
        return {**missing, **ranked}


def least_value(values: Mapping[str, float]) -> float:
    """The value that is enough for a keyword: 1, or that of the second best, so that two words stay."""
    return min(1.0, *sorted(values.values())[-2:])


def without_contained(ranked: dict[str, float]) -> dict[str, float]:
    """The words without those that another one contains: a page with 纯牛奶 has 牛奶 too."""
    longer = [word for word in ranked if len(word) > 2 and not word.isascii()]
    if not longer:
        return ranked
    for word, rank in list(ranked.items()):
        around = [other for other in longer if word in other and word != other]
        if around and not word.isascii():
            del ranked[word]
            for other in around:
                if other in ranked:
                    ranked[other] = min(ranked[other], rank)
    return ranked


def best(ranked: Mapping[str, float]) -> tuple[str, ...]:
    """At most MAX_KEYWORDS words, those that say most; places and single characters where little else is."""
    if len(ranked) <= MAX_KEYWORDS and max(ranked.values(), default=0) < SINGLE_RANK:
        return tuple(ranked)
    low = {SINGLE_RANK: sum(rank < SINGLE_RANK for rank in ranked.values()) < 3}
    low[PLACE_RANK] = not any(rank == BRAND_RANK or word.isascii() for word, rank in ranked.items())
    words = [word for word, rank in ranked.items() if rank < SINGLE_RANK or low[int(rank)]]
    if len(words) > MAX_KEYWORDS:
        most = set(sorted(words, key=ranked.__getitem__)[:MAX_KEYWORDS])
        words = [word for word in words if word in most]
    return tuple(words)


@cache
def finder() -> Finder:
    """The finder over the data that comes with the project."""
    model = classifier()
    return Finder(segmenter(), model.traits.roles, lexicon(), model)
