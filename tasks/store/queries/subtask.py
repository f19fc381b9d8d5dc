"""A subtask with its attempts, events and targets. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import JSON, Table

from tasks.domain.reasons import add_sentences
from tasks.store.sql.tables import UtcDateTime, subtasks
from tasks.store.sql.transaction import Transaction


def _row_type(table: Table, **others: type) -> Any:
    """Return a type of dictionaries with the columns of a table, and others, by their types."""
    own = {UtcDateTime: datetime, JSON: dict}  # SQLAlchemy knows the others
    types = {column.name: own.get(type(column.type)) or column.type.python_type for column in table.columns}
    return type(table.name, (dict,), {"__annotations__": types | others})


_SUBTASK_ROW = _row_type(
    subtasks, product=str, found=int, found_provenance=str, found_reported=int, engine=str
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """An attempt of a subtask, as it is stored.

    Attributes:
        no: its number within its subtask, from 1.
        outcome: `None`: it runs.
        reason: why it failed.
        errors: requests that gave no page, by error class.
        statuses: requests by HTTP status, or by error if there was no response.
        last_response: url, status, error, detail and head of the last unusable answer.
        more: its last result page showed that there is more.
        entry: hash of its site's entry in the catalog.
    """

    id: int
    subtask_id: int
    product_id: int
    no: int
    round: int
    site: str
    node: str
    token: str
    quota: int
    budget_s: float
    least_share: float
    slack: float
    allocated_at: datetime
    started_at: datetime | None
    progress_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    reason: str | None
    found: int | None
    found_provenance: str | None
    offered: int
    tried: int
    collected: int
    known: int
    late: int
    active_s: float
    wait_s: float
    lost_s: float
    bytes: int
    requests: int
    errors: Mapping[str, int]
    statuses: Mapping[str, int]
    last_response: Mapping[str, Any] | None
    more: bool
    entry: str

    @property
    def lasted_s(self) -> float | None:
        """Seconds from its start, or from its lease if it did not start, to its end; `None`: it runs."""
        if self.ended_at is None:
            return None
        return (self.ended_at - (self.started_at or self.allocated_at)).total_seconds()

    @property
    def end(self) -> str | None:
        """Why it failed, else its outcome; `None`: it runs."""
        return self.reason or self.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event of a subtask.

    Attributes:
        reason: the failure that it is about.
        detail: the data behind the decision; each reason in it with its sentence.
        sets: columns of the subtask that it set, with their values.
    """

    id: int
    at: datetime
    subtask_id: int
    transition: str
    from_state: str | None
    to_state: str
    token: str | None
    attempt_id: int | None
    node: str | None
    reason: str | None
    detail: Annotated[Mapping[str, Any] | None, add_sentences]
    sets: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """A result page or a hit of a subtask."""

    id: int
    kind: str
    url: str
    state: str
    reason: str | None
    tries: int


def get_subtask(tx: Transaction, subtask_id: int) -> Mapping[str, Any] | None:
    """Return a subtask's row with its product's name and its task's found; `None` if there is none."""
    row: Mapping[str, Any] | None = tx.record(_SUBTASK_ROW, _SUBTASK, id=subtask_id)
    return row


_SUBTASK = """
    SELECT s.*, p.name AS product, t.found, t.found_provenance, t.found_reported, t.engine
    FROM subtasks s JOIN products p ON p.id = s.product_id JOIN tasks t ON t.id = s.task_id WHERE s.id = :id
"""


def list_attempts(tx: Transaction, subtask_id: int) -> Sequence[AttemptRow]:
    """Return every attempt of a subtask, in order."""
    return tx.records(AttemptRow, _select(AttemptRow, "attempts"), id=subtask_id)


def list_events(tx: Transaction, subtask_id: int) -> Sequence[EventRow]:
    """Return the event log of a subtask, in order."""
    return tx.records(EventRow, _select(EventRow, "events"), id=subtask_id)


def list_targets(tx: Transaction, subtask_id: int) -> Sequence[TargetRow]:
    """Return every target of a subtask, in order."""
    return tx.records(TargetRow, _select(TargetRow, "targets"), id=subtask_id)


def _select(row_type: Any, table: str) -> str:
    columns = ", ".join(f"{one.name}" for one in fields(row_type))
    return f"SELECT {columns} FROM {table} WHERE subtask_id = :id ORDER BY id"
