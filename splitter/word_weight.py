"""How much each word of a product name weighs: for choosing keywords, for dropping one, and for matching a page.

A word's weight follows from its role in our dictionary or, outside of it, from its look (letters, digits, length).
One table (`_WEIGHTS`) holds the three answers side by side. If they disagree, the figures of ``docs/keywords.md``
and of `reviewloop bench relevance` decided: a line outranks its brand on a page, which often omits the brand,
and yields to it in a query, because the line alone finds other things of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache

from splitter.keyword_classifier import classifier
from splitter.lexicon import Role, is_brand, lexicon, numbered_brand, roles
from splitter.words import greatest_rarity, rarity


class Look(StrEnum):
    """The look of a word outside our dictionary."""

    MODEL = "model"  # Latin letters or signs with digits: P30
    LATIN = "latin"
    NUMBER = "number"
    WORD = "word"  # two or more characters of another script
    SINGLE = "single"  # one of them


class Identity(IntEnum):
    """The part of a product's identity that a keyword is: the lowest is dropped first."""

    ATTRIBUTE = 0
    PRODUCT = 1
    LINE = 2
    BRAND = 3


SINGLE_RANK, PLACE_RANK = 4, 5
"""Ranks of words that are keywords only where little else is."""

BRAND_RANK = 0


@dataclass(frozen=True, slots=True)
class _Weight:
    """Weights of words of one role or look.

    Attributes:
        rank: in choosing keywords by rule; 0 comes first, None is never chosen.
        identity: in dropping keywords; None: as the classifier sees it.
        match: share of a page's match, before its neighbours are considered.
    """

    rank: int | None
    identity: Identity | None
    match: float


_BRAND_MATCH, _LINE_MATCH, _OTHER_MATCH = 2.0, 3.0, 0.6  # chosen by `reviewloop bench relevance`
_WEIGHTS: Mapping[Role | Look, _Weight] = {
    Role.BRAND: _Weight(BRAND_RANK, Identity.BRAND, _BRAND_MATCH),
    Role.PLATFORM: _Weight(BRAND_RANK, Identity.BRAND, _BRAND_MATCH),
    Role.SERIES: _Weight(BRAND_RANK, Identity.LINE, _LINE_MATCH),
    Role.PRODUCT: _Weight(1, Identity.PRODUCT, 2.0),
    Role.TRAIT: _Weight(2, Identity.ATTRIBUTE, 0.4),
    Role.PLACE: _Weight(PLACE_RANK, Identity.ATTRIBUTE, 0.4),
    Role.NOISE: _Weight(None, Identity.ATTRIBUTE, _OTHER_MATCH),
    Look.MODEL: _Weight(1, Identity.LINE, 4.0),
    Look.LATIN: _Weight(1, Identity.LINE, _BRAND_MATCH),
    Look.NUMBER: _Weight(1, Identity.LINE, _BRAND_MATCH),
    Look.WORD: _Weight(3, None, _OTHER_MATCH),
    Look.SINGLE: _Weight(SINGLE_RANK, None, 0.4),
}

_MODEL_NUMBER = re.compile(r"(?!0$|(?:19|20)\d\d)\d{1,4}|[A-Za-z]")
_AMOUNT = re.compile(r"[\d.%+-]+")
_CLASS = re.compile("[A-Za-z]级")
_SURE = 0.5  # least probability that a word outside our dictionary is no mere attribute
_ALL_NAMED = 2  # number of varieties that must all be on the page
_KIND_CHARS = 2  # a longer product word is one kind of its last two characters: 纯牛奶
_AFFIX_CHARS = 3  # of an affix of a model: Pro, GL, 15
_SHORT = 4  # of one that may be a name by itself: DM-i


