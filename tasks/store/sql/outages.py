"""Turns the drivers' errors into the store's own: what leaves a transaction is a `StoreFailed` or `WrongRevision`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from tasks.domain.errors import (
    StoreBusy,
    StoreConflict,
    StoreFailed,
    StoreUnavailable,
    StoreUnwritable,
    TaskError,
    Unstorable,
    WrongRevision,
)

_BY_CODE: Mapping[str, type[TaskError]] = {
    "40P01": StoreConflict,  # deadlock
    "40001": StoreConflict,  # serialization failure
    "55P03": StoreConflict,  # waited for a lock for too long
    "57014": StoreConflict,  # the statement took too long
    "57P01": StoreUnavailable,  # it is shut down
    "57P02": StoreUnavailable,  # it crashed
    "57P03": StoreUnavailable,  # it cannot be connected to now
    "25P03": StoreUnavailable,  # the session was silent within a transaction
    "25P04": StoreUnavailable,  # the transaction took too long
    "25006": StoreUnavailable,  # read only: after a failover
    "53300": StoreUnavailable,  # too many connections
    "53100": StoreUnavailable,  # its disk is full
    "42P01": WrongRevision,  # there is no such table
    "42703": WrongRevision,  # there is no such column
}
"""Errors of PostgreSQL."""
_MAY_PASS = (
    *("starting up", "shutting down", "recovery", "too many", "remaining connection slots"),
    *("terminating connection", "not yet accepting", "not accepting"),
)
"""Parts of the FATAL errors at connecting that time may cure; these come without a code."""
_OF_SQLITE: Mapping[str, type[TaskError]] = {
    "database is locked": StoreBusy,
    "disk is full": StoreUnwritable,
    "readonly database": StoreUnwritable,
    "disk I/O error": StoreUnwritable,
    "malformed": StoreUnwritable,
    "unable to open database file": StoreUnwritable,
    "no such table": WrongRevision,
    "no such column": WrongRevision,
}
"""Errors of SQLite, by parts of their text."""
_DRIVERS = ("sqlite3", "psycopg2")
_FURTHER = (DBAPIError, PoolExhausted, UnicodeEncodeError, OverflowError)
"""Errors that a driver's module does not declare: of the pool, and of values that the database can't have."""
_PREFIX: Mapping[type[TaskError], str] = {
    StoreBusy: "is another process stuck in the database? ",
    StoreConflict: "other work was in the way, and nothing was changed; try again: ",
    StoreUnwritable: "check the database's file, its rights and its free space: ",
    WrongRevision: "the database's tables are of another version: ",
}


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the store's error in place of a driver's, which is its cause."""
    try:
        yield
    except Exception as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        is_drivers = isinstance(error, _FURTHER) or type(error).__module__.split(".")[0] in _DRIVERS
        if cause is None or not is_drivers:
            raise
        kind = _kind(cause, is_lost=isinstance(error, DBAPIError) and error.connection_invalidated)
        raise kind(_PREFIX.get(kind, "") + (" ".join(str(cause).split()) or type(cause).__name__)) from error


def _kind(error: BaseException, *, is_lost: bool) -> type[TaskError]:
    names, text = {kind.__name__ for kind in type(error).__mro__}, str(error)
    if names & {"DataError", "IntegrityError", "UnicodeEncodeError", "OverflowError"}:
        return Unstorable
    if type(error).__module__ == "sqlite3":
        return next((kind for part, kind in _OF_SQLITE.items() if part in text), StoreFailed)
    code: str | None = getattr(error, "pgcode", None)
    if code is None:  # the connection was lost or not made
        is_lost = is_lost or type(error).__name__ in ("OperationalError", "InterfaceError", "TimeoutError")
        may_pass = "FATAL" not in text or any(part in text for part in _MAY_PASS)
        return StoreUnavailable if is_lost and may_pass else StoreFailed
    return StoreUnavailable if code.startswith("08") else _BY_CODE.get(code, StoreFailed)
