"""Alerts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("rule", sa.String(length=20), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("level", sa.Float()),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("firing", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("told", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True)),
        sa.Column("claimed_at", sa.DateTime(timezone=True)),
        sa.Column("trouble", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.PrimaryKeyConstraint("rule", "subject", name=op.f("pk_alerts")),
    )


def downgrade() -> None:
    op.drop_table("alerts")
