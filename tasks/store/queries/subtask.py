"""A subtask with its attempts, events and targets. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table, select

from tasks.store.sql.tables import attempts, events, products, subtasks, targets, tasks
from tasks.store.sql.transaction import Transaction


def subtask(conn: Transaction, subtask_id: int) -> Mapping[str, Any] | None:
    """A subtask's row with its product's name and its task's found; None if there is none."""
    row = conn.execute(
        select(
            subtasks,
            products.c.name.label("product"),
            tasks.c.found,
            tasks.c.found_provenance,
            tasks.c.found_reported,
            tasks.c.engine,
        )
        .join(products, products.c.id == subtasks.c.product_id)
        .join(tasks, tasks.c.id == subtasks.c.task_id)
        .where(subtasks.c.id == subtask_id)
    ).one_or_none()
    return dict(row._mapping) if row is not None else None


def attempts_of(conn: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Every attempt of a subtask, in order."""
    return _rows(conn, attempts, subtask_id)


def events_of(conn: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """The event log of a subtask, in order."""
    return _rows(conn, events, subtask_id)


def targets_of(conn: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Every target of a subtask, in order."""
    return _rows(conn, targets, subtask_id, "id", "kind", "url", "state", "reason", "tries")


def _rows(conn: Transaction, table: Table, subtask_id: int, *columns: str) -> Sequence[Mapping[str, Any]]:
    """Rows of a subtask in the order they were made, with these columns or all."""
    wanted = [table.c[name] for name in columns] or list(table.c)
    rows = conn.execute(select(*wanted).where(table.c.subtask_id == subtask_id).order_by(table.c.id))
    return [dict(row._mapping) for row in rows]
