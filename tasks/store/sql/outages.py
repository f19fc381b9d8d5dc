"""Errors of the database that are no fault of what was to be written: it is away, or two transactions met."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError

from tasks.domain.errors import StoreBusy

_PASSING = frozenset(
    {
        "40P01",  # deadlock
        "40001",  # serialization failure
        "55P03",  # waited for a lock for too long
        "57014",  # the statement took too long
    }
)
_AWAY = frozenset(
    {
        "57P01",  # it is shut down
        "57P02",  # it crashed
        "57P03",  # it cannot be connected to now
        "25P03",  # the session was silent within a transaction
        "25P04",  # the transaction took too long
        "25006",  # read only: after a failover
        "53300",  # too many connections
        "53100",  # its disk is full
    }
)
_MAY_PASS = (
    *("starting up", "shutting down", "recovery", "too many", "remaining connection slots"),
    *("terminating connection", "not yet accepting", "not accepting"),
)
"""Of the FATAL errors at connecting, which come without a code: parts of those that time may cure."""

_NOT_OF_POSTGRES = "none"


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction may succeed if it is tried again at once: a deadlock, or a lock held too long.

    Neither can be ruled out: transactions of several processes store pages, and each page's address is unique.
    """
    return _code(error) in _PASSING


def is_outage(error: BaseException) -> bool:
    """Whether the database went away, or is not there yet: the same transaction may succeed after its return.

    Whether it was committed is not known where the error came with COMMIT (`tasks.store.sql.database.committed`).
    """
    if isinstance(error, StoreBusy):
        return True
    code = _code(error)
    if code == _NOT_OF_POSTGRES:
        return False
    if code is None:
        told = str(error)
        return "FATAL" not in told or any(part in told for part in _MAY_PASS)
    return code in _AWAY or code.startswith("08")


_UNWRITABLE = (
    "disk is full",
    "readonly database",
    "disk I/O error",
    "malformed",
    "unable to open database file",
)


def unwritable(error: BaseException) -> str | None:
    """Why SQLite's file takes no more writes, where that is so: its disk is full, or it may not be written to."""
    cause = getattr(error, "orig", error)
    if not isinstance(cause, sqlite3.Error):
        return None
    told = str(cause)
    return told if any(part in told for part in _UNWRITABLE) else None


def _code(error: BaseException) -> str | None:
    """PostgreSQL's code of an error; None where the connection was lost or not made."""
    if not isinstance(error, DBAPIError):
        return _NOT_OF_POSTGRES
    code: str | None = getattr(error.orig, "pgcode", _NOT_OF_POSTGRES)
    if code is None and not _of_connection(error):
        return _NOT_OF_POSTGRES
    return code


def _of_connection(error: DBAPIError) -> bool:
    return error.connection_invalidated or type(error.orig).__name__ in ("OperationalError", "InterfaceError")
