"""From a product name to the words that must all be on a page about it (AND keywords).

The words of a name are cut, then sorted out: sizes, counts, stages, promotion, packaging and asides in
brackets go, spellings of one thing become one, a brand the name leaves out is put in front. What remains
keeps its order. Of a name with more than ``MAX_KEYWORDS`` words left, those that identify it stay: brand
and line, then what it is, then its attributes; a search for a dozen words at once finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from splitter.dictionary import Role, user_words
from splitter.errors import ProductNameError
from splitter.lexicon import Lexicon, lexicon
from splitter.measures import without_measures
from splitter.normalize import normalize
from splitter.segment import Segmenter, segmenter

MAX_NAME = 200
"""Longest name taken, in characters."""

MAX_KEYWORDS = 6
"""Most keywords made from a name by itself (``--keywords`` may give more)."""

_PIECE = re.compile(r"\w[\w+#&.%'-]*|[^\w\s]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_BRACKETS = re.compile(r"【([^【】]*)】|\[([^\[\]]*)\]|\(([^()]*)\)|〔([^〔〕]*)〕|\{([^{}]*)\}")
_LATIN_NAME = re.compile(r"[A-Za-z][A-Za-z .'&-]+")
_MODEL_NUMBER = re.compile(r"(?!(?:19|20)\d\d)\d{1,4}|[A-Za-z]")
_NUMBER = re.compile(r"[\d.%+-]+")
_RANK = {Role.BRAND: 0, Role.SERIES: 0, Role.PRODUCT: 1, Role.TRAIT: 2}
_LATIN, _OTHER, _SINGLE, _PLACE = 1, 3, 4, 5


def keywords_of(name: str, *, override: Sequence[str] = ()) -> tuple[str, ...]:
    """The AND keywords of a product name.

    Args:
        name: as a person wrote it.
        override: the keywords themselves, where a person gave them: written the one way, otherwise untouched.

    Returns:
        At least one keyword, none empty, none twice, in the order of the name; an added brand first.

    Raises:
        ProductNameError: the name is empty, over 200 characters, or leaves no keyword.
    """
    shown = name.strip()
    if not shown:
        raise ProductNameError("the product name is empty; write one such as 光明高钙牛奶")
    if len(shown) > MAX_NAME:
        raise ProductNameError(
            f"the product name {shown[:20]}... has {len(shown)} characters; write at most {MAX_NAME}"
        )
    if override:
        return _overridden(shown, override)
    text = normalize(shown)
    finder = _finder()
    words = finder.find(_without_asides(text)) or finder.find(text)
    if not words:
        raise ProductNameError(
            f"the product name {shown!r} leaves no keyword (sizes, counts, promotion and packaging "
            "don't count); name brand and product, or give keywords with --keywords"
        )
    return words


def _overridden(name: str, override: Sequence[str]) -> tuple[str, ...]:
    words: dict[str, str] = {}
    for word in map(normalize, override):
        if word:
            words.setdefault(word.casefold(), word)
    if not words:
        raise ProductNameError(f"no keyword is given for {name!r}; write --keywords 光明,牛奶")
    return tuple(words.values())


def _without_asides(text: str) -> str:
    """A name without what stands in brackets, unless that is a brand (方正（Founder）)."""
    return _BRACKETS.sub(_aside, text) if _BRACKETS.search(text) else text


def _aside(found: re.Match[str]) -> str:
    inside = next(part for part in found.groups() if part is not None).strip()
    role = user_words().get(inside, (0, None))[1]
    keep = role in (Role.BRAND, Role.SERIES) or _LATIN_NAME.fullmatch(inside)
    return f" {inside} " if keep else ","


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds keywords in normalized names."""

    segmenter: Segmenter
    roles: dict[str, Role]
    lexicon: Lexicon

    def find(self, text: str) -> tuple[str, ...]:
        """The keywords of a name; none where nothing is left."""
        ranked = self._ranked(without_measures(text))
        ranked = _without_contained(self._with_brand(ranked, text))
        return _best(ranked)

    def _ranked(self, text: str) -> dict[str, int]:
        """Every word that may be a keyword, once, in its order, with its rank (0 says most)."""
        ranked: dict[str, int] = {}
        seen: set[str] = set()
        after_name = False  # a bare number or letter there is the number of a model: iPhone 15
        for word in self._words(text):
            rank = self._rank(word, after_name)
            after_name = rank == 0 or (
                rank == _LATIN and word.isascii() and not _MODEL_NUMBER.fullmatch(word)
            )
            if rank is None:
                continue
            word = self.lexicon.same.get(word, word)
            if (folded := word.casefold()) not in seen:
                seen.add(folded)
                ranked[word] = rank
        return ranked

    def _words(self, text: str) -> list[str]:
        """The words of a text in their order; punctuation stands for itself."""
        words: list[str] = []
        cut = self.segmenter.cut_block
        for piece in _PIECE.findall(text):
            if piece.isascii():
                words.append(piece.strip("+#&.%'-") if len(piece) > 1 else piece)
            else:
                words += _joined(cut(piece))
        return words

    def _rank(self, word: str, after_name: bool) -> int | None:
        """How much a word says (0 most); None where it is no keyword."""
        role = self.roles.get(word)
        if role is not None:
            return _RANK.get(role, _PLACE if role is Role.PLACE else None)
        if not word or word.lower() in self.lexicon.noise or not word[0].isalnum():
            return None
        if _MODEL_NUMBER.fullmatch(word):
            return _LATIN if after_name else None
        if _NUMBER.fullmatch(word):
            return None
        if word.isascii():
            return _LATIN
        return _OTHER if len(word) > 1 else _SINGLE

    def _with_brand(self, ranked: dict[str, int], text: str) -> dict[str, int]:
        """The words, after the brands that the name leaves out."""
        brands = [brand for word in ranked if (brand := self.lexicon.brand_of.get(word))]
        if not brands:
            return ranked
        written = text.lower()
        names_of = self.lexicon.names_of
        missing = {brand: 0 for brand in brands if not any(name in written for name in names_of[brand])}
        return {**missing, **ranked}


def _joined(words: list[str]) -> list[str]:
    """Words of one piece, with what was cut inside a word in Latin or another script put together again."""
    joined: list[str] = []
    letters = ""
    for word in words:
        if "\u4e00" <= word[0] <= "\u9fff" or _CHINESE.search(word):
            if letters:
                joined.append(letters.strip("+#&.%'-_"))
                letters = ""
            joined.append(word)
        else:
            letters += word
    if letters:
        joined.append(letters.strip("+#&.%'-_"))
    return joined


def _without_contained(ranked: dict[str, int]) -> dict[str, int]:
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


def _best(ranked: dict[str, int]) -> tuple[str, ...]:
    """At most MAX_KEYWORDS words, those that say most; places and single characters where little else is."""
    if len(ranked) <= MAX_KEYWORDS and max(ranked.values(), default=0) < _SINGLE:
        return tuple(ranked)
    low = {_SINGLE: sum(rank < _SINGLE for rank in ranked.values()) < 3}
    low[_PLACE] = not any(rank == 0 or word.isascii() for word, rank in ranked.items())
    words = [word for word, rank in ranked.items() if low.get(rank, True)]
    if len(words) > MAX_KEYWORDS:
        best = set(sorted(words, key=ranked.__getitem__)[:MAX_KEYWORDS])
        words = [word for word in words if word in best]
    return tuple(words)


@cache
def _finder() -> _Finder:
    roles = {word: role for word, (_, role) in user_words().items()}
    return _Finder(segmenter(), roles, lexicon())
