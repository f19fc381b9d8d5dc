"""Opening the database and beginning transactions, the same for SQLite and PostgreSQL.

SQLite: WAL, a busy timeout, and BEGIN IMMEDIATE for every transaction that writes, so that a writer never finds out
half-way that somebody else wrote. PostgreSQL: READ COMMITTED, in few round trips (`tasks.store.statement_batch`), and
an advisory lock (`try_lock`) around anything that must not run twice at once.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from splitter.errors import InputError
from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, OperationalError

from tasks.domain.errors import StoreBusy
from tasks.store.statement_batch import batching, enable_batching

T = TypeVar("T")

BUSY_TIMEOUT_S = 30.0

# 64 MiB of pages kept in memory, and a checkpoint every 16 MiB of log: random places of an index are met again before
# they are written (measured: 8 % less CPU a page stored, docs/benchmarks.md).
_MEMORY = ("cache_size=-65536", "wal_autocheckpoint=4000")

_ROWS_AT_ONCE = 4000


def open_engine(url: str, *, pool_size: int = 5) -> Engine:
    """An engine for ``sqlite:///FILE`` or ``postgresql://...`` (read as ``postgresql+psycopg2``).

    Raises:
        InputError: the URL cannot be read or names another database.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError(
            f"database URL {url!r} cannot be read: write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(url)
    if parsed.get_backend_name() == "postgresql":
        driver = parsed.set(drivername="postgresql+psycopg2")
        return _open_postgres(driver, pool_size)
    raise InputError(
        f"database {parsed.get_backend_name()!r} is not supported: write sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _open_postgres(url: URL, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        use_native_hstore=False,  # saves each connection a round trip that looks for a type no table has
        # Rows of one INSERT, so that those of a batch travel in one round trip.
        executemany_mode="values_plus_batch",
        insertmanyvalues_page_size=_ROWS_AT_ONCE,
    )
    enable_batching(engine)
    return engine


def _open_sqlite(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        cursor = connection.cursor()
        _to_wal(cursor)
        for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY", *_MEMORY):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "IMMEDIATE")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _to_wal(cursor: Any) -> None:
    """Switch to WAL; SQLite ignores its busy timeout here, so programs that start at once would collide."""
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


class Store:
    """An open database: `begin` a transaction that writes, `read` in one that does not.

    Thread safe: each call takes a connection of its own from the pool.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str, *, pool_size: int = 5) -> Store:
        """Open `url` (see `open_engine`); creates no tables (see `tasks.store.migrate`)."""
        return cls(open_engine(url, pool_size=pool_size))

    @property
    def is_sqlite(self) -> bool:
        """True for the embedded database."""
        return self.engine.dialect.name == "sqlite"

    def connect(self) -> Connection:
        """A connection to keep, for `begin`; the caller closes it."""
        return batching(self.engine.connect())

    @contextmanager
    def begin(self, connection: Connection | None = None) -> Iterator[Connection]:
        """A transaction that may write: committed at the end, rolled back on an exception.

        Args:
            connection: of the caller (`connect`), to use instead of one from the pool.

        Raises:
            StoreBusy: SQLite stayed locked by another process for longer than the busy timeout.
        """
        try:
            with self.connect() if connection is None else nullcontext(connection) as conn, conn.begin():
                yield conn
        except OperationalError as error:
            if "database is locked" in str(error.orig):
                raise StoreBusy(
                    f"the database stayed locked for {BUSY_TIMEOUT_S:.0f} s: is another process stuck in it?"
                ) from error
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: one consistent view, and no writer waits for it."""
        options: dict[str, Any] = (
            {"sqlite_begin": "DEFERRED"} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        )
        with self.engine.connect().execution_options(**options) as conn:
            yield conn

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def read_now(conn: Connection) -> datetime:
    """The database's clock: the one clock of the loop, read once a tick and passed on."""
    if conn.dialect.name == "sqlite":
        # The database is a library of this process: its clock is this machine's.
        return datetime.now(UTC)
    now: datetime = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    return now.astimezone(UTC)


def try_lock(conn: Connection, name: str) -> bool:
    """Take the lock `name` until the transaction ends; False if another transaction has it.

    With SQLite every writing transaction excludes the others already.
    """
    if conn.dialect.name == "sqlite":
        return True
    key = zlib.crc32(name.encode())
    return bool(conn.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": key}).scalar_one())


def lost_deadlock(error: Exception) -> bool:
    """Whether PostgreSQL aborted a transaction to resolve a deadlock: the same transaction may succeed later.

    Deadlocks cannot be ruled out: transactions of several processes store pages, and each page's address is unique.
    """
    return isinstance(error, OperationalError) and getattr(error.orig, "pgcode", None) == "40P01"


def unstorable(error: BaseException) -> bool:
    """Whether an error lies in the values to be stored, so that another try would fail too."""
    return isinstance(error, DataError | IntegrityError | UnicodeError)


def insert_new(dialect: Dialect, table: Table, *returning: Column[Any]) -> Any:
    """An INSERT that skips rows whose key is there already (ON CONFLICT DO NOTHING), and returns these columns."""
    return _insert_new(dialect.name, table, returning)


@cache
def _insert_new(dialect: str, table: Table, returning: tuple[Column[Any], ...]) -> Any:
    skipping = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table).on_conflict_do_nothing()
    return skipping.returning(*returning) if returning else skipping


def insert_or(dialect: Dialect, table: Table) -> Any:
    """The dialect's INSERT, for ``on_conflict_do_update``."""
    return (sqlite.insert if dialect.name == "sqlite" else postgresql.insert)(table)


def columns_of(record: type, *of: Table) -> list[Column[Any]]:
    """The columns that a dataclass has fields for, each of the first of these tables that has it."""
    found = {
        field.name: [table.c[field.name] for table in of if field.name in table.c] for field in fields(record)
    }
    return [columns[0] for columns in found.values() if columns]


def count_by(conn: Connection, column: Column[T], *where: ColumnElement[bool]) -> dict[T, int]:
    """How many rows of a table have each value of a column.

    Args:
        where: conditions on the rows.
    """
    rows = conn.execute(select(column, func.count()).where(*where).group_by(column))
    return {row[0]: row[1] for row in rows}