def look_of(word: str) -> Look:
    """The look of a word."""
    if not word.isascii():
        if (word[0].isdigit() and word[0] != "0") or _CLASS.fullmatch(word) or numbered_brand(word):
            return Look.MODEL  # 3系, C级, 一加 15, but not 0蔗糖
        return Look.WORD if len(word) > 1 else Look.SINGLE
    if word.isdigit():
        return Look.NUMBER
    return Look.MODEL if " " in word or any(char.isdigit() for char in word) else Look.LATIN


def _weight_of(word: str) -> _Weight:
    return _WEIGHTS[roles().get(word) or look_of(word)]


# --- choosing keywords by rule ------------------------------------------------------------------------------


def rank_of(word: str, *, after_name: bool) -> int | None:
    """The rank of a word among the candidates for keywords; 0 comes first, None: it is no candidate.

    Args:
        word: of a name.
        after_name: the word before it is a brand, a line or a Latin name: a bare number or letter is then the number
            of a model (iPhone 15).
    """
    role = roles().get(word)
    if role is None:
        if not word or word.lower() in lexicon().noise or not word[0].isalnum():
            return None
        if _MODEL_NUMBER.fullmatch(word):
            return _WEIGHTS[Look.NUMBER].rank if after_name else None
        if _AMOUNT.fullmatch(word):
            return None
    return _weight_of(word).rank


def names_model(word: str, rank: int | None) -> bool:
    """Whether a bare number or letter after a word of this rank is the number of a model."""
    latin = rank == _WEIGHTS[Look.LATIN].rank and word.isascii()
    return rank == BRAND_RANK or (latin and not _MODEL_NUMBER.fullmatch(word))


# --- dropping a keyword -------------------------------------------------------------------------------------


def first_to_drop(keywords: Sequence[str]) -> int:
    """The place of the keyword that a query without hits drops first.

    Attributes go before product words, product words before lines and models, brands last. Of two words alike the more
    common goes first (jieba's dictionary counts how common), short letters and then numbers before other Latin words:
    iPhone & 15 & Pro loses Pro, then 15. Of equals the later one goes.

    Args:
        keywords: of one query, all of them.

    Raises:
        ValueError: there are fewer than two: the last one is never dropped.
    """
    if len(keywords) < 2:
        raise ValueError(f"{list(keywords)} has no keyword to spare: at least two are needed")

    def weight(place: int) -> tuple[Identity, float, int]:
        return identity_of(keywords[place]), _rarity(keywords[place]), -place

    return min(range(len(keywords)), key=weight)


def identity_of(word: str) -> Identity:
    """The part of a product's identity that a word is: by its role, its look, or as the classifier sees it."""
    if roles().get(word) is None and word.lower() in lexicon().brand_named:
        return Identity.BRAND
    identity = _weight_of(word).identity
    if identity is not None:
        return identity
    brand, product, model = classifier().odds_alone(word)
    if product < _SURE and rarity(word) is None:
        return Identity.BRAND  # in no dictionary: a name
    if brand + product + model < _SURE:
        return Identity.ATTRIBUTE
    return max((product, Identity.PRODUCT), (model, Identity.LINE), (brand, Identity.BRAND))[1]


def _rarity(word: str) -> float:
    """How rare a word is; a mere rank for short Latin letters and numbers."""
    if len(word) <= _AFFIX_CHARS and word.isascii():
        return 1.0 if word.isdigit() else 0.0
    rare = rarity(word)
    return greatest_rarity() if rare is None else rare


# --- matching a page ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchWeights:
    """Weights of the words of a keyword set in deciding whether a page is about the product.

    Attributes:
        weights: of each word.
        identifying: the page must hold at least one of these words.
        naming: words that distinguish it from its maker's other products, so that the page must hold them: its
            variety; if there is none, the product word, or half of the other words.
        least_named: how many of those.
        brands: of a set without variety: they must stand near another word of it.
        common: whether no word is a brand, a line or a model: such words stand on pages about anything.
    """

    weights: Mapping[str, float]
    identifying: frozenset[str]
    naming: tuple[str, ...]
    least_named: int
    brands: tuple[str, ...]
    common: bool


