"""Corrections of reviews by people, which win over the models, and words that keep reviews from a product.

A correction holds for a text: for the review that a person corrected, its equal and nearly equal texts, and those that
come later. So it outlives the rows of `reviews`, which a person may delete and store again. A review without an id on
its page is known by its text. Nothing that a model decided is overwritten: what counts is read with `JOIN` and `VOICE`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple

from tasks.domain.voices import Voice
from tasks.store.sql.transaction import Transaction, as_pattern

WHOLE_TEXT = 100_000
"""The end of a quote that has no clause of its own."""


class LeftOut(StrEnum):
    """Why a review does not count for a product."""

    HIDDEN = "hidden"
    NOT_PRODUCT = "not_product"
    EXCLUDED_WORD = "excluded_word"


JOIN = "LEFT JOIN corrections c ON c.id = r.correction_id"
VOICE = "coalesce(c.voice, r.voice)"


def left_out(review: str = "r", correction: str = "c", product_id: str = "l.product_id") -> str:
    """Return the expression for why a review does not count for a product, a `LeftOut`; null if it counts.

    Args:
        review, correction: names of their tables in the query; a correction may be missing.
        product_id: the expression for the product.
    """
    return f"""
        CASE WHEN {correction}.hidden THEN '{LeftOut.HIDDEN}'
        WHEN EXISTS (
            SELECT 1 FROM correction_products n
            WHERE n.correction_id = {review}.correction_id AND n.product_id = {product_id}
        ) THEN '{LeftOut.NOT_PRODUCT}'
        WHEN EXISTS (
            SELECT 1 FROM excluded_words w WHERE w.product_id = {product_id}
                AND ({review}.title || ' ' || {review}.body) GLOB '*' || w.pattern || '*'
        ) THEN '{LeftOut.EXCLUDED_WORD}' END
    """


FIND = """
    CASE WHEN EXISTS (SELECT 1 FROM correction_texts) THEN coalesce(
        (SELECT max(t.correction_id) FROM correction_texts t WHERE t.copy_key = {copy_key}),
        (SELECT max(t.correction_id) FROM correction_texts t JOIN pages g ON g.url_key = t.page_key
        WHERE g.id = {page_id}
            AND (t.review_key = {key} OR (t.copy_key IS NULL AND t.text_hash = {text_hash})))
    ) END
"""
"""The expression for the correction of a review that is inserted, by its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A person's decisions about a text.

    Attributes:
        voice, themes: `None`: the model's.
        hidden: it counts for no product.
        not_products: numbers of the products that it is not about.
    """

    voice: Voice | None = None
    themes: tuple[str, ...] | None = None
    hidden: bool = False
    not_products: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCorrection(Correction):
    """A correction with who made it last, when and why; `because` may be empty."""

    who: str
    at: datetime
    because: str

    @property
    def correction(self) -> Correction:
        """Return the decisions alone."""
        given = {field.name: getattr(self, field.name) for field in fields(Correction)}
        return Correction(**given)


def get_correction(tx: Transaction, review_id: int) -> StoredCorrection | None:
    """Return the correction of a review; `None` if a person left it as it is."""
    row = tx.record(_Row, _STORED, id=review_id)
    if row is None:
        return None
    products = tx.rows(_NOT_PRODUCTS, id=review_id)
    return StoredCorrection(**row._asdict(), not_products=tuple(number for (number,) in products))


class _Row(NamedTuple):
    voice: Voice | None
    themes: Annotated[tuple[str, ...] | None, lambda rows: tuple(row[0] for row in rows)]
    hidden: bool
    who: str
    at: datetime
    because: str


_STORED = f"""
    SELECT c.voice, c.themes, c.hidden, c.who, c.at, c.because FROM reviews r {JOIN}
    WHERE r.id = :id AND c.id IS NOT NULL
"""
_NOT_PRODUCTS = """
    SELECT n.product_id FROM correction_products n JOIN reviews r ON r.correction_id = n.correction_id
    WHERE r.id = :id ORDER BY n.product_id
"""


class _Themes(NamedTuple):
    rows: Annotated[tuple[tuple[str, int, int, int], ...] | None, tuple]


def list_theme_ids(tx: Transaction, review_id: int) -> list[str]:
    """Return the themes that a review complains about, a person's if there are some."""
    found = tx.record(_Themes, _THEMES, id=review_id)
    return [] if found is None else [theme for theme, sentiment, *_ in found.rows or () if sentiment < 0]


_THEMES = f"SELECT coalesce(c.themes, r.themes) AS rows FROM reviews r {JOIN} WHERE r.id = :id"


def list_linked(tx: Transaction, review_id: int) -> list[int]:
    """Return the numbers of the reviews that a correction of this one holds for, with its own."""
    return [number for (number,) in tx.rows(_LINKED, id=review_id)]


_LINKED = """
    WITH top AS (
        SELECT coalesce(x.original_id, r.same_as, r.id) AS id
        FROM reviews r LEFT JOIN review_links x ON x.review_id = coalesce(r.same_as, r.id) WHERE r.id = :id
    ), firsts AS (
        SELECT id FROM top UNION SELECT x.review_id FROM review_links x JOIN top ON top.id = x.original_id
    ), linked AS (
        SELECT id FROM firsts UNION SELECT r.id FROM reviews r JOIN firsts f ON r.same_as = f.id
        UNION SELECT o.id FROM reviews r JOIN reviews o ON o.correction_id = r.correction_id WHERE r.id = :id
    )
    SELECT r.id FROM reviews r JOIN linked ON linked.id = r.id WHERE r.refused IS NULL ORDER BY r.id
"""


def list_excluded_words(tx: Transaction, product_id: int) -> tuple[str, ...]:
    """Return the words that keep a review from counting for a product."""
    return tuple(word for (word,) in tx.rows(_WORDS, id=product_id))


def store_excluded_words(tx: Transaction, product_id: int, words: Collection[str]) -> None:
    """Store the words of a product in place of the present ones."""
    tx.later("DELETE FROM excluded_words WHERE product_id = :id", id=product_id)
    rows = [(product_id, word, as_pattern(word)) for word in dict.fromkeys(words)]
    tx.insert("excluded_words", ("product_id", "word", "pattern"), rows)


_WORDS = "SELECT word FROM excluded_words WHERE product_id = :id ORDER BY word"


def theme_rows(themes: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Return the value of the column `themes` of a correction: complaints that the whole text shows."""
    return [(theme, -1, 0, WHOLE_TEXT) for theme in themes]
