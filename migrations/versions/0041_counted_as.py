"""Products that are counted as another one"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column: every product is counted as its own."""
    op.add_column("products", sa.Column("counted_as", _ID))
    op.create_index("ix_products_counted_as", "products", ["counted_as"])
