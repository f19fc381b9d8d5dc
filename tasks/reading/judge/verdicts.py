"""Verdicts: what a page with reviews is to each product that it was found for. All pure."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.domain.verdicts import Verdict
from tasks.reading.judge.near_products import outdone
from tasks.reading.judge.product_match import product_match

KeywordSets = Sequence[Sequence[str]]
Judgement = tuple[Verdict, tuple[str, ...]]
"""A verdict, and the words that the page lacks if it is about another product."""


def judge_page(sets: KeywordSets, text: str, n_reviews: int) -> Judgement:
    """Return what a page is to one product.

    Args:
        text: of the page (`tasks.reading.judge.product_match.matchable_text`).
        n_reviews: its number of reviews.
    """
    if not n_reviews:
        return Verdict.NO_REVIEW, ()
    found = product_match(sets, text)
    return (Verdict.REVIEW, ()) if found.matches else (Verdict.WRONG_PRODUCT, found.missing)


def judge_for_products(products: Sequence[KeywordSets], title: str, text: str) -> list[Judgement]:
    """Return what a page with reviews is to each of some products; near products compete for it.

    Args:
        products: keyword sets of each.
        title, text: of the page.
    """
    found = [judge_page(sets, text, 1) for sets in products]
    matched = [place for place, (verdict, _) in enumerate(found) if verdict is Verdict.REVIEW]
    lost = outdone([products[place] for place in matched], text, title)
    for place in (place for place, is_lost in zip(matched, lost, strict=True) if is_lost):
        found[place] = Verdict.NEAR_PRODUCT, ()
    return found
