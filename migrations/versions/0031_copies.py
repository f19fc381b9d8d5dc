"""Copies: equal texts of one author, or too long to be equal by chance"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Mark every review to be compared again by the sweep for reposts, which replaces the links step by step."""
    op.add_column("reviews", sa.Column("copy_key", sa.LargeBinary(16)))
    op.drop_index("ix_reviews_text_hash", "reviews")
    some = sa.text("copy_key IS NOT NULL AND refused IS NULL")
    op.create_index("ix_reviews_copy_key", "reviews", ["copy_key"], sqlite_where=some, postgresql_where=some)
    op.drop_table("review_bands")
    op.create_table(
        "review_bands",
        sa.Column("band", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("review_id", _ID, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.execute("DELETE FROM stored_values WHERE name = 'reposts'")
