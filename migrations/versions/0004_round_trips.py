"""Round trips"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("pair_stats", sa.Column("rtt_ms", sa.Float(), nullable=True))
    op.add_column("pair_stats", sa.Column("rtt_n", sa.Integer(), server_default=sa.text("0"), nullable=False))


def downgrade() -> None:
    op.drop_column("pair_stats", "rtt_n")
    op.drop_column("pair_stats", "rtt_ms")
