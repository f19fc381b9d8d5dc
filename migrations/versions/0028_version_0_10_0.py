"""The category and the key of the name of a product, and the confidence of a page"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from splitter.normalize import name_key

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("products", sa.Column("category", sa.String(20)))
    op.add_column("products", sa.Column("name_key", sa.Text, nullable=False, server_default=sa.text("''")))
    op.create_index("ix_products_name_key", "products", ["name_key"])
    op.add_column("pages", sa.Column("confidence", sa.Float))
    conn, products = op.get_bind(), sa.table("products", *map(sa.column, ("id", "name", "name_key")))
    for row in conn.execute(sa.select(products.c.id, products.c.name)).all():
        conn.execute(products.update().where(products.c.id == row.id).values(name_key=name_key(row.name)))
