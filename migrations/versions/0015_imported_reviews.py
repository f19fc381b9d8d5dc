"""Reviews that people have: pages and reviews without an attempt, and the sources that they came from"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_TABLES = ("pages", "reviews")


def upgrade() -> None:
    op.create_table(
        "import_sources",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("shape", sa.LargeBinary(length=16), nullable=False),
        sa.Column("columns", _JSON, nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_import_sources")),
    )
    op.add_column("pages", sa.Column("source", sa.String(length=100)))
    _attempts_may_be_missing(missing=True)


def downgrade() -> None:
    # What was imported has no place in the earlier schema.
    imported = "SELECT id FROM pages WHERE source IS NOT NULL"
    of_imported = f"SELECT id FROM reviews WHERE page_id IN ({imported})"
    op.execute(
        f"DELETE FROM review_links WHERE review_id IN ({of_imported}) OR original_id IN ({of_imported})"
    )
    op.execute(f"DELETE FROM review_bands WHERE review_id IN ({of_imported})")
    op.execute(f"UPDATE reviews SET same_as = NULL WHERE same_as IN ({of_imported})")
    op.execute(f"DELETE FROM reviews WHERE page_id IN ({imported})")
    op.execute(f"DELETE FROM page_products WHERE page_id IN ({imported})")
    op.execute("DELETE FROM pages WHERE source IS NOT NULL")
    _attempts_may_be_missing(missing=False)
    op.drop_column("pages", "source")
    op.drop_table("import_sources")


def _attempts_may_be_missing(*, missing: bool) -> None:
    conn = op.get_bind()
    if conn.dialect.name != "sqlite":
        for table in _TABLES:
            op.alter_column(table, "attempt_id", nullable=missing)
        return
    # As SQLite's own documentation changes a NOT NULL (lang_altertable.html, 7): the rows stay where they are. To copy
    # them would take as long as they are many, and other tables refer to them.
    was, is_ = ("attempt_id INTEGER NOT NULL", "attempt_id INTEGER") if missing else (
        "attempt_id INTEGER", "attempt_id INTEGER NOT NULL",
    )  # fmt: skip
    version = conn.exec_driver_sql("PRAGMA schema_version").scalar_one()
    conn.exec_driver_sql("PRAGMA writable_schema=ON")
    for table in _TABLES:
        changed = conn.exec_driver_sql(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ? AND sql LIKE ?",
            (was, is_, table, f"%{was}%"),
        )
        if changed.rowcount != 1:
            raise RuntimeError(f"table {table} has no column {was!r}")
    conn.exec_driver_sql(f"PRAGMA schema_version={version + 1}")
    conn.exec_driver_sql("PRAGMA writable_schema=OFF")
