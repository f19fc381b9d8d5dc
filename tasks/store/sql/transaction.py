"""Executes SQL: a statement is text with named values, the same for SQLite and PostgreSQL.

`:name` stands for a value and `IN :name` or `NOT IN :name` for a list of values. `FOR UPDATE`, `FOR NO KEY UPDATE` and
`SKIP LOCKED` are for PostgreSQL: SQLite, which has one writer at a time, gets the text without them. `text GLOB '*' ||
pattern || '*'` asks for a pattern of `as_pattern`; PostgreSQL gets it as a regular expression. The drivers get the
texts straight from here; SQLAlchemy keeps their connections.

PostgreSQL may be far away, so that round trips count. psycopg2 sends a text as it is given: several statements in one
text take one round trip, and the result of the last one comes back. BEGIN is sent with the first statement. A statement
without a result is sent with the next one, or with COMMIT at the end. The order stays the same. The statement that a
failing one was sent with raises its error, unchanged.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, TypeVar, cast

from splitter.normalize import list_spellings
from sqlalchemy import Connection

from tasks.domain.errors import StoreFailed
from tasks.store.sql.rows import (
    document,
    insertion,
    json_text,
    read_time,
    reader_of,
    sqlite_rows,
    updating,
    utc_text,
)

R = TypeVar("R")

_PLACE = re.compile(r"(?:\b(NOT )?(IN) )?(?<![:\w]):([a-z]\w*)")
"""The place of a value; behind `IN` or `NOT IN`, of a list."""
_PLAIN = frozenset((int, float, str, bytes))
"""Types that SQLite takes as they are."""
_LOCK = re.compile(r"\sFOR (NO KEY )?UPDATE( OF \w+)?( SKIP LOCKED)?")
_GLOB = re.compile(r"GLOB '\*' \|\| (\S+) \|\| '\*'")
_CLOCK = "SELECT clock_timestamp()"
_AT_ONCE = 5_000
"""Rows that `stream` takes from PostgreSQL at once."""
_MOST_MARKS = 4_096
"""Maximum number of marks for a list; SQLite may allow only 32,766 in a statement. A longer list is sent as JSON."""
_AS_JSON = -1
NOTHING: Mapping[str, Any] = {}


class Transaction:
    """A transaction of the store: it reads one consistent view, or writes.

    Values may be numbers, texts, bytes, truth values, aware times, enums, `None`, and lists or maps for JSON columns.

    Args:
        now: aware; the time that this transaction counts from. `None`: the database's clock, asked when it is needed.
    """

    def __init__(self, conn: Connection, now: datetime | None = None, *, begin: str = "BEGIN") -> None:
        self._conn = conn
        self._now = now
        self._driver = cast("Any", conn.connection.driver_connection)
        self.is_sqlite = conn.dialect.name == "sqlite"
        self._pending = [] if self.is_sqlite else [begin.encode()]
        self._is_begun = self.is_sqlite
        if self.is_sqlite:
            self._driver.execute(begin)

    def commit(self) -> None:
        """Commit, if anything was sent or is pending."""
        if self.is_sqlite:
            self._driver.execute("COMMIT")
        elif self._is_begun or len(self._pending) > 1:
            self._pending.append(b"COMMIT")
            cursor = self._driver.cursor()
            self._send(cursor)
            if cursor.statusmessage != "COMMIT":
                raise StoreFailed("an earlier statement of the transaction had failed: nothing is stored")

    def roll_back(self) -> None:
        """Undo what was sent; a connection that is lost is not used again."""
        self._pending.clear()
        try:
            if self._is_begun and (not self.is_sqlite or self._driver.in_transaction):
                self._driver.cursor().execute("ROLLBACK")
        except Exception:
            self._conn.invalidate()

    @property
    def now(self) -> datetime:
        """The database's time, the same one for the whole transaction."""
        if self._now is None:
            # SQLite is a library of this process: its clock is this machine's.
            told = datetime.now(UTC) if self.is_sqlite else self.value(_CLOCK)
            self._now = told.astimezone(UTC)
        return self._now

    def number(self) -> int | None:
        """Return the number of this transaction, see `is_committed`; `None` with SQLite. Asks for `now` on the way."""
        if self.is_sqlite:
            return None
        told, number = self.rows(f"{_CLOCK}, txid_current()")[0]
        self._now = told.astimezone(UTC)
        return int(number)

    def records(self, row_type: type[R], statement: str, **values: Any) -> list[R]:
        """Return the rows of a query, each a `row_type`: a dataclass or named tuple with the query's columns."""
        cursor = self._execute(statement, values)
        read = self._reader(row_type, cursor)
        return [read(row) for row in cursor.fetchall()]

    def record(self, row_type: type[R], statement: str, **values: Any) -> R | None:
        """Return the first row of a query as a `row_type`; `None` if there is none."""
        found = self.records(row_type, statement, **values)
        return found[0] if found else None

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows of a query as tuples of numbers, texts and bytes. For times and JSON see `records`."""
        return list(self._execute(statement, values).fetchall())

    def value(self, statement: str, **values: Any) -> Any:
        """Return the first column of the first row, a number, text or bytes; `None` if there is no row."""
        row = self._execute(statement, values).fetchone()
        return None if row is None else row[0]

    def time(self, statement: str, **values: Any) -> datetime | None:
        """Return the first column of the first row, a time."""
        told = self.value(statement, **values)
        return read_time(told) if isinstance(told, str) else told

    def run(self, statement: str, **values: Any) -> int:
        """Execute a statement and return how many rows it changed."""
        return int(self._execute(statement, values).rowcount)

    def later(self, statement: str, **values: Any) -> None:
        """Execute a statement whose result is not needed; to PostgreSQL it travels with the next one."""
        self._execute(statement, values, deferred=True)

    def insert(
        self,
        table: str,
        columns: tuple[str, ...],
        rows: Sequence[tuple[Any, ...]],
        *,
        shared: Mapping[str, Any] = NOTHING,
        computed: Mapping[str, str] = NOTHING,
        skip_known: bool = False,
    ) -> None:
        """Insert rows, numbered in the order given; to PostgreSQL they travel with the next statement.

        Args:
            columns: of the table, in the order of each row's values.
            shared: further columns that have the same value in every row.
            computed: further columns, each with an SQL expression; `{name}` in it is the row's value of a column.
            skip_known: leave out rows whose key is there already.
        """
        if not rows:
            return
        further = tuple(shared), tuple(computed.items())
        text = insertion(table, columns, *further, skip_known=skip_known, sqlite=self.is_sqlite)
        if self.is_sqlite:
            self._driver.executemany(text, sqlite_rows(table, columns, rows, shared))
        else:
            self.later(text, rows=document(columns, rows), **shared)

    def insert_returning(
        self,
        table: str,
        columns: tuple[str, ...],
        rows: Sequence[tuple[Any, ...]],
        *,
        returning: str,
        shared: Mapping[str, Any] = NOTHING,
        skip_known: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Insert rows as `insert` does.

        Args:
            returning: columns, separated by commas.

        Returns:
            These columns of each row that was inserted, in any order.
        """
        if not rows:
            return []
        if self.is_sqlite:
            # In half the time of RETURNING, which takes a statement for each row. New rows have the highest numbers.
            newest = self.value(f"SELECT coalesce(max(rowid), 0) FROM {table}")
            self.insert(table, columns, rows, shared=shared, skip_known=skip_known)
            return self.rows(f"SELECT {returning} FROM {table} WHERE rowid > :newest", newest=newest)
        text = insertion(table, columns, tuple(shared), skip_known=skip_known, sqlite=False)
        return self.rows(f"{text} RETURNING {returning}", rows=document(columns, rows), **shared)

    def update(
        self,
        table: str,
        key: tuple[str, ...],
        rows: Sequence[Mapping[str, Any]],
        *,
        shared: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Update rows of a table, each by its key; to PostgreSQL they travel with the next statement.

        Args:
            key: columns that a row is found by.
            rows: the key of each, once, and the columns to set, the same ones in every row.
            shared: columns that get the same value in every row; a column of the key may be one.
        """
        if not rows:
            return
        columns = tuple(name for name in rows[0] if name not in key)
        text = updating(table, columns, key, tuple(shared), sqlite=self.is_sqlite)
        names = (*columns, *key)
        ordered = [tuple(row[name] for name in names) for row in rows]
        if self.is_sqlite:
            self._driver.executemany(text, sqlite_rows(table, names, ordered, shared))
        else:
            self.later(text, rows=document(names, ordered), **shared)

    def stream(self, row_type: type[R], statement: str, **values: Any) -> Iterator[R]:
        """Yield the rows of a query without the whole result in memory."""
        text, given = self._prepare(statement, values)
        if self.is_sqlite:
            cursor = self._driver.cursor()
        else:
            self._send(self._driver.cursor())
            cursor = self._driver.cursor(name=f"stream_{uuid.uuid4().hex}", withhold=True)
            cursor.itersize = _AT_ONCE
        try:
            cursor.execute(text, given)
            rows = iter(cursor)
            for row in rows:
                read = self._reader(row_type, cursor)
                yield read(row)
                yield from map(read, rows)
        finally:
            cursor.close()

    def _execute(self, statement: str, values: Mapping[str, Any], *, deferred: bool = False) -> Any:
        """Execute a statement and return the driver's cursor."""
        text, given = self._prepare(statement, values)
        cursor = self._driver.cursor()
        if self.is_sqlite:
            return cursor.execute(text, given)
        self._pending.append(cursor.mogrify(text, given))
        if not deferred:
            self._send(cursor)
        return cursor

    def _send(self, cursor: Any) -> None:
        """Send what is pending to PostgreSQL."""
        if self._pending:
            text = b";\n".join(self._pending)
            self._pending.clear()
            self._is_begun = True
            cursor.execute(text)

    def _prepare(self, statement: str, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the driver's text of a statement, and its values."""
        places = _places(statement)
        if not self.is_sqlite:
            lists = {name for name, is_list in places if is_list}
            return _postgres_text(statement), {
                name: list(value) if name in lists else _encode_json(value) for name, value in values.items()
            }
        given: list[Any] = []
        lengths: list[int] = []
        for name, is_list in places:
            if is_list:
                listed = _pad([one if type(one) in _PLAIN else _for_sqlite(one) for one in values[name]])
                is_short = len(listed) <= _MOST_MARKS or type(listed[0]) is bytes
                lengths.append(len(listed) if is_short else _AS_JSON)
                given += listed if is_short else [json_text(listed)]
            else:
                given.append(_for_sqlite(values[name]))
        return _sqlite_text(statement, tuple(lengths)), given

    def _reader(self, row_type: Any, cursor: Any) -> Callable[[Sequence[Any]], Any]:
        return reader_of(row_type, tuple(column[0] for column in cursor.description), sqlite=self.is_sqlite)

    @property
    def engine_connection(self) -> Connection:
        """SQLAlchemy's connection, within the transaction, for Alembic."""
        if not self.is_sqlite:
            self._send(self._driver.cursor())
        return self._conn


def ask_driver(connection: Any, statement: str, *values: Any) -> list[Any]:
    """Execute a driver's own statement on its connection, outside of any `Transaction`; return the rows, if any."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def as_pattern(text: str) -> str:
    """Return the pattern of `GLOB '*' || ... || '*'` for texts that hold this one in any spelling."""
    return "".join(map(_as_class, list_spellings(text) or text))


def _as_class(chars: str) -> str:
    """Return the pattern of one of some characters, for SQLite and PostgreSQL."""
    if len(chars) == 1 and not chars.isascii():
        return chars
    # In a class, ] is a character at the beginning only, ^ everywhere else, and - at the end.
    ordered = sorted(chars, key=lambda char: 0 if char == "]" else 2 if char in "^-" else 1)
    return f"[{''.join(ordered)}]"


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    return value.isoformat() if isinstance(value, date) else _encode_json(value)


def _encode_json(value: Any) -> Any:
    return json_text(value) if isinstance(value, list | tuple | Mapping) else value


def _pad(values: Collection[Any]) -> Sequence[Any]:
    """Return a list filled up to a power of two with its last value: so there are few texts, each prepared once."""
    listed = list(values)
    return listed + listed[-1:] * ((1 << (len(listed) - 1).bit_length()) - len(listed)) if listed else listed


@lru_cache(maxsize=1024)
def _places(statement: str) -> tuple[tuple[str, bool], ...]:
    """Return the name of the value at each place of a statement, and whether it is a list."""
    return tuple((name, bool(is_list)) for _, is_list, name in _PLACE.findall(statement))


@lru_cache(maxsize=1024)
def _sqlite_text(statement: str, lengths: tuple[int, ...]) -> str:
    """Return a statement without its locks, with a mark for each value, also of its lists."""
    left = iter(lengths)

    def marks(found: re.Match[str]) -> str:
        if not found[2]:
            return "?"
        length = next(left)
        inside = "SELECT value FROM json_each(?)" if length == _AS_JSON else ", ".join("?" * length)
        return f"{found[1] or ''}IN ({inside})"

    return _PLACE.sub(marks, _LOCK.sub("", statement))


@lru_cache(maxsize=1024)
def _postgres_text(statement: str) -> str:
    """Return a statement as psycopg2 takes it."""

    def marks(found: re.Match[str]) -> str:
        value = f"%({found[3]})s"
        return value if not found[2] else f"<> ALL({value})" if found[1] else f"= ANY({value})"

    # (?e): no backslash in the pattern has a meaning.
    return _PLACE.sub(marks, _GLOB.sub(r"~ ('(?e)' || \1)", statement.replace("%", "%%")))
