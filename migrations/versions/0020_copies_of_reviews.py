"""An index of reviews that equal an earlier one, so that reviews can be deleted"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_COPIES = sa.text("same_as IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        op.f("ix_reviews_same_as"), "reviews", ["same_as"], sqlite_where=_COPIES, postgresql_where=_COPIES
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_reviews_same_as"), "reviews")
