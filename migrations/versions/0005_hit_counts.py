"""Hit counts"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_BATCH = 500


def upgrade() -> None:
    op.create_table(
        "task_parts",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("task_id", _ID, nullable=False),
        sa.Column("parent_id", _ID, nullable=True),
        sa.Column("first_chunk", sa.Integer(), nullable=False),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("dropped", _JSON, nullable=False),
        sa.Column("own_words", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.String(length=12), server_default=sa.text("'open'"), nullable=False),
        sa.Column("pages_read", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("listed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("ended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("reported", sa.BigInteger(), nullable=True),
        sa.Column("found", sa.BigInteger(), nullable=True),
        sa.Column("provenance", sa.String(length=20), server_default=sa.text("'unknown'"), nullable=False),
        sa.ForeignKeyConstraint(["parent_id"], ["task_parts.id"], name=op.f("fk_task_parts_parent_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_task_parts_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task_parts")),
        sa.UniqueConstraint("task_id", "first_chunk", name=op.f("uq_task_parts_task_id_first_chunk")),
    )
    op.add_column("tasks", sa.Column("found_reported", sa.BigInteger(), nullable=True))
    op.add_column("subtasks", sa.Column("part_id", _ID, nullable=True))
    _parts_of_old_tasks(op.get_bind())


def downgrade() -> None:
    op.drop_column("subtasks", "part_id")
    op.drop_column("tasks", "found_reported")
    op.drop_table("task_parts")


def _parts_of_old_tasks(conn: sa.Connection) -> None:
    """Give every task that is there one part for each of its keyword sets, with what its targets tell."""
    tables = sa.MetaData()
    tables.reflect(conn, only=("tasks", "virtual_tasks", "products", "subtasks", "targets", "task_parts"))
    tasks, wanted, products = (tables.tables[name] for name in ("tasks", "virtual_tasks", "products"))
    last = 0
    while True:
        rows = conn.execute(
            sa.select(
                tasks.c.id,
                tasks.c.found,
                tasks.c.found_provenance,
                sa.type_coerce(tasks.c.chunks, _JSON).label("chunks"),
                sa.type_coerce(wanted.c.keywords, _JSON).label("keywords"),
                sa.type_coerce(wanted.c.aliases, _JSON).label("aliases"),
                sa.type_coerce(products.c.keywords, _JSON).label("own"),
            )
            .join(wanted, wanted.c.id == tasks.c.virtual_task_id)
            .join(products, products.c.id == tasks.c.product_id)
            .where(tasks.c.id > last)
            .order_by(tasks.c.id)
            .limit(_BATCH)
        ).all()
        for row in rows:
            _parts_of(conn, tables, row)
        if not rows:
            return
        last = rows[-1].id


def _parts_of(conn: sa.Connection, tables: sa.MetaData, task: Any) -> None:
    subtasks, targets, parts = (tables.tables[name] for name in ("subtasks", "targets", "task_parts"))
    sets = [task.keywords, *task.aliases]
    firsts = [number for number, chunk in enumerate(task.chunks, 1) if chunk["first"]]
    alone = len(firsts) == 1
    for place, (first, after) in enumerate(zip(firsts, [*firsts[1:], None], strict=True)):
        of_part = [subtasks.c.task_id == task.id, subtasks.c.chunk >= first]
        if after is not None:
            of_part.append(subtasks.c.chunk < after)
        counts = conn.execute(
            sa.select(targets.c.kind, sa.func.count())
            .join(subtasks, subtasks.c.id == targets.c.subtask_id)
            .where(*of_part, sa.or_(targets.c.kind == "hit", targets.c.reason == "read"))
            .group_by(targets.c.kind)
        )
        told = {row[0]: row[1] for row in counts}
        known = alone and task.found is not None
        part_id = conn.execute(
            sa.insert(parts)
            .values(
                task_id=task.id,
                first_chunk=first,
                keywords=sa.type_coerce(sets[min(place, len(sets) - 1)], _JSON),
                dropped=sa.type_coerce([], _JSON),
                own_words=place == 0 and bool(task.own),
                pages_read=told.get("result", 0),
                listed=told.get("hit", 0),
                ended=known and task.found_provenance == "counted",
                reported=task.found if known and task.found_provenance == "reported" else None,
                found=task.found if known else None,
                provenance=task.found_provenance if known else "unknown",
            )
            .returning(parts.c.id)
        ).scalar_one()
        conn.execute(sa.update(subtasks).where(*of_part).values(part_id=part_id))
    if not alone and task.found is not None:
        # It was one set's number, nobody knows which.
        tasks = tables.tables["tasks"]
        unknown = {"found": None, "found_provenance": "unknown"}
        conn.execute(sa.update(tasks).where(tasks.c.id == task.id).values(unknown))
