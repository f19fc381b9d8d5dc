"""Deletes the collected data of a product: its reviews, and the content of its pages.

A page that belongs to another product, or would without this one, keeps its reviews, and no longer belongs to the
removed product (`Verdict.REMOVED`).
Any other page loses them. An imported page is deleted. The row of a crawled one stays without title and hash, since
attempts and targets count it, and it is read again if a search finds it again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tasks.domain.verdicts import Verdict
from tasks.store.content import counted_reviews, reposts
from tasks.store.content.links import next_serial
from tasks.store.sql.transaction import Transaction


class Removed(NamedTuple):
    """Result of deleting the reviews of a product.

    Attributes:
        reviews: number of deleted reviews.
        kept: number of reviews that stay, as their pages also belong to another product.
        alone: numbers of reviews whose original is gone, and that are no repost now; ascending.
    """

    reviews: int
    kept: int
    alone: Sequence[int]


def remove_reviews(tx: Transaction, product_id: int) -> Removed:
    """Delete what was collected of a product, after its work was cancelled."""
    deleted, kept = tx.rows(_COUNT, product=product_id)[0]
    with counted_reviews.recount_products(tx, [product_id]):
        for statement in _detach(_DOOMED):
            tx.later(statement, product=product_id)
        alone = [one for (one,) in tx.rows(_alone(_DOOMED), product=product_id)]
        for statement in (*_delete(_DOOMED), *_REMOVE):
            tx.later(statement, product=product_id)
    reposts.pull_back(tx)
    return Removed(deleted, kept, alone)


_MATCHED = f"('{Verdict.REVIEW}', '{Verdict.NEAR_PRODUCT}', '{Verdict.UNJUDGED}')"
_REVIEWED = f"SELECT page_id FROM page_products WHERE product_id = :product AND verdict = '{Verdict.REVIEW}'"
# Pages of this product alone that turned out to be about another one are included: their texts are also stored.
_OWN = f"""
    SELECT l.page_id FROM page_products l
    WHERE l.product_id = :product AND l.verdict IN ('{Verdict.REVIEW}', '{Verdict.WRONG_PRODUCT}') AND NOT EXISTS (
        SELECT 1 FROM page_products other
        WHERE other.page_id = l.page_id AND other.product_id <> :product
            AND (l.verdict = '{Verdict.WRONG_PRODUCT}' OR other.verdict IN {_MATCHED})
    )
"""
_DOOMED = f"(SELECT id FROM reviews WHERE page_id IN ({_OWN}))"
_COUNT = f"""
    SELECT (SELECT count(*) FROM reviews WHERE page_id IN ({_OWN}) AND refused IS NULL),
        (SELECT coalesce(sum(reviews), 0) FROM pages WHERE id IN ({_REVIEWED}) AND id NOT IN ({_OWN}))
"""


def _detach(doomed: str) -> tuple[str, ...]:
    """Return statements that free other reviews from those that are deleted.

    The first copy of a deleted review takes its place: for the other copies, in its bands and its reposts.

    Args:
        doomed: the deleted ones, as SQL that stands behind IN.
    """
    first = f"""
        SELECT same_as AS old, min(id) AS new FROM reviews
        WHERE same_as IN {doomed} AND id NOT IN {doomed} GROUP BY same_as
    """
    return (
        f"UPDATE review_bands SET review_id = new FROM ({first}) f WHERE review_id = old",
        f"UPDATE review_links SET review_id = new FROM ({first}) f WHERE review_id = old",
        f"UPDATE review_links SET original_id = new FROM ({first}) f WHERE original_id = old AND review_id > new",
        f"UPDATE reviews SET same_as = nullif(new, id) FROM ({first}) f WHERE same_as = old AND id >= new",
    )


def _alone(doomed: str) -> str:
    """Return the query for reviews whose original is deleted, and that are no repost then."""
    return f"""
        SELECT review_id FROM review_links WHERE original_id IN {doomed} AND review_id NOT IN {doomed}
        ORDER BY review_id
    """


def _delete(doomed: str) -> tuple[str, ...]:
    """Return statements that delete reviews with their rows in other tables."""
    return (
        f"DELETE FROM review_links WHERE review_id IN {doomed} OR original_id IN {doomed}",
        f"DELETE FROM review_bands WHERE review_id IN {doomed}",
        f"DELETE FROM import_reviews WHERE review_id IN {doomed}",
        f"DELETE FROM reviews WHERE id IN {doomed}",
    )


_REMOVE = (
    f"""
    UPDATE pages SET reviews = 0, title = '', content_hash = '', etag = NULL, last_modified = NULL
    WHERE id IN ({_OWN}) AND source IS NULL
    """,
    f"""
    DELETE FROM page_products
    WHERE page_id IN (SELECT id FROM pages WHERE id IN ({_OWN}) AND source IS NOT NULL)
    """,
    "DELETE FROM pages WHERE source IS NOT NULL AND NOT EXISTS (SELECT 1 FROM page_products WHERE page_id = pages.id)",
    # Near products that lost these pages to the removed one may have them now.
    f"""
    UPDATE page_products SET verdict = '{Verdict.UNJUDGED}'
    WHERE verdict = '{Verdict.NEAR_PRODUCT}' AND page_id IN ({_REVIEWED})
    """,
    f"""
    UPDATE page_products SET verdict = '{Verdict.REMOVED}', missing = ''
    WHERE product_id = :product AND (verdict IN {_MATCHED} OR page_id IN ({_OWN}))
    """,
    "UPDATE attempts SET last_response = NULL WHERE product_id = :product AND last_response IS NOT NULL",
)


def delete_reviews(tx: Transaction, review_ids: Collection[int]) -> list[int]:
    """Delete reviews, and return the numbers of those whose original is gone, as of `Removed.alone`."""
    with counted_reviews.recount(tx, reviews=review_ids):
        for statement in _detach(":ids"):
            tx.later(statement, ids=review_ids)
        alone = [one for (one,) in tx.rows(_alone(":ids"), ids=review_ids)]
        for statement in _delete(":ids"):
            tx.later(statement, ids=review_ids)
    reposts.pull_back(tx)
    return alone


def restore_links(tx: Transaction, product_id: int) -> None:
    """Give a product that is crawled again the pages that others kept. Emptied ones are read when they are found."""
    if tx.value(_HAS_REMOVED, product=product_id) is not None:
        with counted_reviews.recount_products(tx, [product_id]):
            tx.later(_RESTORE_LINKS, product=product_id, serial=next_serial(tx))


_HAS_REMOVED = (
    f"SELECT 1 FROM page_products WHERE product_id = :product AND verdict = '{Verdict.REMOVED}' LIMIT 1"
)
_RESTORE_LINKS = f"""
    UPDATE page_products SET verdict = '{Verdict.REVIEW}', serial = :serial
    WHERE product_id = :product AND verdict = '{Verdict.REMOVED}'
        AND NOT EXISTS (SELECT 1 FROM pages g WHERE g.id = page_id AND g.content_hash = '' AND g.source IS NULL)
"""
