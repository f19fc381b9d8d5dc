"""Requests of a (site, node) in its sums, which were added up from all attempts at each look"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_FROM_ATTEMPTS = """
UPDATE pair_stats SET requests = coalesce((
    SELECT sum(a.requests) FROM attempts a
    WHERE a.site = pair_stats.site AND a.node = pair_stats.node AND a.outcome IS NOT NULL
), 0)
"""


def upgrade() -> None:
    op.add_column(
        "pair_stats", sa.Column("requests", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.execute(_FROM_ATTEMPTS)


def downgrade() -> None:
    op.drop_column("pair_stats", "requests")
