"""Reviews as they are taken out: one row per (review, product) whose page is about the product, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from splitter.errors import InputError
from sqlalchemy import Connection, func, select

from tasks.domain.product_match import Verdict
from tasks.store.tables import (
    attempts,
    page_products,
    pages,
    products,
    review_links,
    reviews,
    subtasks,
    task_parts,
)

_FETCHED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review, as it serves one product.

    Attributes:
        date_text: the date as written; `published_at` where it could be read.
        attempt: number of the attempt that collected it, on `node`.
        review: its number.
        same_as: number of the first review with an equal text; None where it is that one.
        near_of: number of an earlier review with nearly the same text, if this one (or the one it equals) is a repost.
        found_by: words of the search that its page was first found by for this product, fewer than all of its keywords
            where that search was relaxed; None: another product's search found it.
        similarity: how near, 0 to 1 (`tasks.reading.near_duplicates`).
    """

    product: str
    site: str
    url: str
    page_title: str
    title: str
    body: str
    author: str
    published_at: datetime | None
    date_text: str
    rating: float | None
    collected_at: datetime
    node: str
    attempt: int
    same_as: int | None
    near_of: int | None
    similarity: float | None
    review: int
    found_by: str | None = None


def review_rows(
    conn: Connection, *, product: str | None = None, site: str | None = None, since: datetime | None = None
) -> Iterator[ReviewRow]:
    """Reviews in the order they were stored.

    Args:
        product: only this one's, by its exact name.
        site: only those of this site.
        since: only those collected at this time or later.

    Raises:
        InputError: there is no product of that name.
    """
    if product is not None:
        _check_product(conn, product)
    statement = (
        select(
            products.c.name,
            reviews.c.site,
            reviews.c.url,
            pages.c.title,
            reviews.c.title,
            reviews.c.body,
            reviews.c.author,
            reviews.c.published_at,
            reviews.c.date_text,
            reviews.c.rating,
            reviews.c.collected_at,
            reviews.c.node,
            reviews.c.attempt_id,
            reviews.c.same_as,
            review_links.c.original_id,
            review_links.c.similarity,
            reviews.c.id,
            task_parts.c.keywords,
        )
        .join(pages, pages.c.id == reviews.c.page_id)
        .join(page_products, page_products.c.page_id == pages.c.id)
        .join(products, products.c.id == page_products.c.product_id)
        .join(attempts, attempts.c.id == reviews.c.attempt_id)
        .join(subtasks, subtasks.c.id == attempts.c.subtask_id)
        .outerjoin(
            task_parts,
            (task_parts.c.id == subtasks.c.part_id) & (subtasks.c.product_id == products.c.id),
        )
        .outerjoin(review_links, review_links.c.review_id == func.coalesce(reviews.c.same_as, reviews.c.id))
        .where(page_products.c.verdict == Verdict.REVIEW)
        .order_by(reviews.c.id, products.c.id)
    )
    if product is not None:
        statement = statement.where(products.c.name == product)
    if site is not None:
        statement = statement.where(reviews.c.site == site)
    if since is not None:
        statement = statement.where(reviews.c.collected_at >= since)
    rows = conn.execute(statement, execution_options={"yield_per": _FETCHED_AT_ONCE})
    return (_read(*tuple(row)) for row in rows)


def _read(*columns: Any) -> ReviewRow:
    *rest, words = columns
    return ReviewRow(*[*rest, " ".join(words) if words else None])


def _check_product(conn: Connection, name: str) -> None:
    if conn.execute(select(products.c.id).where(products.c.name == name)).one_or_none() is None:
        raise InputError(f"there is no product {name!r}: see `reviewloop product list`")
