"""A connection that outlasts the database's absences: writes wait for its return, and are made once.

After a COMMIT without an answer the database is asked whether it was made, before anything is written again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, repeat
from threading import Event
from typing import TypeVar

from sqlalchemy import Connection

from tasks.domain.errors import StoreConflict, StoreFailed, StoreUnavailable
from tasks.store.sql.database import Store, is_committed
from tasks.store.sql.transaction import Transaction

T = TypeVar("T")

_FIRST_PAUSES_S = (0.1, 0.2, 0.4, 0.8)
_PAUSE_S = 1.0
"""Seconds until the next try of a database that is away; `_FIRST_PAUSES_S` at first."""
_LAST_S = 5.0
"""Longest absence, in seconds, during which a closing process still tries."""


class LastingConnection:
    """A connection that is kept from one transaction to the next, and replaced after an error. For one thread.

    Args:
        stack: closes it.
        closing: set when the process closes; then an outage is waited for only a few seconds.
    """

    def __init__(self, store: Store, stack: ExitStack, closing: Event) -> None:
        self._store = store
        self._closing = closing
        self._conn: Connection | None = None
        stack.callback(self._drop)

    def open_early(self) -> None:
        """Connect before there is anything to write; if that fails, the first write tries again."""
        with suppress(StoreFailed):
            self._conn = self._store.connect()

    def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation in a transaction and commit it, once, however long the database is away meanwhile.

        An operation may run several times; all but one of these are rolled back. Any error but the database's absence
        is raised, and nothing is written then.
        """
        pauses_s = chain(_FIRST_PAUSES_S, repeat(_PAUSE_S))
        while True:
            number, results = None, list[T]()
            try:
                with self._begin() as tx:
                    number = tx.number()
                    results.append(operation(tx))
                if self._store.outage.is_away:
                    self._store.outage.note_return()
                return results[0]
            except StoreUnavailable as error:
                self._store.outage.note_loss(error)
                # With a result, everything was written and only COMMIT was left.
                if results and number is not None and self._is_committed(number):
                    return results[0]
                if not self._wait(next(pauses_s)):
                    raise

    def _is_committed(self, number: int) -> bool:
        """Return True if a transaction whose COMMIT got no answer was committed; ask until that is known."""
        for pause_s in chain(_FIRST_PAUSES_S, repeat(_PAUSE_S)):
            if not self._wait(pause_s):
                break
            with suppress(StoreUnavailable, StoreConflict):
                with self._begin() as tx:
                    made = is_committed(tx, number)
                if made is not None:
                    self._store.outage.note_return()
                    return made
        return False

    def _wait(self, seconds: float) -> bool:
        """Wait before the next try. Return False if there must be none, because the process closes."""
        if not self._closing.wait(seconds):
            return True
        time.sleep(seconds)
        return self._store.outage.lasted_s <= _LAST_S

    @contextmanager
    def _begin(self) -> Iterator[Transaction]:
        """Begin a transaction; after an error, the next one gets a new connection."""
        if self._conn is None:
            self._conn = self._store.connect()
        try:
            with self._store.begin(self._conn) as conn:
                yield conn
        except Exception:
            self._drop()
            raise

    def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()
