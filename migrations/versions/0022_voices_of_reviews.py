"""Voices of reviews, and the records of pages that were refused"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_COLUMNS: dict[str, sa.types.TypeEngine[Any]] = {
    "voice": sa.String(length=10),
    "voice_probability": sa.Float(),
    "buyer": sa.Float(),
    "sentiment": sa.Float(),
    "voice_model": sa.String(length=20),
}


def upgrade() -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("reviews", sa.Column(name, kind))
    op.create_index(op.f("ix_reviews_voice"), "reviews", ["voice"])
    op.create_table(
        "refused_reviews",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("page_id", _ID, nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("title", "body", "author", "date_text")),
        sa.Column("published_at", sa.DateTime(timezone=True)),
        sa.Column("rating", sa.Float()),
        sa.Column("variant", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("refused_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_refused_reviews_page_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refused_reviews")),
        sa.UniqueConstraint("page_id", "key", name=op.f("uq_refused_reviews_page_id_key")),
    )


def downgrade() -> None:
    op.drop_table("refused_reviews")
    op.drop_index(op.f("ix_reviews_voice"), table_name="reviews")
    for name in _COLUMNS:
        op.drop_column("reviews", name)
