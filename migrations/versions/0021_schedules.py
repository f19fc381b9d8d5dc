"""Schedules: when products are crawled again, and when reports and exports are made"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("what", sa.String(length=20), nullable=False),
        sa.Column("product_id", _ID),
        sa.Column("cron", sa.String(length=200)),
        sa.Column("zone", sa.String(length=64)),
        sa.Column("every_s", sa.Float()),
        sa.Column("options", _JSON, nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("next_at", _TIME),
        sa.Column("last_at", _TIME),
        sa.Column("taken_until", _TIME),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_schedules_product_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sa.UniqueConstraint("product_id", name=op.f("uq_schedules_product_id")),
    )
    op.create_index("ix_schedules_next_at", "schedules", ["next_at"])
    op.execute(
        "INSERT INTO schedules (what, product_id, every_s, options, next_at, last_at) "
        "SELECT 'recrawl', p.id, p.recrawl_every_s, '{}', p.next_crawl_at, "
        "(SELECT max(v.created_at) FROM virtual_tasks v WHERE v.product_id = p.id AND v.round > 1) "
        "FROM products p WHERE p.recrawl_every_s IS NOT NULL ORDER BY p.id"
    )
    op.drop_column("products", "next_crawl_at")
    op.drop_column("products", "recrawl_every_s")


def downgrade() -> None:
    """Intervals of products go back where they were; cron rules, paused ones, reports and exports are lost."""
    op.add_column("products", sa.Column("recrawl_every_s", sa.Float(), nullable=True))
    op.add_column("products", sa.Column("next_crawl_at", _TIME, nullable=True))
    for column, of in (("recrawl_every_s", "every_s"), ("next_crawl_at", "next_at")):
        op.execute(
            f"UPDATE products SET {column} = (SELECT s.{of} FROM schedules s WHERE s.product_id = products.id "
            "AND s.every_s IS NOT NULL AND s.next_at IS NOT NULL)"
        )
    op.drop_table("schedules")
