"""Requests of attempts by HTTP status, and quotas that a person sets"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("attempts", sa.Column("statuses", _JSON, nullable=False, server_default=sa.text("'{}'")))
    op.add_column("subtasks", sa.Column("assigned_quota", sa.Integer()))


def downgrade() -> None:
    op.drop_column("subtasks", "assigned_quota")
    op.drop_column("attempts", "statuses")
