"""Complaints of many products at once: in a period and the one before, and week by week. Reads `review_days`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from tasks.domain.voices import Voice
from tasks.store.content.counted_reviews import LEFT_OUT
from tasks.store.queries.themes import PRODUCT_BY_PRODUCT, WEEK_OF_DAY, Period, monday_of, number_of_day
from tasks.store.sql.transaction import Transaction


class ProductCount(NamedTuple):
    """Reviews of a product in a period and in the one before.

    Attributes:
        reviews, complaints: in the period.
        complaints_before: in the period before; 0 without one.
        compared, compared_before: complaints at the sites with reviews in both periods.
        shared, buyers: complaints and buyers' reviews in the period at sites that publish praise.
    """

    product_id: int
    reviews: int
    complaints: int
    complaints_before: int
    compared: int
    compared_before: int
    shared: int
    buyers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PraiseRule:
    """Sites that publish praise.

    Attributes:
        with_praise: names of those that are known to.
        without: names of those that are known not to.
        least_buyers, least_praise: a product's buyers' reviews at any other site from which on its share of praise is
            judged, and that share.
    """

    with_praise: Collection[str]
    without: Collection[str]
    least_buyers: int
    least_praise: float


def count_products(
    tx: Transaction, numbers: Collection[int] | None, period: Period, before: Period | None, rule: PraiseRule
) -> list[ProductCount]:
    """Return the reviews of products in a period and in the one that ends where it begins; none of those without any.

    Args:
        numbers: of the products; `None` for all.
    """
    begin = period if before is None else before
    given = {"first": period.first, "last": period.last, "first_before": begin.first}
    values = {
        "with_praise": rule.with_praise, "without": rule.without, "least_buyers": rule.least_buyers,
        "least_praise": rule.least_praise,
    }  # fmt: skip
    some = {} if numbers is None else {"numbers": numbers}
    return tx.records(
        ProductCount, _select_counts("" if numbers is None else _SOME), **given, **values, **some
    )


_SOME = "AND p.id IN :numbers"


def _count(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


def _select_counts(condition: str) -> str:
    complaint, praise = f"d.voice = '{Voice.COMPLAINT}'", f"d.voice = '{Voice.PRAISE}'"
    inside, earlier = "d.day >= :first", "d.day < :first"
    both = "reviews > 0 AND reviews_before > 0"
    publishes = "(site IN :with_praise OR (product_id, site) IN (SELECT product_id, site FROM judged))"
    return f"""
    WITH by_site AS (
        SELECT p.id AS product_id, d.site, {_count(inside)} AS reviews, {_count(earlier)} AS reviews_before,
            {_count(f"{complaint} AND {inside}")} AS complaints,
            {_count(f"{complaint} AND {earlier}")} AS complaints_before, {_count(f"{praise} AND {inside}")} AS praise
        FROM {PRODUCT_BY_PRODUCT}
        WHERE d.product_id = p.id AND d.day >= :first_before AND d.day <= :last AND d.voice <> '{LEFT_OUT}' {condition}
        GROUP BY p.id, d.site
    ), unknown AS (
        SELECT product_id, site FROM by_site WHERE site NOT IN :with_praise AND site NOT IN :without
    ), judged AS (
        SELECT product_id, site FROM unknown WHERE (
            SELECT count(*) >= :least_buyers AND {_count(praise)} >= :least_praise * count(*) FROM review_days d
            WHERE d.product_id = unknown.product_id AND d.site = unknown.site AND ({complaint} OR {praise})
        )
    )
    SELECT product_id, sum(reviews) AS reviews, sum(complaints) AS complaints,
        sum(complaints_before) AS complaints_before,
        sum(CASE WHEN {both} THEN complaints ELSE 0 END) AS compared,
        sum(CASE WHEN {both} THEN complaints_before ELSE 0 END) AS compared_before,
        sum(CASE WHEN {publishes} THEN complaints ELSE 0 END) AS shared,
        sum(CASE WHEN {publishes} THEN complaints + praise ELSE 0 END) AS buyers
    FROM by_site GROUP BY product_id
    """


def count_complaints(tx: Transaction, period: Period) -> dict[int, int]:
    """Return the complaints in a period of the products that have some, by number."""
    return dict(tx.rows(_COMPLAINTS, first=period.first, last=period.last))


_COMPLAINTS = f"""
    SELECT p.id, count(*) FROM {PRODUCT_BY_PRODUCT}
    WHERE d.product_id = p.id AND d.day >= :first AND d.day <= :last AND d.voice = '{Voice.COMPLAINT}' GROUP BY p.id
"""


class ComplaintWeek(NamedTuple):
    """Complaints of a product in a week."""

    product_id: int
    week: int
    n: int


def count_complaint_weeks(
    tx: Transaction, numbers: Collection[int] | None, first_week: int, last_week: int
) -> list[ComplaintWeek]:
    """Return the complaints of products by week, from one week to another.

    Args:
        numbers: of the products; `None` for all.
    """
    given = {
        "first": number_of_day(monday_of(first_week)),
        "last": number_of_day(monday_of(last_week + 1)) - 1,
    } | ({} if numbers is None else {"numbers": numbers})
    return tx.records(ComplaintWeek, _select_weeks("" if numbers is None else _SOME), **given)


def _select_weeks(condition: str) -> str:
    return f"""
    SELECT product_id, {WEEK_OF_DAY} AS week, sum(n) AS n
    FROM (
        SELECT p.id AS product_id, d.day, count(*) AS n FROM {PRODUCT_BY_PRODUCT}
        WHERE d.product_id = p.id AND d.day >= :first AND d.day <= :last AND d.voice = '{Voice.COMPLAINT}' {condition}
        GROUP BY p.id, d.day
    ) by_day
    GROUP BY product_id, {WEEK_OF_DAY}
    """
