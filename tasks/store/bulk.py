"""Many rows of one table in one statement, with as little as possible between them and the driver.

The one place of hand-written inserts: a page brings tens of reviews, and building a statement's parameters through
SQLAlchemy costs as much as storing them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table

from tasks.store.together import LATER

_ROWS_A_STATEMENT = 1000
_VALUES_A_STATEMENT = 10_000
_ZONE_AT = len("2013-05-06 12:30:00.000000")


def insert_rows(
    conn: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    *,
    new_only: bool = False,
) -> None:
    """Insert rows as they are.

    Args:
        columns: of the table, in the order of each row's values: numbers, texts, bytes and None; times as
            `time_writer` gives them.
        new_only: skip rows whose key is there already.
    """
    if not rows:
        return
    if conn.dialect.name == "sqlite":
        conn.exec_driver_sql(_statement("?", 1, table, columns, new_only), list(rows))
        return
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        some = rows[start : start + _ROWS_A_STATEMENT]
        statement = _statement("%s", len(some), table, columns, new_only)
        conn.exec_driver_sql(statement, tuple(chain.from_iterable(some)), execution_options=LATER)


def time_writer(conn: Connection) -> Callable[[datetime | None], Any]:
    """What turns an aware time into what the database's driver takes: the same that `UtcDateTime` stores."""
    return _as_text if conn.dialect.name == "sqlite" else _as_it_is


def _as_text(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(" ", "microseconds")[:_ZONE_AT] if moment is not None else None


def _as_it_is(moment: datetime | None) -> datetime | None:
    return moment


def _statement(mark: str, rows: int, table: Table, columns: tuple[str, ...], new_only: bool) -> str:
    marks = ", ".join([f"({', '.join([mark] * len(columns))})"] * rows)
    skip = " ON CONFLICT DO NOTHING" if new_only else ""
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {marks}{skip}"


def rows_with(
    conn: Connection, table: Table, columns: str, key: str, values: Collection[Any], rest: str = ""
) -> Sequence[tuple[Any, ...]]:
    """Rows of a table whose `key` is one of many values.

    Args:
        columns: expressions to select, in SQL.
        key: a column.
        values: of the key.
        rest: of the statement, behind the condition.
    """
    wanted = tuple(values)
    if not wanted:
        return ()
    mark = "?" if conn.dialect.name == "sqlite" else "%s"
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(wanted), _VALUES_A_STATEMENT):
        some = wanted[start : start + _VALUES_A_STATEMENT]
        marks = ", ".join([mark] * len(some))
        statement = f"SELECT {columns} FROM {table.name} WHERE {key} IN ({marks}) {rest}"
        found.extend(conn.exec_driver_sql(statement, some))
    return found
