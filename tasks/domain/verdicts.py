"""Verdicts: how a page relates to a product that it was found for."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """A page's relation to a product.

    WRONG_PRODUCT: its reviews are about another product. NEAR_PRODUCT: they would be reviews of this one, but the page
    was also found for a near product and names that better (`tasks.reading.judge.near_products`). NO_REVIEW: it has no
    reviews. REMOVED: it had reviews of this product, until a person deleted what was collected. UNJUDGED: a sweep
    (`tasks.jobs.judging.judge_links`) will decide.
    """

    REVIEW = "review"
    WRONG_PRODUCT = "wrong_product"
    NEAR_PRODUCT = "near_product"
    NO_REVIEW = "no_review"
    REMOVED = "removed"
    UNJUDGED = "unjudged"
