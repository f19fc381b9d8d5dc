"""The strategies"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("nodes", sa.Column("parameters", _JSON, nullable=True))
    by_site: list[str | sa.TextClause] = ["state", "site", sa.text("priority DESC"), "id", "left"]
    op.create_index("ix_subtasks_by_site", "subtasks", by_site)
    op.drop_index(op.f("ix_subtasks_state_site"), "subtasks")  # the new one begins with it
    op.create_index(op.f("ix_pair_stats_faded_at"), "pair_stats", ["faded_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_pair_stats_faded_at"), "pair_stats")
    op.create_index(op.f("ix_subtasks_state_site"), "subtasks", ["state", "site"])
    op.drop_index("ix_subtasks_by_site", "subtasks")
    op.drop_column("nodes", "parameters")
