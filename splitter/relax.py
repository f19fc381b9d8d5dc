"""Which keyword a query without hits gives up first: the least telling one.

Attributes go before product words, product words before lines and models, brands last. Of two words of one kind the
more common goes first (jieba's dictionary counts how common), short letters and then numbers before other Latin words:
iPhone & 15 & Pro loses Pro, then 15. Of equals the later one goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from splitter.dictionary import Role
from splitter.finder import Finder, finder

_SURE = 0.5  # least probability that a word outside our dictionary is no mere attribute

_SHORT = 3  # characters of an affix of a model: Pro, GL, 15


class Kind(IntEnum):
    """What a keyword is to a query; a greater one tells more."""

    ATTRIBUTE = 0
    PRODUCT = 1
    LINE = 2
    BRAND = 3


_KIND_OF = {Role.BRAND: Kind.BRAND, Role.SERIES: Kind.LINE, Role.PRODUCT: Kind.PRODUCT}


def least_telling(keywords: Sequence[str]) -> int:
    """The place of the keyword to drop first.

    Args:
        keywords: of one query, all of them.

    Raises:
        ValueError: there are fewer than two: the last one is never dropped.
    """
    if len(keywords) < 2:
        raise ValueError(f"{list(keywords)} has no keyword to spare: at least two are needed")
    known = finder()
    return min(range(len(keywords)), key=lambda place: _worth(known, keywords[place], place))


def kind_of(keyword: str) -> Kind:
    """What a keyword is, by our dictionary, its letters and digits, or its likeliest part by the model."""
    return _kind(finder(), keyword)


def _worth(known: Finder, keyword: str, place: int) -> tuple[Kind, float, int]:
    """How much a keyword tells, for comparison."""
    return _kind(known, keyword), _rarity(known, keyword), -place


def _rarity(known: Finder, keyword: str) -> float:
    """How rare a word is: its negative log probability; as a rank only for short Latin letters and numbers."""
    if len(keyword) <= _SHORT and keyword.isascii():
        return 1.0 if keyword.isdigit() else 0.0
    dictionary = known.segmenter.dictionary
    return -(dictionary.weights.get(keyword) or dictionary.floor)


def _kind(known: Finder, keyword: str) -> Kind:
    role = known.roles.get(keyword)
    if role is not None:
        return _KIND_OF.get(role, Kind.ATTRIBUTE)
    if keyword.lower() in known.lexicon.brand_named:
        return Kind.BRAND
    if keyword.isascii() or not keyword:
        return Kind.LINE
    brand, product, model = known.model.odds_alone(keyword)
    if brand + product + model < _SURE:
        return Kind.ATTRIBUTE
    return max((product, Kind.PRODUCT), (model, Kind.LINE), (brand, Kind.BRAND))[1]
