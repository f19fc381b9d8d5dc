"""Rows that nobody can read, for chaos runs: values no version of the loop writes, put in and taken out again."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from sqlalchemy import Connection

_WAITS = "SELECT id, id AS subtask_id, {column} FROM subtasks WHERE state = 'WAIT'"
_LISTED = (
    "SELECT task_parts.id, subtasks.id AS subtask_id, {column} FROM task_parts JOIN subtasks "
    "ON subtasks.part_id = task_parts.id WHERE subtasks.state IN ('WAIT', 'CRAWL') AND task_parts.state = 'open'"
)
_FAILED = "SELECT id, id AS subtask_id, {column} FROM subtasks WHERE state = 'FAILED'"


@dataclass(frozen=True, slots=True)
class Spoiling:
    """A way to spoil a row.

    Attributes:
        value: what is written into the column (SQL).
        rows: which rows are there to be spoiled: their number, that of their subtask, and the column.
    """

    table: str
    column: str
    value: str
    rows: str


SPOILINGS = (
    Spoiling("subtasks", "kind", "'moonbeam'", _WAITS),
    Spoiling("subtasks", "failed_on", "'7'::jsonb", _WAITS),
    Spoiling("subtasks", "reason", "'moonbeam'", _FAILED),
    Spoiling("task_parts", "state", "'moonbeam'", _LISTED),
)


@dataclass(frozen=True, slots=True)
class SpoiledRow:
    """A row with a value that cannot be read.

    Attributes:
        subtask_id: of the subtask that can't be worked on for that.
        before: the text of what was there; None: nothing.
    """

    of: Spoiling
    row_id: int
    subtask_id: int
    before: str | None


def spoil(conn: Connection, rng: Random) -> SpoiledRow | None:
    """Spoil a row of a subtask that is to be worked on; None where there is none."""
    of = rng.choice(SPOILINGS)
    rows = of.rows.format(column=f"{of.table}.{of.column}::text")
    found = conn.exec_driver_sql(
        f"{rows} ORDER BY {of.table}.id LIMIT 1 FOR UPDATE OF {of.table} SKIP LOCKED"
    ).one_or_none()
    if found is None:
        return None
    row_id, subtask_id, before = found
    conn.exec_driver_sql(f"UPDATE {of.table} SET {of.column} = {of.value} WHERE id = {row_id}")
    return SpoiledRow(of, row_id, subtask_id, before)


def repair(conn: Connection, row: SpoiledRow) -> None:
    """Put back what was there, unless somebody wrote something else meanwhile."""
    of = row.of
    cast = "::jsonb" if of.value.endswith("::jsonb") else ""
    conn.exec_driver_sql(
        f"UPDATE {of.table} SET {of.column} = %(before)s{cast} WHERE id = {row.row_id} AND {of.column} = {of.value}",
        {"before": row.before},
    )
