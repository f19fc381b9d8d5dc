"""Indexes by which a product is deleted with its work without reading all other work"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the columns that refer to a product, a partition or a parent."""
    follows = sa.text("parent_id IS NOT NULL")
    for table in ("task_parts", "subtasks"):
        op.create_index(
            f"ix_{table}_parent_id", table, ["parent_id"], sqlite_where=follows, postgresql_where=follows
        )
    for table, column in (
        ("attempts", "product_id"),
        ("result_pages", "product_id"),
        ("result_pages", "part_id"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])