@lru_cache(maxsize=4096)
def match_weights(words: tuple[str, ...]) -> MatchWeights:
    """Return the weights of a keyword set's words on a page.

    A name begins with its brand, and its varieties follow: an unknown word takes its role from its place.
    """
    weights = {word: _weight_of(word).match for word in words}
    brands = [word for word in words if is_brand(word)]
    if not brands and weights[words[0]] == _OTHER_MATCH:
        weights[words[0]] = _BRAND_MATCH
    for word in brands:
        weights[word] /= len(brands)  # a maker and its brand (一汽 大众) weigh no more than one of them
    naming = last_variety(words)
    for word in varieties(words):
        weights[word] = (
            max(weights[word], _LINE_MATCH) if word in naming else min(weights[word], _OTHER_MATCH)
        )
    heavy = {word for word in words if weights[word] >= _BRAND_MATCH} | set(brands)
    own = () if naming else tuple(brands)
    least = len(naming) if len(naming) <= _ALL_NAMED else (len(naming) + 1) // 2
    if not naming:
        products = [word for word in words if roles().get(word) is Role.PRODUCT]
        whole = len(products) == 1 and len(products[0]) > _KIND_CHARS
        naming = tuple(products if whole else [word for word in words if roles().get(word) not in _SOURCES])
        least = (len(naming) + 1) // 2
    return MatchWeights(
        weights=weights,
        identifying=frozenset(word for word in heavy if roles().get(word) is not Role.PRODUCT)
        or frozenset(heavy or words),
        naming=naming,
        least_named=least,
        brands=own if len(own) < len(words) else (),
        common=not any(roles().get(word) in _OWN or _is_code(word) for word in words),
    )


@lru_cache(maxsize=4096)
def varieties(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a keyword set that name which of its maker's products it is, in order.

    They are its lines and models, its flavours (草莓味), and what stands between brand and kind of goods (红枣 in
    伊利红枣酸奶). A name without them (光明牛奶) means all that its maker has.
    """
    known = [roles().get(word) for word in words]
    kind = max((place for place, role in enumerate(known) if role is Role.PRODUCT), default=len(words))
    if kind == len(words) and Role.SERIES not in known and identity_of(words[-1]) is Identity.PRODUCT:
        kind -= 1
    found: list[str] = []
    branded = modelled = False
    for place, word in enumerate(words):
        role, look = roles().get(word), look_of(word)
        named = role is Role.SERIES or (role is Role.TRAIT and word.endswith("味"))
        if role is None and word.lower() not in lexicon().brand_named:
            if look is Look.LATIN:
                named = branded or bool(found)
            else:
                model = look in (Look.MODEL, Look.NUMBER)
                named = model or (branded and not modelled and place != kind)
                modelled = modelled or model
        if named:
            found.append(word)
        branded = branded or role in _OWN
    return tuple(found)


def last_variety(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the last of a keyword set's varieties; an affix (GL, 15) with the one before it; all of more than two."""
    found = varieties(words)
    if len(found) > _ALL_NAMED:
        return found
    for place in range(len(found) - 1, -1, -1):
        word = found[place]
        if not (word.isascii() and len(word) <= _SHORT) or look_of(word) is Look.MODEL:
            return found[place:]
    return found


@lru_cache(maxsize=4096)
def distinguishing_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that distinguish a product from its maker's near ones: its varieties, and words that
    are in no dictionary; none if it has no variety."""
    found = varieties(words)
    return tuple(word for word in words if word in found or roles().get(word) is None) if found else ()


_OWN, _SOURCES = (Role.BRAND, Role.PLATFORM, Role.SERIES), (Role.BRAND, Role.PLATFORM, Role.PLACE)


def _is_code(word: str) -> bool:
    """Return True for a word that looks like a name or a model: P30, Labubu, but not usb."""
    look = look_of(word)
    return look in (Look.MODEL, Look.NUMBER) or (look is Look.LATIN and len(word) > _AFFIX_CHARS)
