"""Opening the database and beginning transactions, the same for SQLite and PostgreSQL.

SQLite: WAL, a busy timeout, and BEGIN IMMEDIATE for every transaction that writes, so that a writer never finds out
half-way that another one wrote. PostgreSQL: READ COMMITTED, in few round trips, and an advisory lock (`try_lock`)
around anything that must not run twice at once.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from splitter.errors import InputError
from sqlalchemy import Connection, Engine, create_engine, event, make_url

from tasks.domain.errors import StoreConflict
from tasks.domain.given_address import AddressKind, read_address
from tasks.domain.outage import Outage
from tasks.store.sql.outages import IS_FOLDER, own_errors
from tasks.store.sql.transaction import Transaction, ask_driver

log = logging.getLogger("reviewloop.store")

T = TypeVar("T")

BUSY_TIMEOUT_S = 30.0
_TRIES = 5
"""Maximum number of attempts for a transaction that loses deadlocks with other work."""

# A checkpoint every 16 MiB of log: random places of an index are met again before they are written, which takes less
# CPU (docs/benchmarks.md). More than 8 MiB of pages in memory, for each connection, gain nothing.
_MEMORY = ("cache_size=-8192", "wal_autocheckpoint=4000")


def open_engine(url: str, *, pool_size: int = 5, connect_s: int | None = None) -> Engine:
    """Return an engine for ``sqlite:///FILE`` or ``postgresql://...`` (read as ``postgresql+psycopg2``).

    Args:
        connect_s: seconds that a PostgreSQL server has to take a connection; `None` leaves the driver's default.

    Raises:
        InputError: the URL cannot be read or names another database.
    """
    if "://" not in url and Path(url).is_dir():
        raise InputError(IS_FOLDER.template, place=Path(url))
    address = read_address(AddressKind.DATABASE, url)
    if address.scheme == "sqlite":
        return _open_sqlite(url)
    from tasks.store.sql.postgres import open_postgres  # with its driver, which SQLite does without

    parsed = make_url(url)
    if connect_s is not None:
        parsed = parsed.update_query_dict({"connect_timeout": f"{connect_s}"})
    return open_postgres(parsed.set(drivername="postgresql+psycopg2"), pool_size)


def _open_sqlite(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False})

    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, _record: object, args: Any, given: Any) -> Any:
        file = engine.url.database
        _owners_alone(file)
        connection = dialect.connect(*args, **given)
        try:
            _to_wal(connection)
        except sqlite3.OperationalError:
            connection.close()
            if not file or is_writable(Path(file)):
                raise
            connection = _open_read_only(Path(file), given)
        connection.isolation_level = None  # the driver must not begin transactions by itself
        for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY", *_MEMORY):
            ask_driver(connection, f"PRAGMA {pragma}")
        return connection

    return engine


def _owners_alone(file: str | None) -> None:
    """Make a new database file readable by its owner alone; SQLite gives its -wal and -shm the same rights.

    If that fails, SQLite reports the error when it opens the file.
    """
    if file and file != ":memory:" and not file.startswith("file:"):
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite ignores its busy timeout here, so programs that start at once would collide."""
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            ask_driver(connection, "PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def is_writable(file: Path) -> bool:
    """Return True if this user may write to a database file and make the files next to it."""
    return all(os.access(one, os.W_OK) for one in (file.absolute().parent, file) if one.exists())


def _open_read_only(file: Path, given: Mapping[str, Any]) -> sqlite3.Connection:
    """Open a database file for reading alone, without the files next to it if these are not there.

    Raises:
        sqlite3.OperationalError: it can't be read, or a part of it is in a log that needs recovery.
    """
    log = file.with_name(f"{file.name}-wal")
    in_log = log.exists() and log.stat().st_size > 0
    for mode in ("mode=ro",) if in_log else ("mode=ro", "immutable=1"):
        connection: sqlite3.Connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?{mode}", uri=True, **given
        )
        try:
            ask_driver(connection, "SELECT 1 FROM sqlite_master")
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            failed = error
    raise failed


