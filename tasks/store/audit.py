"""The audit log: which person did what, and when. Rows are only ever added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from tasks.store.tables import audit_log


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the audit log: what a person did.

    Attributes:
        who: as the dashboard knows them, or the user of the command line.
        action: one word: retry, assign, abandon, drain ...
        subject: what it was done to, for people.
        detail: the rest: numbers of subtasks, what was said.
    """

    who: str
    action: str
    subject: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the log."""

    id: int
    at: datetime
    who: str
    action: str
    subject: str
    detail: Mapping[str, Any]


def record(conn: Connection, now: datetime, entry: Entry) -> None:
    """Add a row, in the transaction of what was done."""
    conn.execute(
        insert(audit_log).values(
            at=now,
            who=entry.who[:200],
            action=entry.action,
            subject=entry.subject[:500],
            detail=dict(entry.detail),
        )
    )


def listed(conn: Connection, *, before: int | None = None, most: int) -> Sequence[AuditRow]:
    """The newest rows first.

    Args:
        before: only older than this row; None: from the newest on.
    """
    statement = select(audit_log).order_by(audit_log.c.id.desc()).limit(most)
    if before is not None:
        statement = statement.where(audit_log.c.id < before)
    return [AuditRow(**row._mapping) for row in conn.execute(statement)]
