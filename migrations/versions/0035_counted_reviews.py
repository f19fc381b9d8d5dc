"""Themes of reviews, and reviews by product and day, as they are counted"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, _ID, primary_key=True, nullable=False, autoincrement=False)


def _day() -> sa.Column[int]:
    return sa.Column("day", sa.Integer, primary_key=True, nullable=False, autoincrement=False)


def upgrade() -> None:
    """Add the two tables that a sweep fills from the reviews that are there."""
    op.add_column("reviews", sa.Column("themes", _JSON))
    op.create_table(
        "review_days",
        _number("product_id"),
        _day(),
        sa.Column("site", sa.String(255), primary_key=True),
        sa.Column("voice", sa.String(10), primary_key=True),
        _number("review_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "review_themes",
        _number("product_id"),
        sa.Column("theme", sa.String(40), primary_key=True),
        _day(),
        sa.Column("site", sa.String(255), primary_key=True),
        _number("review_id"),
        sa.Column("quote_from", sa.Integer, nullable=False),
        sa.Column("quote_to", sa.Integer, nullable=False),
        sa.Column("sentiment", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    bind = op.get_bind()
    newest = bind.execute(sa.text("SELECT max(id) FROM reviews")).scalar()
    if newest:
        values = sa.table(
            "stored_values",
            sa.column("name"),
            sa.column("at", sa.DateTime(timezone=True)),
            sa.column("data", _JSON),
        )
        data = {"after": 0, "upto": newest}
        bind.execute(values.insert().values(name="counted_reviews", at=sa.func.now(), data=data))
