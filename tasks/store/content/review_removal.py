"""Deletes what was collected of a product: its reviews, and what its pages said.

A page that another product has as its own, or would have but for this one, keeps its reviews, and is the removed
product's no more (`Verdict.REMOVED`).
Any other page loses them: an imported one goes; of a crawled one the row stays without title and hash, since attempts
and targets count it, and its reviews are withheld, so that it is read anew where a search finds it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ScalarSelect, delete, func, null, select, update

from tasks.domain.product_match import Verdict
from tasks.store.content import near_links, reposts
from tasks.store.sql.tables import (
    attempts,
    page_products,
    pages,
    refused_reviews,
    review_bands,
    review_links,
    reviews,
)
from tasks.store.sql.transaction import Transaction

_AT_ONCE = 500
_MATCHED = (Verdict.REVIEW, Verdict.NEAR_PRODUCT)
_EMPTIED = {"title": "", "content_hash": "", "etag": None, "last_modified": None}


@dataclass(frozen=True, slots=True)
class Removed:
    """Numbers of what was deleted.

    Attributes:
        reviews: how many.
        kept: how many stay, as their pages are another product's, too.
        alone: numbers of reviews whose original is gone, and that are no repost now; ascending.
    """

    reviews: int
    kept: int
    alone: Sequence[int]


def remove_reviews(conn: Transaction, product_id: int) -> Removed:
    """Delete what was collected of a product, once its work is cancelled."""
    link, other = page_products.c, page_products.alias("other").c
    its = select(link.page_id).where(link.product_id == product_id, link.verdict == Verdict.REVIEW)
    shared = select(other.page_id).where(other.product_id != product_id, other.verdict.in_(_MATCHED))
    others = select(other.page_id).where(other.product_id != product_id)
    # Also pages of this product alone that were found to be about another one: their texts are kept, too.
    left_out = (link.verdict == Verdict.WRONG_PRODUCT) & link.page_id.not_in(others)
    not_shared = (link.verdict == Verdict.REVIEW) & link.page_id.not_in(shared)
    of_own = select(link.page_id).where(link.product_id == product_id, not_shared | left_out)
    own = of_own.scalar_subquery()
    doomed = select(reviews.c.id).where(reviews.c.page_id.in_(own)).scalar_subquery()
    had = int(conn.execute(select(func.sum(pages.c.reviews)).where(pages.c.id.in_(its))).scalar_one() or 0)
    _promote_copies(conn, doomed)
    alone = conn.scalars(
        select(review_links.c.review_id)
        .where(review_links.c.original_id.in_(doomed), review_links.c.review_id.not_in(doomed))
        .order_by(review_links.c.review_id)
    ).all()
    linked = review_links.c.review_id.in_(doomed) | review_links.c.original_id.in_(doomed)
    conn.execute(delete(review_links).where(linked))
    conn.execute(delete(review_bands).where(review_bands.c.review_id.in_(doomed)))
    conn.execute(delete(refused_reviews).where(refused_reviews.c.page_id.in_(own)))
    deleted = conn.execute(delete(reviews).where(reviews.c.page_id.in_(own))).rowcount
    reposts.pull_back(conn)
    imported = conn.scalars(select(pages.c.id).where(pages.c.id.in_(own), pages.c.source.is_not(None))).all()
    crawled = update(pages).where(pages.c.id.in_(own), pages.c.source.is_(None), pages.c.reviews > 0)
    conn.execute(crawled.values(withheld=pages.c.reviews, reviews=0, **_EMPTIED))
    for at in range(0, len(imported), _AT_ONCE):
        some = imported[at : at + _AT_ONCE]
        conn.execute(delete(page_products).where(link.page_id.in_(some)))
        conn.execute(delete(pages).where(pages.c.id.in_(some)))
    withheld = select(pages.c.withheld).where(pages.c.id == link.page_id).scalar_subquery()
    is_its = link.verdict.in_(_MATCHED) | link.page_id.in_(own)
    ended = update(page_products).where(link.product_id == product_id, is_its)
    near = select(other.page_id).where(other.verdict == Verdict.NEAR_PRODUCT, other.page_id.in_(its))
    orphaned = conn.scalars(near).all()
    conn.execute(ended.values(verdict=Verdict.REMOVED, refused=withheld, missing=""))
    near_links.settle(conn, set(orphaned))
    of_product = attempts.c.product_id == product_id, attempts.c.last_response.is_not(None)
    conn.execute(update(attempts).where(*of_product).values(last_response=null()))
    return Removed(deleted, had - deleted, alone)


def restore_links(conn: Transaction, product_id: int) -> None:
    """A product is looked for again: pages that others kept are its own, too. Emptied ones are read where found."""
    link = page_products.c
    emptied = select(pages.c.id).where(pages.c.id == link.page_id, pages.c.withheld > 0).exists()
    its = update(page_products).where(link.product_id == product_id, link.verdict == Verdict.REMOVED)
    conn.execute(its.where(~emptied).values(verdict=Verdict.REVIEW, refused=0))


def _promote_copies(conn: Transaction, doomed: ScalarSelect[int]) -> None:
    """Of reviews that equal a deleted one the first takes its place: for the others, its index and its reposts."""
    r, links = reviews.c, review_links.c
    first = select(r.same_as, func.min(r.id)).where(r.same_as.in_(doomed), r.id.not_in(doomed))
    for old, new in conn.execute(first.group_by(r.same_as)).all():
        conn.execute(update(reviews).where(r.id == new).values(same_as=None))
        conn.execute(update(reviews).where(r.same_as == old, r.id > new).values(same_as=new))
        conn.execute(update(review_bands).where(review_bands.c.review_id == old).values(review_id=new))
        conn.execute(update(review_links).where(links.review_id == old).values(review_id=new))
        later = update(review_links).where(links.original_id == old, links.review_id > new)
        conn.execute(later.values(original_id=new))
