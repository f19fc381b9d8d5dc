"""The category of a product, and the confidence of a page"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("products", sa.Column("category", sa.String(20)))
    op.add_column("pages", sa.Column("confidence", sa.Float))