class Store:
    """An open database: `begin` a transaction that writes, `read` in one that does not.

    Thread safe: each call takes a connection of its own from the pool.

    Attributes:
        patient: True lets `read` take as long as it needs (reports); a runner's reads have the limits of
            `tasks.store.sql.postgres`, so that no process waits for good.
        outage: whoever waits for the database while it is away reports that here.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.patient = False
        self.outage = Outage(log, "the database is away, what needs it waits", "the database is back")

    @classmethod
    def open(cls, url: str, *, pool_size: int = 5, connect_s: int | None = None) -> Store:
        """Open `url` (see `open_engine`); creates no tables (see `tasks.store.sql.schema`)."""
        return cls(open_engine(url, pool_size=pool_size, connect_s=connect_s))

    @property
    def is_sqlite(self) -> bool:
        """True for the embedded database."""
        return self.engine.dialect.name == "sqlite"

    def connect(self) -> Connection:
        """Open a connection to keep, for `begin`; the caller closes it."""
        with own_errors(self.engine.url):
            return self.engine.connect()

    @contextmanager
    def begin(
        self, connection: Connection | None = None, *, now: datetime | None = None
    ) -> Iterator[Transaction]:
        """Begin a transaction that may write: committed at the end, rolled back on an exception.

        Args:
            connection: of the caller (`connect`), to use instead of one from the pool.
            now: see `Transaction`.

        Raises:
            StoreFailed, WrongRevision: in place of a driver's error.
        """
        kept = nullcontext(connection) if connection is not None else self.connect()
        with own_errors(self.engine.url), kept as conn:
            transaction = Transaction(conn, now, begin="BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN")
            try:
                yield transaction
                transaction.commit()
            except BaseException:
                transaction.roll_back()
                raise

    @contextmanager
    def read(self, *, now: datetime | None = None) -> Iterator[Transaction]:
        """Begin a transaction that only reads: one consistent view, and no writer waits for it. Raises as `begin`."""
        begin = "BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ"
        with own_errors(self.engine.url), self.engine.connect() as conn:
            transaction = Transaction(conn, now, begin=begin)
            try:
                with lift_limits(transaction) if self.patient else nullcontext():
                    yield transaction
            finally:
                transaction.roll_back()

    def write(self, operation: Callable[[Transaction], T], *, dry_run: bool = False) -> T:
        """Run an operation in a transaction and commit it, again if it loses a deadlock. Raises as `begin`.

        Args:
            dry_run: roll the transaction back at its end.
        """
        for _ in range(_TRIES - 1):
            with suppress(StoreConflict):
                return self._write_once(operation, dry_run=dry_run)
        return self._write_once(operation, dry_run=dry_run)

    def _write_once(self, operation: Callable[[Transaction], T], *, dry_run: bool) -> T:
        with suppress(_DryRun), self.begin() as tx:
            result = operation(tx)
            if dry_run:
                raise _DryRun
        return result

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


def is_committed(conn: Transaction, number: int) -> bool | None:
    """Return whether a transaction whose COMMIT got no answer was committed; None if that is not decided yet."""
    # After a failover the number may not have been reached yet, which PostgreSQL would call an error.
    status = conn.value(
        "SELECT CASE WHEN :number < txid_current() THEN txid_status(:number) END", number=number
    )
    return None if status == "in progress" else bool(status == "committed")


@contextmanager
def lift_limits(tx: Transaction) -> Iterator[None]:
    """Lift the limits on statements and silence from this transaction; nothing to lift with SQLite."""
    if tx.is_sqlite:
        yield
        return
    from tasks.store.sql.postgres import UNHURRIED

    driver: Any = tx.engine_connection.connection.driver_connection
    driver.patient = True
    try:
        tx.later(UNHURRIED)
        yield
    finally:
        driver.patient = False


def wait_lock(tx: Transaction, name: str) -> None:
    """Take the lock `name` until the transaction ends, after whoever has it.

    With SQLite every writing transaction excludes the others already.
    """
    if not tx.is_sqlite:
        tx.rows("SELECT pg_advisory_xact_lock(:key)", key=zlib.crc32(name.encode()))


def try_lock(conn: Transaction, name: str, lock_timeout_s: float) -> bool:
    """Take the lock `name` until the transaction ends; False if another transaction has it.

    With SQLite every writing transaction excludes the others already. A session that holds it for long is logged.

    Args:
        lock_timeout_s: from now on in this transaction, the most that a statement waits for a row.
    """
    if conn.is_sqlite:
        return True
    key = zlib.crc32(name.encode())
    both = "SELECT set_config('lock_timeout', :most, true), pg_try_advisory_xact_lock(:key)"
    is_ours = bool(conn.rows(both, key=key, most=f"{1000 * lock_timeout_s:.0f}ms")[0][1])
    if not is_ours:
        from tasks.store.sql.postgres import log_advisory_owner

        log_advisory_owner(conn, name, key)
    return is_ours
