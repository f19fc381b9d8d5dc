"""The crawl engine"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _add_page_validators()
    _add_node_load()
    _create_review_links()


def downgrade() -> None:
    for name in ("storing", "idle"):
        op.drop_column("nodes", name)
    for name in ("last_modified", "etag", "checked_at"):
        op.drop_column("pages", name)
    _drop_review_links()


def _create_review_links() -> None:
    op.create_table(
        "review_links",
        sa.Column("review_id", _ID, nullable=False),
        sa.Column("original_id", _ID, nullable=False),
        sa.Column("similarity", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["original_id"], ["reviews.id"], name=op.f("fk_review_links_original_id")),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"], name=op.f("fk_review_links_review_id")),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_review_links")),
    )
    op.create_index(op.f("ix_review_links_original_id"), "review_links", ["original_id"])
    op.create_table(
        "review_bands",
        sa.Column("band", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("review_id", _ID, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("band", "review_id", name=op.f("pk_review_bands")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sweep_marks",
        sa.Column("sweep", sa.String(length=40), nullable=False),
        sa.Column("last_id", _ID, nullable=False),
        sa.PrimaryKeyConstraint("sweep", name=op.f("pk_sweep_marks")),
    )


def _drop_review_links() -> None:
    op.drop_table("sweep_marks")
    op.drop_table("review_bands")
    op.drop_index(op.f("ix_review_links_original_id"), "review_links")
    op.drop_table("review_links")


def _add_page_validators() -> None:
    op.add_column("pages", sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("pages", sa.Column("etag", sa.Text(), nullable=True))
    op.add_column("pages", sa.Column("last_modified", sa.Text(), nullable=True))


def _add_node_load() -> None:
    for name in ("idle", "storing"):
        op.add_column("nodes", sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False))
