"""An index of the subtasks that wait for a person, by cause"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_MANUAL = sa.text("state = 'MANUAL'")


def upgrade() -> None:
    op.create_index(
        "ix_subtasks_manual",
        "subtasks",
        ["state", "reason", "site", "id", "changed_at"],
        sqlite_where=_MANUAL,
        postgresql_where=_MANUAL,
    )


def downgrade() -> None:
    op.drop_index("ix_subtasks_manual", "subtasks")
