"""Connections to PostgreSQL that never wait for good: for its answer, for a lock, or for a process that holds one.

The server ends a session that is silent within a transaction (its process is frozen or gone): its locks pass on. It
gives up a statement, or a wait for a lock, that takes too long. A connection whose other end doesn't answer at all is
ended here, whatever lies between: a proxy may keep it open.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from psycopg2.extensions import connection, cursor, new_type, register_type
from sqlalchemy import URL, Engine, create_engine

from tasks.store.sql.statement_batch import enable_batching
from tasks.store.sql.transaction import Transaction

SILENT_S = 8.0
"""A session that is silent for so long within a transaction is ended: what it held is free for others."""
STATEMENT_S = 10.0
LOCK_S = 9.0
"""Longer than `SILENT_S`: whoever waits for a frozen process gets its lock, not an error."""
CONNECT_S = 5
ANSWER_S = 12.0
"""Longer than `STATEMENT_S`: where nothing came until then, not even an error, the connection is dead."""

_SESSION = {
    "idle_in_transaction_session_timeout": SILENT_S,
    "statement_timeout": STATEMENT_S,
    "lock_timeout": LOCK_S,
}
_TCP = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
}
UNHURRIED = "; ".join(f"SET LOCAL {name} = 0" for name in _SESSION)
"""Statements that lift the limits until the end of a transaction: migrations, reports that read everything."""

# Rows of one INSERT, so that those of a batch travel in one round trip.
_ROWS_AT_ONCE = 4000


# Sums of whole numbers come as NUMERIC, OID 1700.
register_type(
    new_type((1700,), "NUMERIC", lambda text, _cursor: text and (float(text) if "." in text else int(text)))
)


class AnswerWatch:
    """Ends connections that have waited for an answer for too long, from a thread of its own.

    Args:
        within_s: seconds that an answer may take.
        clock: monotonic seconds.
    """

    def __init__(self, within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._within_s = within_s
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[float, WatchedConnection]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, waiting: WatchedConnection) -> None:
        """A connection sends something and waits for the answer."""
        with self._lock:
            self._waiting[id(waiting)] = self._clock(), waiting
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="reviewloop-answers", daemon=True)
                self._thread.start()

    def end(self, waiting: WatchedConnection) -> None:
        """The answer has come."""
        with self._lock:
            self._waiting.pop(id(waiting), None)

    def look(self) -> int:
        """End what has waited for too long; returns how many connections that were."""
        with self._lock:
            late = [one for since, one in self._waiting.values() if self._clock() - since > self._within_s]
            for one in late:
                del self._waiting[id(one)]
                _cut(one)
        return len(late)

    def _watch(self) -> None:
        while True:
            time.sleep(1.0)
            self.look()


class WatchedConnection(connection):
    """A connection whose answers are waited for `ANSWER_S` at most.

    Attributes:
        patient: True lets it wait for as long as it takes.
    """

    patient = False

    def waits(self, ask: Callable[..., Any], *given: Any) -> Any:
        """Call what asks the server, and watch for the answer."""
        if self.patient:
            return ask(*given)
        _WATCH.begin(self)
        try:
            return ask(*given)
        finally:
            _WATCH.end(self)

    def commit(self) -> None:
        """Commit."""
        self.waits(super().commit)

    def rollback(self) -> None:
        """Roll back."""
        self.waits(super().rollback)


class _WatchedCursor(cursor):
    connection: WatchedConnection

    def execute(self, query: Any, vars: Any = None) -> Any:  # the driver's own names
        return self.connection.waits(super().execute, query, vars)


_WATCH = AnswerWatch(ANSWER_S)


def open_postgres(url: URL, pool_size: int) -> Engine:
    """An engine whose connections have these limits; options in the URL come after ours and win."""
    given = str(url.query.get("options", ""))
    limits = " ".join(f"-c {name}={1000 * seconds:.0f}" for name, seconds in _SESSION.items())
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        use_native_hstore=False,  # saves each connection a round trip that looks for a type no table has
        executemany_mode="values_plus_batch",
        insertmanyvalues_page_size=_ROWS_AT_ONCE,
        connect_args={
            **{name: value for name, value in _TCP.items() if name not in url.query},
            "options": f"{limits} -c timezone=UTC {given}".strip(),
            "connection_factory": WatchedConnection,
            "cursor_factory": _WatchedCursor,
        },
    )
    enable_batching(engine)
    return engine


def _cut(waiting: connection) -> None:
    """End a connection under the thread that waits for it, which then gets an error."""
    try:
        with socket.fromfd(waiting.fileno(), socket.AF_UNSPEC, socket.SOCK_STREAM) as own:
            own.shutdown(socket.SHUT_RDWR)
    except (OSError, ValueError):  # it is closed already
        return


def open_transactions(conn: Transaction) -> list[tuple[str, str | None, float, str]]:
    """State, what it waits for, age in seconds and statement of the oldest transactions of other sessions."""
    return conn.rows(_SESSIONS)


_SESSIONS = """
    SELECT state, wait_event_type, CAST(extract(epoch FROM clock_timestamp() - xact_start) AS float) AS seconds,
        left(query, 100) AS query
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND xact_start IS NOT NULL
    ORDER BY xact_start LIMIT 5
"""
