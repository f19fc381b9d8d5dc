"""Connections to PostgreSQL that never wait for good: for its answer, for a lock, or for a process that holds one.

The server ends a session that is silent within a transaction (its process is frozen or gone): its locks pass on. It
gives up a statement, or a wait for a lock, that takes too long. A connection whose other end doesn't answer at all is
ended here, whatever lies between: a proxy may keep it open.
"""

from __future__ import annotations

import logging
import select
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from math import inf
from typing import Any

from psycopg2 import OperationalError, connect
from psycopg2.extensions import (
    POLL_OK,
    POLL_READ,
    STATUS_SETUP,
    connection,
    make_dsn,
    new_type,
    parse_dsn,
    register_type,
    set_wait_callback,
)
from sqlalchemy import URL, Engine, create_engine

from tasks.store.sql.transaction import Transaction, ask_driver

log = logging.getLogger("reviewloop.store")

SILENT_S = 8.0
"""Longest silence of a session within a transaction; then it is ended, and its locks are free."""
STATEMENT_S = 10.0
LOCK_S = 9.0
"""Longer than `SILENT_S`: whoever waits for a frozen process gets its lock, not an error."""
CONNECT_S = 5
LOCK_TOLD_S = 1.5
"""Less than any wait for a lock may last: whoever holds it is logged."""
ADVISORY_TOLD_S = 5.0
"""Longer than a sweep takes: whoever holds the lock of sweeps for this long is logged."""
ANSWER_S = 12.0
"""Longer than `STATEMENT_S`: if not even an error has come until then, the connection is dead."""

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


# Sums of whole numbers come as NUMERIC, OID 1700.
register_type(
    new_type((1700,), "NUMERIC", lambda text, _cursor: text and (float(text) if "." in text else int(text)))
)


class _Connection(connection):
    """A connection to PostgreSQL.

    Attributes:
        patient: it waits for an answer as long as it takes, not only for `ANSWER_S`.
    """

    patient = False


class _Looking(_Connection):
    """A connection that finds out why another one waits."""


def _wait(asked: connection) -> None:
    """Wait until the server has answered; the driver closes a connection whose wait raises an error."""
    if asked.status != STATUS_SETUP:
        _wait_within(_limit_s(asked), asked, told=isinstance(asked, _Looking))
        return
    place = parse_dsn(asked.dsn)
    try:
        _wait_within(_limit_s(asked), asked, told=True)
    except OperationalError as error:
        # libpq names the server only when it waits itself.
        at = f"{place.get('host', 'this machine')}, port {place.get('port', 5432)}"
        raise OperationalError(f"connection to {at} failed: {error}") from error


def _wait_within(limit_s: float, asked: connection, *, told: bool) -> None:
    """Wait for an answer at most `limit_s`; unless `told`, log who holds a lock it waits for."""
    begun_s = time.monotonic()
    while (state := asked.poll()) != POLL_OK:
        ready = select.poll()  # `select.select` takes no descriptor over 1023
        ready.register(asked.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        left_s = limit_s - (time.monotonic() - begun_s)
        if not told and not ready.poll(1000 * min(LOCK_TOLD_S, max(0.0, left_s))):
            told = True
            with suppress(Exception):  # whatever it is, the statement goes on
                _log_lock_owners(asked)
        elif not ready.poll(None if left_s == inf else max(0.0, 1000 * left_s)):
            raise OperationalError(f"the server did not answer for {limit_s:g} s")


def _log_lock_owners(waiting: connection) -> None:
    """Log which sessions hold what a connection waits for, if it waits for a lock."""
    own = waiting.info
    place = make_dsn(**{**own.dsn_parameters, "password": own.password or ""})
    with closing(connect(place, connection_factory=_Looking)) as looking:
        for owner in ask_driver(looking, f"{_OWNERS} WHERE pid = ANY(pg_blocking_pids(%s))", own.backend_pid):
            _log_owner(f"a statement has waited {LOCK_TOLD_S:g} s for a lock", owner)


def log_advisory_owner(tx: Transaction, name: str, key: int) -> None:
    """Log which session has held an advisory lock for longer than a sweep takes, if there is one."""
    held = f"{_OWNERS} JOIN pg_locks USING (pid) WHERE granted AND locktype = 'advisory' AND objid = :key"
    for owner in tx.rows(f"{held} AND {_HELD_S} > :least", key=key, least=ADVISORY_TOLD_S):
        _log_owner(f"nothing is done under the lock {name!r}", tuple(owner))


def _log_owner(trouble: str, owner: Sequence[Any]) -> None:
    """Log who holds a lock, once for each of its transactions."""
    begun, *described = owner
    if (owner[1], begun) in _logged:
        return
    _logged.append((owner[1], begun))
    log.warning(
        "%s that another session holds: process %s, user %s, program '%s', address %s, %s, in a transaction for %s s, "
        "last statement: %s ...",
        trouble,
        *described,
    )


_logged: deque[tuple[Any, Any]] = deque(maxlen=100)
"""Process and begin of the transactions that were logged as owners of a lock."""
_HELD_S = "extract(epoch FROM clock_timestamp() - coalesce(xact_start, state_change))"
# Only the first word of the last statement is read: the rest may hold data.
_OWNERS = f"""
    SELECT coalesce(xact_start, state_change), pid, usename, application_name, coalesce(host(client_addr), 'local'),
        coalesce(state, 'state unknown'), coalesce(CAST(round({_HELD_S}) AS text), 'unknown'),
        coalesce(substring(query FROM '^\\s*([A-Za-z]+)'), 'unknown')
    FROM pg_stat_activity
"""


def _limit_s(asked: connection) -> float:
    """Return how long an answer may take."""
    if not isinstance(asked, _Connection) or asked.patient:
        return inf
    if asked.status != STATUS_SETUP:
        return ANSWER_S
    # libpq keeps to its limit only when it waits itself; with several hosts, `tcp_user_timeout` makes it try the next.
    given = parse_dsn(asked.dsn)
    hosts = given.get("host", "").count(",") + 1
    return float(given.get("connect_timeout", CONNECT_S)) if hosts == 1 else hosts * ANSWER_S


set_wait_callback(_wait)


def open_postgres(url: URL, pool_size: int) -> Engine:
    """Return an engine whose connections have these limits; options in the URL win, but for the time zone."""
    given = str(url.query.get("options", ""))
    limits = " ".join(f"-c {name}={1000 * seconds:.0f}" for name, seconds in _SESSION.items())
    return create_engine(
        url,
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended by `Transaction`
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        use_native_hstore=False,  # saves each connection a round trip that looks for a type no table has
        connect_args={
            **{name: value for name, value in _TCP.items() if name not in url.query},
            "options": f"{limits} {given} -c timezone=UTC",  # so that a `utc_text` is read as UTC
            "connection_factory": _Connection,
        },
    )


def open_transactions(tx: Transaction) -> list[tuple[str, str | None, float, str]]:
    """Return state, wait event, age in seconds and statement of the oldest transactions of other sessions."""
    return tx.rows(_SESSIONS)


_SESSIONS = """
    SELECT state, wait_event_type, CAST(extract(epoch FROM clock_timestamp() - xact_start) AS float) AS seconds,
        left(query, 100) AS query
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND xact_start IS NOT NULL
    ORDER BY xact_start LIMIT 5
"""
