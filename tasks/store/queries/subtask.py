"""A subtask with its attempts, events and targets: each row by the names of its columns. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Table

from tasks.store.sql.tables import UtcDateTime, attempts, events, subtasks, targets
from tasks.store.sql.transaction import Transaction


def _row_type(table: Table, **others: type) -> Any:
    """Return a type of dictionaries with the columns of a table, and others, by their types."""
    own = {UtcDateTime: datetime, JSON: dict}  # SQLAlchemy knows the others
    types = {column.name: own.get(type(column.type)) or column.type.python_type for column in table.columns}
    return type(table.name, (dict,), {"__annotations__": types | others})


_SUBTASK_ROW = _row_type(
    subtasks, product=str, found=int, found_provenance=str, found_reported=int, engine=str
)
_ATTEMPT_ROW, _EVENT_ROW, _TARGET_ROW = map(_row_type, (attempts, events, targets))


def get_subtask(tx: Transaction, subtask_id: int) -> Mapping[str, Any] | None:
    """Return a subtask's row with its product's name and its task's found; `None` if there is none."""
    row: Mapping[str, Any] | None = tx.record(_SUBTASK_ROW, _SUBTASK, id=subtask_id)
    return row


def list_attempts(tx: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Return every attempt of a subtask, in order."""
    return tx.records(
        _ATTEMPT_ROW, "SELECT * FROM attempts WHERE subtask_id = :id ORDER BY id", id=subtask_id
    )


def list_events(tx: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Return the event log of a subtask, in order."""
    return tx.records(_EVENT_ROW, "SELECT * FROM events WHERE subtask_id = :id ORDER BY id", id=subtask_id)


def list_targets(tx: Transaction, subtask_id: int) -> Sequence[Mapping[str, Any]]:
    """Return every target of a subtask, in order."""
    return tx.records(_TARGET_ROW, _TARGETS, id=subtask_id)


_SUBTASK = """
    SELECT s.*, p.name AS product, t.found, t.found_provenance, t.found_reported, t.engine
    FROM subtasks s JOIN products p ON p.id = s.product_id JOIN tasks t ON t.id = s.task_id WHERE s.id = :id
"""
_TARGETS = "SELECT id, kind, url, state, reason, tries FROM targets WHERE subtask_id = :id ORDER BY id"
