"""Which catalog a node has, how far its clock is off, and by which entry a lease was given"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("nodes", sa.Column("catalog", sa.String(length=16)))
    op.add_column("nodes", sa.Column("entries", _JSON))
    op.add_column("nodes", sa.Column("clock_s", sa.Float(), nullable=False, server_default=sa.text("0")))
    op.add_column(
        "attempts", sa.Column("entry", sa.String(length=16), nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    with op.batch_alter_table("attempts") as table:
        table.drop_column("entry")
    with op.batch_alter_table("nodes") as table:
        table.drop_column("clock_s")
        table.drop_column("entries")
        table.drop_column("catalog")
