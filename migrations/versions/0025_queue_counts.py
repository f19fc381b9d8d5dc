"""How many subtasks are in the queues that grow without bound"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_KEPT = "('PRIORITY', 'MANUAL', 'DONE', 'CANCELLED')"


def upgrade() -> None:
    op.create_table(
        "queue_counts",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queue_counts")),
    )
    op.execute(
        "INSERT INTO queue_counts (state, n) "
        f"SELECT state, count(*) FROM subtasks WHERE state IN {_KEPT} GROUP BY state"
    )


def downgrade() -> None:
    op.drop_table("queue_counts")
