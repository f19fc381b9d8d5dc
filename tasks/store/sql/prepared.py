"""Statements that are compiled once, for what the loop executes many times a second.

Most of what a short statement costs is SQLAlchemy's work at each execution: its key in the cache of compiled
statements, its execution context, its result. SQLite itself takes a fifth of it. There a `Prepared` statement is
compiled once, and executed by the driver with values converted as its columns' types say. PostgreSQL, where a round
trip costs more than that, gets it through SQLAlchemy with statement batching (`tasks.store.sql.statement_batch`).
"""

from __future__ import annotations

import re
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from sqlalchemy import Column, Delete, Insert, Select, Table, Update, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from tasks.store.sql.statement_batch import DEFERRED
from tasks.store.sql.transaction import Transaction

Parameters = Mapping[str, Any]
_Convert = Callable[[Any], Any]

_LIST = re.compile(r"__\[POSTCOMPILE_(\w+)\]")
"""The place that SQLAlchemy leaves for the values of an expanding parameter."""
_DIALECT: Dialect = sqlite.dialect()


class Prepared:
    """A statement that is compiled once.

    Args:
        statement: its parameters are named (`bindparam`); an expanding one takes numbers, texts or bytes.
        columns: of an INSERT: those that each row gives.
    """

    def __init__(
        self, statement: Select[Any] | Insert | Update | Delete, columns: Sequence[str] | None = None
    ) -> None:
        self._statement = statement
        self._columns = columns

    def rows(self, conn: Transaction, parameters: Parameters | None = None) -> Sequence[Any]:
        """Execute it; its rows, each a named tuple."""
        if conn.dialect.name != "sqlite":
            return conn.execute(self._statement, parameters).all()
        return self._for_sqlite.rows(conn.connection, parameters or {})

    def rows_of_each(self, conn: Transaction, parameters: Sequence[Parameters]) -> Sequence[Any]:
        """Execute it for each of these; the rows of all, in any order."""
        if conn.dialect.name != "sqlite":
            return conn.execute(self._statement, parameters).all()
        driver = conn.connection
        return [row for of_one in parameters for row in self._for_sqlite.rows(driver, of_one)]

    def defer(self, conn: Transaction, parameters: Parameters | Sequence[Parameters] | None = None) -> None:
        """Execute it, or for each of many; its result is not used, so it may travel with a later statement."""
        if conn.dialect.name != "sqlite":
            assert not isinstance(self._statement, Select)
            defer(conn, self._statement, parameters)
        elif parameters is None or isinstance(parameters, Mapping):
            self._for_sqlite.execute(conn.connection, parameters or {})
        else:
            self._for_sqlite.execute_many(conn.connection, parameters)

    @cached_property
    def _for_sqlite(self) -> _Compiled:
        return _Compiled(self._statement, self._columns)


def defer(
    conn: Transaction,
    statement: Insert | Update | Delete,
    rows: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
) -> None:
    """Execute a statement whose result is not used: with the next one of this transaction, or at once."""
    if isinstance(statement, Insert):
        statement = statement.inline()  # a row's new key would be a result
    conn.execute(statement, rows, execution_options=DEFERRED)


def executed(conn: Transaction, text: str, values: Sequence[Any]) -> Any:
    """Execute a text by SQLite's driver, with values as it takes them; its cursor."""
    return _tried(conn.connection, "execute", text, values)


