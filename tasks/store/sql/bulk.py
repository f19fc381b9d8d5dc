"""Many rows of one table in one statement, at little cost a row.

The only hand-written inserts: a page brings tens of reviews, and building a statement's parameters through SQLAlchemy
costs as much as storing them.

PostgreSQL receives a batch of transitions as one JSON document that it reads as a table (`as_table`): one text to quote
and one statement to parse and plan instead of a thousand, which was most of the cost of a transition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import (
    Column,
    Insert,
    Table,
    TableValuedAlias,
    column,
    func,
    insert,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import Text, TypeEngine

from tasks.store.sql.batches import sqlite_time
from tasks.store.sql.prepared import defer, executed, executed_many, insertion
from tasks.store.sql.statement_batch import DEFERRED
from tasks.store.sql.transaction import Transaction

_ROWS_A_STATEMENT = 1000
_VALUES_A_STATEMENT = 10_000


def insert_rows(
    conn: Transaction,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    *,
    new_only: bool = False,
) -> None:
    """Insert rows by a hand-written statement.

    Args:
        columns: of the table, in the order of each row's values: numbers, texts, bytes and None; times as
            `time_writer` gives them.
        new_only: skip rows whose key is there already.
    """
    if not rows:
        return
    if conn.dialect.name == "sqlite":
        executed_many(conn, _one_row(table, columns, new_only), rows)
        return
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        some = rows[start : start + _ROWS_A_STATEMENT]
        statement = _statement("%s", len(some), table, columns, new_only)
        conn.exec_driver_sql(statement, tuple(chain.from_iterable(some)), execution_options=DEFERRED)


def time_writer(conn: Transaction) -> Callable[[datetime | None], Any]:
    """A function from an aware time to the driver's value, the one that `UtcDateTime` stores."""
    return _as_text if conn.dialect.name == "sqlite" else lambda time: time


def _as_text(time: datetime | None) -> str | None:
    return None if time is None else sqlite_time(time)


@cache
def _one_row(table: Table, columns: tuple[str, ...], new_only: bool) -> str:
    return _statement("?", 1, table, columns, new_only)


def _statement(mark: str, rows: int, table: Table, columns: tuple[str, ...], new_only: bool) -> str:
    marks = ", ".join([f"({', '.join([mark] * len(columns))})"] * rows)
    skip = " ON CONFLICT DO NOTHING" if new_only else ""
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {marks}{skip}"


def rows_with(
    conn: Transaction, table: Table, columns: str, key: str, values: Collection[Any], rest: str = ""
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
    sqlite = conn.dialect.name == "sqlite"
    mark = "?" if sqlite else "%s"
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(wanted), _VALUES_A_STATEMENT):
        some = wanted[start : start + _VALUES_A_STATEMENT]
        marks = ", ".join([mark] * len(some))
        statement = f"SELECT {columns} FROM {table.name} WHERE {key} IN ({marks}) {rest}"
        found.extend(executed(conn, statement, some) if sqlite else conn.exec_driver_sql(statement, some))
    return found


def as_table(
    columns: Sequence[tuple[str, TypeEngine[Any]]], rows: Sequence[tuple[Any, ...]]
) -> TableValuedAlias:
    """Rows as a table within a statement to PostgreSQL, to insert or to update from.

    Args:
        columns: name and type of each, in the order of each row's values.
        rows: numbers, texts, truth values, None, aware times and what a JSON column takes.
    """
    names = [name for name, _ in columns]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=datetime.isoformat)
    document = literal(text, Text).cast(JSONB)
    typed = (column(name, type_) for name, type_ in columns)
    return (
        func.jsonb_to_recordset(document).table_valued(*typed, name="given").render_derived(with_types=True)
    )


def insert_many(
    conn: Transaction,
    table: Table,
    same: Mapping[str, Any],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert many rows; may be deferred.

    Args:
        same: columns that have the same value in every row.
        columns: the others, in the order of each row's values; rows are numbered in the order given.
    """
    if _one_by_one(conn, rows):
        insertion(table, (*same, *columns)).defer(conn, _each(same, columns, rows))
    else:
        defer(conn, _insert_from(table, same, columns, rows))


def inserted(
    conn: Transaction,
    table: Table,
    same: Mapping[str, Any],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    *returning: Column[Any],
) -> Sequence[Any]:
    """Insert many rows as `insert_many` does; these columns of each, in any order."""
    if _one_by_one(conn, rows):
        added = insertion(table, (*same, *columns), *returning)
        return added.rows_of_each(conn, _each(same, columns, rows))
    return conn.execute(_insert_from(table, same, columns, rows).returning(*returning)).all()


def _one_by_one(conn: Transaction, rows: Sequence[tuple[Any, ...]]) -> bool:
    return conn.dialect.name == "sqlite" or len(rows) == 1


def _each(
    same: Mapping[str, Any], columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    return [{**same, **dict(zip(columns, row, strict=True))} for row in rows]


def _insert_from(
    table: Table, same: Mapping[str, Any], columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> Insert:
    given = as_table([(name, table.c[name].type) for name in columns], rows)
    of_all = [literal(value, table.c[name].type) for name, value in same.items()]
    wanted = select(*of_all, *(given.c[name] for name in columns))
    return insert(table).from_select([*same, *columns], wanted)
