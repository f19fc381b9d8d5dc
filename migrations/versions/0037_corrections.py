"""Corrections of reviews by people, and words that keep a review from counting for a product"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_CORRECTED = sa.text("correction_id IS NOT NULL")


def _ref(column: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{table}.id"])


def upgrade() -> None:
    """Add the tables, and the correction of a review."""
    op.create_table(
        "excluded_words",
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("word", sa.String(100), nullable=False),
        sa.Column("pattern", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("product_id", "word"),
        _ref("product_id", "products"),
    )
    op.create_table(
        "corrections",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("voice", sa.String(10)),
        sa.Column("themes", _JSON),
        sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("because", sa.String(500), nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "correction_texts",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("correction_id", _ID, nullable=False),
        sa.Column("copy_key", sa.LargeBinary(16)),
        sa.Column("page_key", sa.LargeBinary(16), nullable=False),
        sa.Column("review_key", sa.String(200)),
        sa.Column("text_hash", sa.LargeBinary(16), nullable=False),
        _ref("correction_id", "corrections"),
    )
    for column in ("correction_id", "copy_key", "page_key"):
        op.create_index(f"ix_correction_texts_{column}", "correction_texts", [column])
    op.create_table(
        "correction_products",
        sa.Column("correction_id", _ID, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.PrimaryKeyConstraint("correction_id", "product_id"),
        _ref("correction_id", "corrections"),
        _ref("product_id", "products"),
    )
    op.create_index("ix_correction_products_product_id", "correction_products", ["product_id"])
    op.add_column("reviews", sa.Column("correction_id", _ID))
    op.create_index(
        "ix_reviews_correction_id",
        "reviews",
        ["correction_id"],
        sqlite_where=_CORRECTED,
        postgresql_where=_CORRECTED,
    )
