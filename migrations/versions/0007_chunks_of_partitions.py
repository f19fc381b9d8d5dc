"""Search URLs move from the tasks to their partitions"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_BATCH = 500
_tasks = sa.table("tasks", sa.column("id", sa.BigInteger), sa.column("chunks", _JSON))
_partitions = sa.table(
    "task_parts",
    sa.column("id", sa.BigInteger),
    sa.column("task_id", sa.BigInteger),
    sa.column("first_chunk", sa.Integer),
    sa.column("chunks", _JSON),
)


def upgrade() -> None:
    empty = sa.text("'[]'")
    op.add_column("task_parts", sa.Column("chunks", _JSON, server_default=empty, nullable=False))
    conn = op.get_bind()
    for tasks in _batches(conn):
        changes = []
        for task_id, chunks, partitions in tasks:
            if chunks and not partitions:
                raise RuntimeError(f"task {task_id} has search URLs, but no partition that they belong to")
            ends = [one.first_chunk for one in partitions[1:]] + [len(chunks) + 1] * bool(partitions)
            for one, end in zip(partitions, ends, strict=True):
                urls = [chunk["urls"] for chunk in chunks[one.first_chunk - 1 : end - 1]]
                changes.append({"of": one.id, "new": urls})
        _set(conn, _partitions, changes)
    op.drop_column("tasks", "chunks")


def downgrade() -> None:
    op.add_column("tasks", sa.Column("chunks", _JSON, server_default=sa.text("'[]'"), nullable=False))
    conn = op.get_bind()
    for tasks in _batches(conn):
        changes = []
        for task_id, _, partitions in tasks:
            chunks = [
                {"urls": urls, "first": place == 0}
                for one in partitions
                for place, urls in enumerate(one.chunks)
            ]
            changes.append({"of": task_id, "new": chunks})
        _set(conn, _tasks, changes)
    op.drop_column("task_parts", "chunks")


def _batches(conn: sa.Connection) -> Any:
    """Tasks in batches: id, chunks, and partitions in the order of their first chunks."""
    last = 0
    while True:
        rows = conn.execute(
            sa.select(_tasks.c.id, _tasks.c.chunks)
            .where(_tasks.c.id > last)
            .order_by(_tasks.c.id)
            .limit(_BATCH)
        ).all()
        if not rows:
            return
        last = rows[-1].id
        of: dict[int, list[Any]] = {row.id: [] for row in rows}
        for one in conn.execute(
            sa.select(_partitions)
            .where(_partitions.c.task_id.in_(list(of)))
            .order_by(_partitions.c.task_id, _partitions.c.first_chunk)
        ):
            of[one.task_id].append(one)
        yield [(row.id, row.chunks, of[row.id]) for row in rows]


def _set(conn: sa.Connection, table: sa.TableClause, changes: Sequence[dict[str, Any]]) -> None:
    if changes:
        statement = sa.update(table).where(table.c.id == sa.bindparam("of"))
        conn.execute(statement.values(chunks=sa.bindparam("new", type_=_JSON)), changes)
