"""Statement batching: fewer round trips to a PostgreSQL that may be far away.

psycopg2 sends a text as it is given: several statements in one text cost one round trip, and the result of the last one
comes back. On a `batching` connection BEGIN is sent with the first statement of a transaction, a deferred statement
(`defer`) with the next one whose result is needed, and what is still pending with COMMIT. The order is kept, and each
statement sees what was committed before it began (READ COMMITTED). An error in a deferred statement is raised,
unchanged, by the statement it was sent with.

SQLite has no round trips: there a deferred statement is executed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, event

DEFERRED: Mapping[str, Any] = {"deferred": True}
"""Execution options of a statement that may be deferred: its result is not used, not even its rowcount."""

_PENDING = "pending_statements"
_BEGIN = b"BEGIN"


def batching(conn: Connection) -> Connection:
    """The connection, not yet in a transaction, with statement batching; unchanged for SQLite."""
    if conn.dialect.name == "sqlite":
        return conn
    # The driver must not begin transactions by itself: each time that is a round trip.
    return conn.execution_options(isolation_level="AUTOCOMMIT", **{_PENDING: []})


def enable_batching(engine: Engine) -> None:
    """Enable `batching` connections of a PostgreSQL engine (psycopg2)."""
    event.listen(engine, "begin", _begin)
    event.listen(engine, "commit", _commit)
    event.listen(engine, "rollback", _rollback)
    event.listen(engine, "do_execute", _execute)
    event.listen(engine, "do_executemany", _executemany)


def _pending(conn: Connection) -> list[bytes] | None:
    """Statements not sent yet; None: the connection does no batching."""
    pending: list[bytes] | None = conn.get_execution_options().get(_PENDING)
    return pending


def _begin(conn: Connection) -> None:
    if (pending := _pending(conn)) is not None:
        pending[:] = [_BEGIN]


def _commit(conn: Connection) -> None:
    pending = _pending(conn)
    if pending is None or pending == [_BEGIN]:
        return
    try:
        conn.exec_driver_sql("COMMIT")
    except BaseException:
        _rollback(conn)  # SQLAlchemy counts a transaction as over whose COMMIT failed
        raise


def _rollback(conn: Connection) -> None:
    pending = _pending(conn)
    if pending is None:
        return
    begun = pending[:1] != [_BEGIN]
    pending.clear()
    if begun and not (conn.closed or conn.invalidated):
        conn.exec_driver_sql("ROLLBACK")


def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    return _executemany(cursor, statement, (parameters,), context)


def _executemany(cursor: Any, statement: str, parameters: Sequence[Any], context: Any) -> bool:
    """Send a statement with the pending ones, or add it to them; False: the connection does no batching."""
    pending = _pending(context.root_connection)
    if pending is None:
        return False
    if cursor.name is not None:
        _open_cursor(cursor, statement, parameters[0], pending)
        return True
    pending += [cursor.mogrify(statement, of_one) for of_one in parameters]
    if not context.execution_options.get("deferred"):
        text = b";\n".join(pending)
        pending.clear()
        cursor.execute(text)
    return True


def _open_cursor(cursor: Any, statement: str, parameters: Any, pending: list[bytes]) -> None:
    """Execute with a server-side cursor (``yield_per``), which must be declared in a text of its own."""
    if pending:
        with cursor.connection.cursor() as plain:
            plain.execute(b";\n".join(pending))
        pending.clear()
    cursor.withhold = True  # the driver sees no transaction and would refuse a cursor without hold
    cursor.execute(statement, parameters)
