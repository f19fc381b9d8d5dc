"""The run-time model that `balance` decides by, trained from the store's own attempts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "run_time_model",
        sa.Column("strategy", sa.String(length=40), nullable=False),
        sa.Column("trained_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("newest_attempt", _BIG, nullable=False),
        sa.Column("network", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("strategy", name=op.f("pk_run_time_model")),
    )


def downgrade() -> None:
    op.drop_table("run_time_model")
