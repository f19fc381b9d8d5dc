"""Sites a product is to be looked for at, and those that could not be asked yet"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("products", sa.Column("sites", _JSON))
    op.create_table(
        "unplanned_sites",
        sa.Column("virtual_task_id", _BIG, nullable=False),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("obstacle", sa.String(length=20), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["virtual_task_id"], ["virtual_tasks.id"], name=op.f("fk_unplanned_sites_virtual_task_id")
        ),
        sa.PrimaryKeyConstraint("virtual_task_id", "site", name=op.f("pk_unplanned_sites")),
    )
    op.create_index(op.f("ix_unplanned_sites_site"), "unplanned_sites", ["site"])


def downgrade() -> None:
    op.drop_table("unplanned_sites")
    op.drop_column("products", "sites")
