"""Turns the drivers' errors into the store's own: what leaves a transaction is a `StoreFailed` or `WrongRevision`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from splitter.errors import Message
from sqlalchemy import URL
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
_REFUSALS = ("FATAL", "does not support SSL", "no password supplied")
"""Parts of the errors at connecting that time does not cure, but for `_MAY_PASS`."""
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
_NO_NUL = "cannot contain NUL"
"""Part of the ValueError with which psycopg2 refuses the character 0."""
IS_FOLDER = Message("{place} is a folder: name the file of the database, such as {place}/reviewloop.db")
_NO_FOLDER = Message("there is no folder {folder}: make it, or name another file with --db")
_NO_RIGHTS = Message(
    "this user may not write to {place} or its folder: change their rights, or name another file with --db"
)
_ADDRESS = Message("(--db or REVIEWLOOP_DATABASE_URL)")
_LOGIN = Message("{place} refuses user or password: correct them {where}", where=_ADDRESS)
_NO_HOST = Message("no name server knows the host of {place}: correct it {where}", where=_ADDRESS)
_NO_SERVER = Message(
    "no PostgreSQL answers at {place}: start it, or correct host and port {where}", where=_ADDRESS
)
_NO_CONNECTION = Message("{place} has no free connection: end other programs, or raise its max_connections")
_DISK_FULL = Message("the disk of {place} is full: make room, then try again")
_PASSES = Message("{place} is starting or stopping: try again in a moment")
_LOST = Message("{place} ended the connection: see its log, then try again")
_PROBLEMS: Mapping[str, Message] = {
    "database is locked": Message(
        "another process has held {place} for too long: end it, then try again (`lsof` names it)"
    ),
    "disk is full": _DISK_FULL,
    "No space left": _DISK_FULL,
    "readonly database": _NO_RIGHTS,
    "unable to open database file": _NO_RIGHTS,
    "disk I/O error": Message("the disk of {place} fails: check it and its free space"),
    "malformed": Message("{place} is damaged: put back a backup (docs/backup.md)"),
    "file is not a database": Message("{place} is no SQLite database: name another file with --db"),
    "no password supplied": _LOGIN,
    "authentication failed": _LOGIN,
    'FATAL: role "': Message("{place}: there is no such user: correct it {where}", where=_ADDRESS),
    'FATAL: database "': Message(
        "{place}: there is no such database: make it with createdb, or correct its name {where}",
        where=_ADDRESS,
    ),
    "no pg_hba.conf entry": Message(
        "{place} does not let this user in from this machine: allow it in the server's pg_hba.conf"
    ),
    "permission denied": Message(
        "{place} refuses its user a right ({text}): grant it, or name another user {where}", where=_ADDRESS
    ),
    "read-only transaction": Message("{place} takes no writes: it is a standby, or set read-only"),
    "could not translate host name": _NO_HOST,
    "not known": _NO_HOST,
    "does not support SSL": Message("{place} does not speak TLS: leave sslmode out of its address"),
    **dict.fromkeys(
        (
            *("Connection refused", "No such file or directory", "No route to host"),
            *("Network is unreachable", "did not answer", "timeout expired", "timed out"),
        ),
        _NO_SERVER,
    ),
    **dict.fromkeys(("too many", "remaining connection slots", "QueuePool limit"), _NO_CONNECTION),
    **dict.fromkeys(("starting up", "shutting down", "recovery", "accepting"), _PASSES),
    **dict.fromkeys(("terminating connection", "closed the connection", "connection has been closed"), _LOST),
}
"""Problems in words for people, by parts of the drivers' texts. The first part that a text contains counts."""
_KIND_PROBLEMS: Mapping[type[TaskError], Message] = {
    StoreConflict: Message(
        "other work in {place} was in the way, and nothing was changed: try again ({text})"
    ),
    WrongRevision: Message(
        "{place} lacks a table or column of this version: bring it up with `reviewloop migrate` ({text})"
    ),
    Unstorable: Message("{place} can't store a value: {text}"),
}
"""Problems in words for people, by the class of the error."""


@contextmanager
def own_errors(url: URL | None = None) -> Iterator[None]:
    """Raise the store's error in place of a driver's, which is its cause.

    Args:
        url: address of the database, for the message.
    """
    try:
        yield
    except Exception as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        is_declared = isinstance(error, _FURTHER) or type(error).__module__.split(".")[0] in _DRIVERS
        is_drivers = is_declared or (type(error) is ValueError and _NO_NUL in str(error))
        if cause is None or not is_drivers:
            raise
        kind = _kind(cause, is_lost=isinstance(error, DBAPIError) and error.connection_invalidated)
        text = " ".join(str(cause).split()) or type(cause).__name__
        problem = _explain_file(url, text) or _explain(kind, text)
        raise kind(problem.template, place=show_place(url), text=text, **problem.parameters) from error


def show_place(url: URL | None) -> Message | str:
    """Return a database for people: its file, or the address of its server without the password."""
    if url is None:
        return Message("the database")
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    sockets = {name: value for name, value in url.query.items() if name == "host"}
    return url.set(drivername="postgresql", query=sockets).render_as_string()


def _explain_file(url: URL | None, text: str) -> Message | None:
    """Return why the file of a SQLite database can't be opened; `None` for another error."""
    if "unable to open" not in text or url is None or not url.database:
        return None
    file = Path(url.database)
    folder = file.absolute().parent
    try:
        if file.is_dir():
            return IS_FOLDER
        return None if folder.is_dir() else Message(_NO_FOLDER.template, folder=folder)
    except PermissionError:  # this user may not look into the folder
        return None


def _explain(kind: type[TaskError], text: str) -> Message:
    """Return what is wrong by the text and the class of an error. An unknown text is quoted."""
    if kind in _KIND_PROBLEMS:
        return _KIND_PROBLEMS[kind]
    found = next((problem for part, problem in _PROBLEMS.items() if part in text), None)
    return found or Message("{place}: {text}")


def _kind(error: BaseException, *, is_lost: bool) -> type[TaskError]:
    names, text = {kind.__name__ for kind in type(error).__mro__}, str(error)
    if names & {"DataError", "IntegrityError", "OverflowError", "ValueError"}:
        return Unstorable
    if type(error).__module__ == "sqlite3":
        return next((kind for part, kind in _OF_SQLITE.items() if part in text), StoreFailed)
    code: str | None = getattr(error, "pgcode", None)
    if code is None:  # the connection was lost or not made
        is_lost = is_lost or type(error).__name__ in ("OperationalError", "InterfaceError", "TimeoutError")
        is_refused = any(part in text for part in _REFUSALS)
        may_pass = not is_refused or any(part in text for part in _MAY_PASS)
        return StoreUnavailable if is_lost and may_pass else StoreFailed
    return StoreUnavailable if code.startswith("08") else _BY_CODE.get(code, StoreFailed)