def executed_many(conn: Transaction, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """The same, for each of these rows of values."""
    _tried(conn.connection, "executemany", text, rows)


def _tried(driver: Any, method: str, text: str, values: Sequence[Any]) -> Any:
    cursor = driver.cursor()
    try:
        return getattr(cursor, method)(text, values)
    except sqlite3.Error as error:
        raise DBAPIError.instance(text, values, error, sqlite3.Error) from error


@cache
def insertion(table: Table, columns: tuple[str, ...], *returning: Column[Any]) -> Prepared:
    """An INSERT of rows that give these columns, and what it returns: in the rows' order, where that is a column."""
    statement = insert(table)
    return Prepared(
        statement.returning(*returning, sort_by_parameter_order=True) if returning else statement, columns
    )


def new_rows(conn: Transaction, table: Table, columns: tuple[str, ...], *returning: Column[Any]) -> Prepared:
    """An INSERT that skips rows whose key is there already (ON CONFLICT DO NOTHING), and what it returns of others."""
    return _new_rows(conn.dialect.name, table, columns, returning)


@cache
def _new_rows(
    dialect: str, table: Table, columns: tuple[str, ...], returning: tuple[Column[Any], ...]
) -> Prepared:
    skipping = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table).on_conflict_do_nothing()
    return Prepared(skipping.returning(*returning) if returning else skipping, columns)


class _Compiled:
    """A statement compiled for SQLite."""

    def __init__(self, statement: Any, columns: Sequence[str] | None) -> None:
        compiled = statement.compile(dialect=_DIALECT, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        self._text = compiled.string
        self._parts: Sequence[str] = _LIST.split(self._text)
        converts = {name: _to_database(bind.type) for name, bind in compiled.binds.items()}
        self._values = [
            (name, compiled.binds[name].expanding, compiled.params.get(name), converts[name])
            for name in compiled.positiontup or ()
        ]
        self._texts: dict[tuple[int, ...], str] = {}
        found = list(statement.exported_columns) if _has_rows(statement) else []
        self._row = _row_type([one.key for one in found])
        self._from_database = [
            (place, convert)
            for place, one in enumerate(found)
            if (convert := one.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None)) is not None
        ]

    def rows(self, driver: Any, parameters: Parameters) -> list[Any]:
        """The rows of one execution."""
        found = self.execute(driver, parameters).fetchall()
        make, converts = self._row._make, self._from_database
        if not converts:
            return [make(row) for row in found]
        rows = []
        for row in found:
            values = list(row)
            for place, convert in converts:
                values[place] = convert(values[place])
            rows.append(make(values))
        return rows

    def execute(self, driver: Any, parameters: Parameters) -> Any:
        """Execute it once; the driver's cursor."""
        values: list[Any] = []
        sizes: list[int] = []
        for name, expanding, default, convert in self._values:
            value = parameters.get(name, default)
            if expanding:
                of_list = list(value)
                sizes.append(len(of_list))
                values += of_list if convert is None else map(convert, of_list)
            else:
                values.append(value if convert is None else convert(value))
        text = self._text_for(tuple(sizes)) if sizes else self._text
        return _tried(driver, "execute", text, values)

    def execute_many(self, driver: Any, parameters: Iterable[Parameters]) -> None:
        """Execute it for each of these."""
        wanted = self._values
        rows = [
            [
                one.get(name, default) if convert is None else convert(one.get(name, default))
                for name, _, default, convert in wanted
            ]
            for one in parameters
        ]
        _tried(driver, "executemany", self._text, rows)

    def _text_for(self, sizes: tuple[int, ...]) -> str:
        """The statement with so many marks for each list."""
        text = self._texts.get(sizes)
        if text is None:
            marks = iter(sizes)
            # `split` leaves the names of lists at odd places.
            text = "".join(
                ", ".join("?" * next(marks)) if place % 2 else part for place, part in enumerate(self._parts)
            )
            if max(sizes) <= _KEPT:
                self._texts[sizes] = text
        return text


_KEPT = 32
"""Texts for lists up to this length are kept."""


def _row_type(names: Sequence[str]) -> Any:
    """A named tuple; a column without a name gets one by its place."""
    return namedtuple("Row", names, rename=True)


def _has_rows(statement: Any) -> bool:
    return isinstance(statement, Select) or bool(statement.exported_columns)


def _to_database(of_type: Any) -> _Convert | None:
    convert: _Convert | None = of_type.dialect_impl(_DIALECT).bind_processor(_DIALECT)
    return convert
