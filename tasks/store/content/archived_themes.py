"""Themes of products that a person archived: pages fold them away until they rise."""

from __future__ import annotations

from tasks.store.sql.transaction import Transaction


def archive(tx: Transaction, product_id: int, theme: str) -> None:
    """Archive a theme from now on."""
    tx.run(_ARCHIVE, product=product_id, theme=theme, now=tx.now)


def restore(tx: Transaction, product_id: int, theme: str) -> bool:
    """Take a theme out of the archive; False if it is not in it."""
    return tx.value(_RESTORE, product=product_id, theme=theme) is not None


_ARCHIVE = """
    INSERT INTO archived_themes (product_id, theme, archived_at) VALUES (:product, :theme, :now)
    ON CONFLICT (product_id, theme) DO UPDATE SET archived_at = excluded.archived_at
"""
_RESTORE = "DELETE FROM archived_themes WHERE product_id = :product AND theme = :theme RETURNING theme"
