"""Fewer round trips to a PostgreSQL that may be far away: what nobody waits for travels with the next statement.

psycopg2 sends a text as it is given it: several statements in it cost one round trip, and the last one's result comes
back. On a `gathered` connection a transaction's BEGIN goes with its first statement, what is done `later` with the next
one whose result is needed, and what is left of that with COMMIT. The order is kept; each statement still sees what
was committed before it began (READ COMMITTED). An error of what was kept back shows, as the exception it always was, at
the statement it travelled with.

SQLite has no round trips: there `later` is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Engine, Insert, Update, event

LATER: Mapping[str, Any] = {"later": True}
"""Execution options of a statement that may be kept back: nobody looks at its result, not even its rowcount."""

_KEPT = "kept_back"
_BEGIN = b"BEGIN"


def later(
    conn: Connection, statement: Insert | Update | Delete, rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Execute a statement whose result nobody needs: at once, or with the next one of this transaction."""
    if isinstance(statement, Insert):
        statement = statement.inline()  # a row's new key would be a result
    conn.execute(statement, rows, execution_options=LATER)


def gathered(conn: Connection) -> Connection:
    """Let a connection, not yet in a transaction, gather; one to SQLite stays as it is."""
    if conn.dialect.name == "sqlite":
        return conn
    # The driver must not begin transactions behind our back: each time that is a round trip.
    return conn.execution_options(isolation_level="AUTOCOMMIT", **{_KEPT: []})


def gathers(engine: Engine) -> None:
    """Enable `gathered` connections of a PostgreSQL engine (psycopg2)."""
    event.listen(engine, "begin", _begin)
    event.listen(engine, "commit", _commit)
    event.listen(engine, "rollback", _rollback)
    event.listen(engine, "do_execute", _execute)
    event.listen(engine, "do_executemany", _executemany)


def _kept(conn: Connection) -> list[bytes] | None:
    """What waits to be sent; None: the connection does not gather."""
    kept: list[bytes] | None = conn.get_execution_options().get(_KEPT)
    return kept


def _begin(conn: Connection) -> None:
    if (kept := _kept(conn)) is not None:
        kept[:] = [_BEGIN]


def _commit(conn: Connection) -> None:
    kept = _kept(conn)
    if kept is None or kept == [_BEGIN]:
        return
    try:
        conn.exec_driver_sql("COMMIT")
    except BaseException:
        _rollback(conn)  # to SQLAlchemy a transaction whose COMMIT failed is over
        raise


def _rollback(conn: Connection) -> None:
    kept = _kept(conn)
    if kept is None:
        return
    begun = kept[:1] != [_BEGIN]
    kept.clear()
    if begun and not (conn.closed or conn.invalidated):
        conn.exec_driver_sql("ROLLBACK")


def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    return _executemany(cursor, statement, (parameters,), context)


def _executemany(cursor: Any, statement: str, parameters: Sequence[Any], context: Any) -> bool:
    """Send statements with what was kept back, or keep them back; False: the connection does not gather."""
    kept = _kept(context.root_connection)
    if kept is None:
        return False
    if cursor.name is not None:
        _open_cursor(cursor, statement, parameters[0], kept)
        return True
    kept += [cursor.mogrify(statement, of_one) for of_one in parameters]
    if not context.execution_options.get("later"):
        text = b";\n".join(kept)
        kept.clear()
        cursor.execute(text)
    return True


def _open_cursor(cursor: Any, statement: str, parameters: Any, kept: list[bytes]) -> None:
    """Execute with a server-side cursor (``yield_per``), which is declared alone."""
    if kept:
        with cursor.connection.cursor() as plain:
            plain.execute(b";\n".join(kept))
        kept.clear()
    cursor.withhold = True  # or the driver, which knows of no transaction, refuses
    cursor.execute(statement, parameters)
