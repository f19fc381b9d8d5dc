"""Index of the reviews that were not read for themes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index, which is empty until reviews are judged again."""
    unread = sa.text("themes = '[]'")
    op.create_index("ix_reviews_unread", "reviews", ["id"], sqlite_where=unread, postgresql_where=unread)
