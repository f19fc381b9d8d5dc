"""Patterns that find excluded words in every spelling"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from tasks.store.sql.transaction import as_pattern

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_words = sa.table("excluded_words", sa.column("product_id"), sa.column("word"), sa.column("pattern"))
_values = sa.table(
    "stored_values", sa.column("name"), sa.column("at", sa.DateTime(timezone=True)), sa.column("data", _JSON)
)


def upgrade() -> None:
    """Write the patterns again, and let the sweep `counts` count the reviews of these products again."""
    bind = op.get_bind()
    rows = bind.execute(sa.select(_words.c.product_id, _words.c.word)).all()
    for product_id, word in rows:
        is_it = (_words.c.product_id == product_id) & (_words.c.word == word)
        bind.execute(_words.update().where(is_it).values(pattern=as_pattern(word)))
    newest = bind.execute(sa.text("SELECT max(id) FROM reviews")).scalar()
    if rows and newest:
        for name in ("review_days", "review_themes"):
            counted = sa.table(name, sa.column("product_id"))
            bind.execute(counted.delete().where(counted.c.product_id.in_({product for product, _ in rows})))
        bind.execute(_values.delete().where(_values.c.name == "counted_reviews"))
        data = {"after": 0, "upto": newest}
        bind.execute(_values.insert().values(name="counted_reviews", at=sa.func.now(), data=data))
