"""What is no review"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("pages", sa.Column("withheld", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column(
        "page_products",
        sa.Column("verdict", sa.String(length=20), server_default=sa.text("'review'"), nullable=False),
    )
    op.add_column(
        "page_products", sa.Column("missing", sa.Text(), server_default=sa.text("''"), nullable=False)
    )
    op.add_column(
        "page_products", sa.Column("refused", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.create_table(
        "page_refusals",
        sa.Column("page_id", _ID, nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_page_refusals_page_id")),
        sa.PrimaryKeyConstraint("page_id", "reason", name=op.f("pk_page_refusals")),
    )


def downgrade() -> None:
    op.drop_table("page_refusals")
    op.drop_column("page_products", "refused")
    op.drop_column("page_products", "missing")
    op.drop_column("page_products", "verdict")
    op.drop_column("pages", "withheld")
