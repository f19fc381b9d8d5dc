"""Whether a page is about a product: the product match, and what a page is to a product.

A page matches a product if it holds enough of a keyword set: the words of the product's name, or of one of its
aliases, weighed by what they tell (a model most, an attribute least), and of those that identify it at least one.
The weights and the share are chosen by `reviewloop bench relevance`. The page as a whole is asked (its title and all
its reviews): the posts of a thread rarely repeat what it is about. All pure: text in, decision out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from splitter.dictionary import Role, user_words
from splitter.lexicon import lexicon
from splitter.normalize import normalize

LEAST_SHARE = 0.51
"""Share of a keyword set's weight that a page must hold (`reviewloop bench relevance`)."""

TEXT_CHARS = 20_000
"""Characters of a page that are looked at."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")


class Verdict(StrEnum):
    """What a page is to a product."""

    REVIEW = "review"
    WRONG_PRODUCT = "wrong_product"
    NO_REVIEW = "no_review"


@dataclass(frozen=True, slots=True)
class Naming:
    """Whether a page names a product.

    Attributes:
        missing: words of the keyword set nearest to it that the page does not hold.
    """

    named: bool
    missing: tuple[str, ...]


def spoken(title: str, reviews: Iterable[tuple[str, str]]) -> str:
    """What a page says, written the one way, to be asked for words.

    Args:
        title: of the page.
        reviews: title and body of each, in their order.
    """
    parts, left = [title], TEXT_CHARS - len(title)
    for heading, body in reviews:
        if left <= 0:
            break
        parts += [heading, body[:left]]
        left -= len(heading) + len(body)
    return normalize("\n".join(parts)).casefold()


def naming(keyword_sets: Sequence[Sequence[str]], text: str) -> Naming:
    """Whether a text (of `spoken`) names what one of the keyword sets stands for; no sets: everything does."""
    best: tuple[float, tuple[str, ...]] | None = None
    for words in keyword_sets:
        share, missing = _held(tuple(words), text)
        if best is None or share > best[0]:
            best = share, missing
    if best is None:
        return Naming(True, ())
    return Naming(best[0] >= LEAST_SHARE, best[1])


def _held(words: tuple[str, ...], text: str) -> tuple[float, tuple[str, ...]]:
    """Share of the words' weight that a text holds, 0 where it holds none that identifies; and the words it lacks."""
    weights, identifying = _weights(words)
    missing = tuple(word for word in words if not holds(text, word))
    if identifying.issubset(missing):
        return 0.0, missing
    return 1 - sum(weights[word] for word in missing) / sum(weights.values()), missing


_LINE, _MODEL, _BRAND, _KIND, _OTHER, _LITTLE = 3.0, 4.0, 2.0, 2.0, 0.6, 0.4
_OF_ROLE = {
    Role.BRAND: _BRAND,
    Role.SERIES: _LINE,
    Role.PRODUCT: _KIND,
    Role.TRAIT: _LITTLE,
    Role.PLACE: _LITTLE,
}


@lru_cache(maxsize=4096)
def _weights(words: tuple[str, ...]) -> tuple[Mapping[str, float], frozenset[str]]:
    """What each word tells, as a weight; and those words of which a page must hold one.

    A name begins with its brand, and its model follows: an unknown word is taken for what stands in its place.
    """
    roles = [_roles().get(word) for word in words]
    weights: dict[str, float] = {}
    for place, (word, role) in enumerate(zip(words, roles, strict=True)):
        weight = _weight(word, role)
        if role is None and weight == _OTHER:
            if place and roles[place - 1] is Role.BRAND:
                weight = _LINE
            elif not place and Role.BRAND not in roles:
                weight = _BRAND
        weights[word] = weight
    brands = roles.count(Role.BRAND)
    telling = {word: role for word, role in zip(words, roles, strict=True) if weights[word] >= _BRAND}
    identifying = {word for word, role in telling.items() if role is not Role.PRODUCT}
    for word, role in zip(words, roles, strict=True):
        if role is Role.BRAND:
            weights[word] /= brands  # a maker and its brand (一汽 大众) tell no more than one of them
    return weights, frozenset(identifying or telling or words)


def _weight(word: str, role: Role | None) -> float:
    if role is not None:
        return _OF_ROLE.get(role, _OTHER)
    if word.isascii():
        return _MODEL if not word.isdigit() and any(char.isdigit() for char in word) else _BRAND
    return _OTHER if len(word) > 1 else _LITTLE


@cache
def _roles() -> dict[str, Role]:
    return {word: role for word, (_, role) in user_words().items()}


def share(words: Sequence[str], text: str) -> float:
    """Share of a keyword set's weight that a text holds; 0 where it holds none of the words that tell most."""
    return _held(tuple(words), text)[0]


def holds(text: str, word: str) -> bool:
    """Whether a text (of `spoken`) holds a keyword, in any of its spellings."""
    return any(one.search(text) for one in _patterns(word))


@lru_cache(maxsize=8192)
def _patterns(word: str) -> tuple[re.Pattern[str], ...]:
    """How a word may be written: as it is, as its brand is written elsewhere, as another spelling, or by its head."""
    known = lexicon()
    spellings = {word, *known.names_of.get(word, ())}
    spellings |= {other for other, one in known.same.items() if one == word}
    if _roles().get(word) == Role.BRAND:
        spellings |= {line for line, brand in known.brand_of.items() if brand == word}
    if _roles().get(word) == Role.PRODUCT and len(word) > 2 and _CHINESE.fullmatch(word[-1]):
        spellings.add(word[-2:])  # 纯牛奶: people say 牛奶
    return tuple(_pattern(spelling.casefold()) for spelling in sorted(spellings))


def _pattern(word: str) -> re.Pattern[str]:
    """Letters and digits stand for themselves only as a whole: 11 is not in 2011, mate not in estimate."""
    before = r"(?<![a-z])" if re.match("[a-z]", word) else r"(?<![\d.])" if word[:1].isdigit() else ""
    after = r"(?![a-z])" if re.search("[a-z]$", word) else r"(?![\d.]\d|\d)" if word[-1:].isdigit() else ""
    return re.compile(before + re.escape(word) + after)
