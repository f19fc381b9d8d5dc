"""Imports have numbers, and what each added is noted"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the tables of imports, which know nothing of those before, and when a product was edited."""
    op.add_column("products", sa.Column("edited_at", sa.DateTime(timezone=True)))
    op.create_table(
        "imports",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("file", sa.String(500), nullable=False),
        sa.Column("source", sa.String(100)),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.DateTime(timezone=True)) for name in ("ended_at", "undo_begun_at", "undone_at")),
        *(
            sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))
            for name in ("added", "known")
        ),
    )
    op.create_table(
        "import_products",
        sa.Column("import_id", _ID, sa.ForeignKey("imports.id"), primary_key=True),
        sa.Column("product_id", _ID, sa.ForeignKey("products.id"), primary_key=True),
        sa.Column("added", sa.Boolean, nullable=False),
        sa.Column("every_s", sa.Float),
        sa.Column("before", _JSON),
    )
    op.create_index("ix_import_products_product_id", "import_products", ["product_id"])
    op.create_table(
        "import_reviews",
        sa.Column("import_id", _ID, sa.ForeignKey("imports.id"), primary_key=True),
        sa.Column("review_id", _ID, sa.ForeignKey("reviews.id"), primary_key=True),
        sa.Column("added", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_import_reviews_review_id", "import_reviews", ["review_id"])
