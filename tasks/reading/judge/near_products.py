"""Near products compete: of a page that matches several products of one brand, the one that it names best has it.

Two products are near if their names share a brand, or the first word of a model, and each has a line or a model
(`splitter.word_weight.distinguishing_words`) that is not the other's. A name without one (光明牛奶) means all that its
maker has, and competes with none. All pure; which comes first makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from splitter.lexicon import is_brand, lexicon, numbered_brand
from splitter.word_weight import distinguishing_words

from tasks.reading.judge.product_match import OPENING, matchable_text, matched_share, namings

_TOGETHER = 4
"""Characters between two words that make up one name."""

_OUTDOES = 2
"""A page names a product better that it names so many times as often."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A product's keyword set, its brands, and the words that tell it from near products."""

    words: tuple[str, ...]
    brands: frozenset[str]
    distinguishing: tuple[str, ...]


def outdone(products: Sequence[Sequence[Sequence[str]]], text: str, title: str = "") -> list[bool]:
    """Of each product whether a near one has the page.

    Args:
        products: keyword sets of each; each matches the page.
        text: of the page (`tasks.reading.judge.product_match.matchable_text`).
        title: of the page; without one, its text opens it.
    """
    opening = len(matchable_text(title, ())) or OPENING
    names = [_best(sets, text) for sets in products]
    found = [
        any(other is not name and _outdoes(other, name, text, opening) for other in names) for name in names
    ]
    return [False] * len(found) if all(found) else found


def _best(sets: Sequence[Sequence[str]], text: str) -> _Name:
    return _name(max(map(tuple, sets), key=lambda words: matched_share(words, text), default=()))


@lru_cache(maxsize=4096)
def _name(keywords: tuple[str, ...]) -> _Name:
    words = tuple(dict.fromkeys(keywords))
    brands = set(filter(is_brand, words)) | set(filter(None, map(numbered_brand, words)))
    brands |= {lexicon().brand_of[word] for word in words if word in lexicon().brand_of}
    distinguishing = distinguishing_words(words)
    if distinguishing and not brands:
        brands = {distinguishing[0].split()[0].casefold()}
    return _Name(words, frozenset(brands), distinguishing)


def _near(a: _Name, b: _Name) -> bool:
    return bool(
        a.distinguishing
        and b.distinguishing
        and a.brands & b.brands
        and set(a.distinguishing) != set(b.distinguishing)
    )


def _outdoes(a: _Name, b: _Name, text: str, opening: int) -> bool:
    """Whether a text names one of two products better: where it opens it names that one alone, or it names it more.

    Args:
        opening: characters of the text.
    """
    if not _near(a, b):
        return False
    of_a, of_b = _named(a, b, text), _named(b, a, text)
    opens_a, opens_b = (any(at < opening for at in found) for found in (of_a, of_b))
    if opens_a is not opens_b:
        return opens_a
    return bool(of_a) and len(of_a) >= _OUTDOES * len(of_b)


def _named(one: _Name, other: _Name, text: str) -> list[int]:
    """The places where a text names a product, and not the other one.

    Each of the words that the other has not must be there, and the rarest counts. Where it has none of its own, its
    words count where those of the other are not beside them: 真果粒, but not in 真果粒花果轻乳.
    """
    own = [word for word in one.distinguishing if word not in other.distinguishing]
    if own:
        return min(([at for at, _ in namings(text, word, one.words)] for word in own), key=len)
    others = [
        span
        for word in other.distinguishing
        if word not in one.distinguishing
        for span in namings(text, word, other.words)
    ]
    spans = min((namings(text, word, one.words) for word in one.distinguishing), key=len)
    return [
        begin
        for begin, end in spans
        if not any(
            (end - 1 < to and at < end + _TOGETHER) or at < begin <= to + _TOGETHER for at, to in others
        )
    ]
