"""What `verify` proves by: how many different hits a partition brought; what is DONE has nothing left to do"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    zero = sa.text("0")
    op.add_column("task_parts", sa.Column("new_hits", sa.Integer(), server_default=zero, nullable=False))
    op.execute(
        "UPDATE task_parts SET new_hits = made.hits, pages_read = made.read_pages FROM ("
        "SELECT s.part_id AS part_id, sum(CASE WHEN t.kind = 'hit' THEN 1 ELSE 0 END) AS hits,"
        " sum(CASE WHEN t.kind = 'result' AND t.state = 'stored' THEN 1 ELSE 0 END) AS read_pages"
        " FROM targets t JOIN subtasks s ON s.id = t.subtask_id GROUP BY s.part_id"
        ") AS made WHERE made.part_id = task_parts.id"
    )
    op.execute("UPDATE subtasks SET \"left\" = 0 WHERE state = 'DONE'")
    # Tasks of the first versions had no column for what their engine reported: it was what was found.
    op.execute(
        "UPDATE tasks SET found_reported = found WHERE found_reported IS NULL AND found_provenance = 'reported'"
    )


def downgrade() -> None:
    op.drop_column("task_parts", "new_hits")
