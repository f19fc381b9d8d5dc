"""List new phrases in the complaints about products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from app.insight.new_phrases import PhraseProduct, find_new_phrases, list_most_complained
from app.insight.rows import NewPhrasesView
from splitter.normalize import normalize
from splitter.words import words_of
from tasks.reading.judge.reviews import choose_theme_set
from tasks.reading.judge.runs import plain_text
from tasks.reading.judge.themes import mark_open_clauses
from tasks.store.content import products
from tasks.store.content.products import Product
from tasks.store.queries.themes import Period
from tasks.store.sql.transaction import Transaction


def list_new_phrases(tx: Transaction, names: Sequence[str], period: Period) -> NewPhrasesView:
    """Return new phrases in the complaints about the named products.

    Without names, the products with the most complaints in the period are read.

    Raises:
        InputError: a product is unknown, or the period has no first day.
    """
    found = [products.find_counted(tx, name) for name in names or list_most_complained(tx, period)]
    return find_new_phrases(tx, [_prepare(one) for one in {one.id: one for one in found}.values()], period)


def _prepare(product: Product) -> PhraseProduct:
    names = (product.name, *product.aliases, *product.counted_with)
    words = {word for name in names for word in words_of(normalize(name))}
    category = choose_theme_set(product.category)
    return PhraseProduct(
        id=product.id,
        name=product.name,
        words=sorted({plain_text(word) for word in (*words, *product.keywords)} - {""}),
        read=partial(mark_open_clauses, category=category),
    )
