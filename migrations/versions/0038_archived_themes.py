"""Themes of products that a person archived until they rise"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table, empty."""
    op.create_table(
        "archived_themes",
        sa.Column("product_id", _ID, sa.ForeignKey("products.id"), primary_key=True),
        sa.Column("theme", sa.String(40), primary_key=True),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=False),
    )
