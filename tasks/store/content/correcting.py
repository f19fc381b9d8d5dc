"""Stores and takes back the corrections of people; the counted rows change in the same transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tasks.store.content import counted_reviews
from tasks.store.content.corrections import Correction, theme_rows
from tasks.store.sql.database import wait_lock
from tasks.store.sql.transaction import Transaction


def wait_turn(tx: Transaction) -> None:
    """Wait until no other transaction corrects reviews, so that its correction is read before it is replaced."""
    wait_lock(tx, "corrections")


def save(
    tx: Transaction, review_ids: Collection[int], correction: Correction, who: str, because: str
) -> None:
    """Store a correction of reviews in place of those that they have.

    Args:
        review_ids: as of `corrections.list_linked`.
        correction: one without any decision takes the present ones back.
    """
    old = [number for (number,) in tx.rows(_OLD, ids=review_ids)]
    ids = {*review_ids, *(number for (number,) in tx.rows(_CORRECTED, old=old))}
    with counted_reviews.recount(tx, reviews=ids):
        tx.later("DELETE FROM correction_products WHERE correction_id IN :old", old=old)
        if correction == Correction():
            for statement in _TAKE_BACK:
                tx.later(statement, old=old)
            return
        themes = None if correction.themes is None else theme_rows(correction.themes)
        values = {
            "voice": correction.voice,
            "themes": themes,
            "hidden": correction.hidden,
            "because": because[:500],
            "who": who[:200],
        }
        number = tx.value(_INSERT, at=tx.now, **values)
        tx.later("UPDATE reviews SET correction_id = :number WHERE id IN :ids", number=number, ids=ids)
        tx.later(
            "UPDATE correction_texts SET correction_id = :number WHERE correction_id IN :old",
            number=number,
            old=old,
        )
        tx.later("DELETE FROM corrections WHERE id IN :old", old=old)
        tx.later(_INSERT_TEXTS, number=number, ids=ids)
        rows = [(number, product_id) for product_id in correction.not_products]
        tx.insert("correction_products", ("correction_id", "product_id"), rows)


_OLD = "SELECT DISTINCT correction_id FROM reviews WHERE id IN :ids AND correction_id IS NOT NULL"
_CORRECTED = "SELECT id FROM reviews WHERE correction_id IN :old"
_TAKE_BACK = (
    "UPDATE reviews SET correction_id = NULL WHERE correction_id IN :old",
    "DELETE FROM correction_texts WHERE correction_id IN :old",
    "DELETE FROM corrections WHERE id IN :old",
)
_INSERT = """
    INSERT INTO corrections (voice, themes, hidden, because, who, at)
    VALUES (:voice, :themes, :hidden, :because, :who, :at) RETURNING id
"""
_INSERT_TEXTS = """
    INSERT INTO correction_texts (correction_id, copy_key, page_key, review_key, text_hash)
    SELECT :number, r.copy_key, g.url_key, CASE WHEN substr(r.key, 1, 1) <> '#' THEN r.key END, r.text_hash
    FROM reviews r JOIN pages g ON g.id = r.page_id
    WHERE r.id IN :ids AND NOT EXISTS (
        SELECT 1 FROM correction_texts t
        WHERE t.page_key = g.url_key AND t.text_hash = r.text_hash AND t.correction_id = :number
            AND coalesce(t.review_key, r.key) = r.key
    )
"""


class _Heir(NamedTuple):
    """A review that gets the correction of a text that it is linked with."""

    id: int
    correction_id: int


def inherit(tx: Transaction, review_ids: Collection[int]) -> None:
    """Give linked reviews one correction, if one of two has one and the other has none.

    A review that was stored while its correction was replaced or taken back gets the one that its text has now.
    """
    if not review_ids or tx.value("SELECT 1 FROM reviews WHERE correction_id IS NOT NULL LIMIT 1") is None:
        return
    wait_turn(tx)
    stale = [number for (number,) in tx.rows(_STALE, ids=review_ids)]
    if stale:
        with counted_reviews.recount(tx, reviews=stale):
            tx.run(_REFRESH, ids=stale)
    heirs = {one.id: one.correction_id for one in tx.records(_Heir, _HEIRS, ids=review_ids)}
    if heirs:
        with counted_reviews.recount(tx, reviews=heirs):
            rows = [{"id": number, "correction_id": given} for number, given in heirs.items()]
            tx.update("reviews", ("id",), rows)


_STALE = """
    SELECT r.id FROM reviews r LEFT JOIN corrections c ON c.id = r.correction_id
    WHERE r.id IN :ids AND r.correction_id IS NOT NULL AND c.id IS NULL
"""
_REFRESH = """
    UPDATE reviews
    SET correction_id = (SELECT max(t.correction_id) FROM correction_texts t WHERE t.copy_key = reviews.copy_key)
    WHERE id IN :ids
"""
_PAIRS = """
    SELECT id AS a, same_as AS b FROM reviews WHERE same_as IS NOT NULL AND id IN :ids
    UNION ALL SELECT review_id, original_id FROM review_links WHERE review_id IN :ids
    UNION ALL SELECT r.id, x.original_id FROM review_links x JOIN reviews r ON r.same_as = x.review_id
    WHERE x.review_id IN :ids
"""
_HEIRS = f"""
    SELECT r.id, o.correction_id FROM ({_PAIRS}) p JOIN reviews r ON r.id = p.a JOIN reviews o ON o.id = p.b
    WHERE r.correction_id IS NULL AND o.correction_id IS NOT NULL
    UNION ALL
    SELECT r.id, o.correction_id FROM ({_PAIRS}) p JOIN reviews r ON r.id = p.b JOIN reviews o ON o.id = p.a
    WHERE r.correction_id IS NULL AND o.correction_id IS NOT NULL
"""
