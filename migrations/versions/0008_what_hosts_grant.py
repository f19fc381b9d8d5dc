"""What hosts grant: whose permits a node uses, and subtasks that wait for a host"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("machine", sa.String(length=255)))
    zero = sa.text("0")
    op.add_column("subtasks", sa.Column("idle_releases", sa.Integer(), server_default=zero, nullable=False))
    op.add_column("subtasks", sa.Column("waits_for", sa.Text()))
    op.add_column("attempts", sa.Column("least_share", sa.Float(), server_default=zero, nullable=False))
    op.add_column("attempts", sa.Column("slack", sa.Float(), server_default=zero, nullable=False))


def downgrade() -> None:
    op.drop_column("attempts", "slack")
    op.drop_column("attempts", "least_share")
    op.drop_column("subtasks", "waits_for")
    op.drop_column("subtasks", "idle_releases")
    op.drop_column("nodes", "machine")
