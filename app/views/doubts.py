"""Reasons to doubt that a product's keywords are right, shown before a person adds the product."""

from __future__ import annotations

from enum import StrEnum

from app.views.words import translate
from tasks.store.content.products import NewProduct
from tasks.store.queries.products import ProductSettings

_MANY_KEYWORDS = 4
"""With this many keywords few pages are found, as a page must contain all of them."""


class Doubt(StrEnum):
    """Reasons for a person to look at a product before it is crawled."""

    NO_SITE = "no_site"
    NO_CATEGORY = "no_category"
    MANY_KEYWORDS = "many_keywords"
    ONE_KEYWORD = "one_keyword"


def list_doubts(product: NewProduct | ProductSettings) -> list[Doubt]:
    """Return the reasons to doubt a product's keywords; empty if a person chose the keywords."""
    doubts = []
    if product.sites == ():
        doubts.append(Doubt.NO_SITE)
    if product.category is None:
        doubts.append(Doubt.NO_CATEGORY)
    if not product.own_keywords and len(product.keywords) >= _MANY_KEYWORDS:
        doubts.append(Doubt.MANY_KEYWORDS)
    if not product.own_keywords and len(product.keywords) == 1:
        doubts.append(Doubt.ONE_KEYWORD)
    return doubts


def describe_doubt(doubt: Doubt) -> str:
    """Return a sentence about a doubt and its consequence, in the current language."""
    match doubt:
        case Doubt.NO_SITE:
            return translate("no known site or page: added paused")
        case Doubt.NO_CATEGORY:
            return translate("category unknown: only general sites")
        case Doubt.MANY_KEYWORDS:
            return translate("many keywords: few pages have all")
        case Doubt.ONE_KEYWORD:
            return translate("one keyword: may find other things")
