"""Nodes that a person added"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "added_nodes",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("kinds", _JSON, nullable=False),
        sa.Column("slots", sa.Integer()),
        sa.Column("address", sa.String(length=64)),
        sa.Column("proxy", sa.Text()),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_added_nodes")),
    )


def downgrade() -> None:
    op.drop_table("added_nodes")
