"""What is still to be planned is found by an index: it is looked for often, among all that ever was planned"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_virtual_tasks_planned_at", "virtual_tasks", ["planned_at"])


def downgrade() -> None:
    op.drop_index("ix_virtual_tasks_planned_at", "virtual_tasks")
