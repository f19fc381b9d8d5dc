"""A connection that outlasts the database's absences: writes wait for its return, and are made once.

After a COMMIT without an answer the database is asked whether it was made, before anything is written again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, repeat
from typing import TypeVar

from sqlalchemy import Connection

from tasks.domain.errors import StoreConflict, StoreFailed, StoreUnavailable
from tasks.store.sql.database import Store, is_committed
from tasks.store.sql.transaction import Transaction

log = logging.getLogger("reviewloop.store")

T = TypeVar("T")

_FIRST_PAUSES_S = (0.1, 0.2, 0.4, 0.8)
_PAUSE_S = 1.0
"""Seconds until the next try of a database that is away; `_FIRST_PAUSES_S` at first."""
_LAST_S = 5.0
"""Longest absence, in seconds, during which a closing process still tries."""


class Absence:
    """Whether the database is away; logged once when it goes, and once when it is back. For several threads.

    Args:
        clock: monotonic seconds.

    Attributes:
        closing: set it to end the waiting.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.closing = threading.Event()
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None

    def note_loss(self, error: StoreUnavailable) -> None:
        """Note that a transaction found the database away; log it the first time."""
        with self._lock:
            if self._since is None:
                self._since = self._clock()
                log.warning("the database is away (%s): what is to be written waits for it", error)

    def note_return(self) -> None:
        """Note that a transaction reached the database; log the return after an absence."""
        if self._since is None:
            return
        with self._lock:
            if self._since is not None:
                log.warning("the database is back after %.1f s", self._clock() - self._since)
                self._since = None

    def wait(self, seconds: float) -> bool:
        """Wait before the next try; return False if there must be none, as the process is closing."""
        if not self.closing.wait(seconds):
            return True
        time.sleep(seconds)
        since = self._since
        return since is None or self._clock() - since < _LAST_S


class LastingConnection:
    """A connection that is kept from one transaction to the next, and replaced after an error. For one thread.

    Args:
        stack: closes it.
        absence: of the database, shared with other connections.
    """

    def __init__(self, store: Store, stack: ExitStack, absence: Absence) -> None:
        self._store = store
        self._absence = absence
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
                self._absence.note_return()
                return results[0]
            except StoreUnavailable as error:
                self._absence.note_loss(error)
                # With a result, everything was written and only COMMIT was left.
                if results and number is not None and self._is_committed(number):
                    return results[0]
                if not self._absence.wait(next(pauses_s)):
                    raise

    def _is_committed(self, number: int) -> bool:
        """Return True if a transaction whose COMMIT got no answer was committed; ask until that is known."""
        for pause_s in chain(_FIRST_PAUSES_S, repeat(_PAUSE_S)):
            if not self._absence.wait(pause_s):
                break
            with suppress(StoreUnavailable, StoreConflict):
                with self._begin() as tx:
                    made = is_committed(tx, number)
                if made is not None:
                    self._absence.note_return()
                    return made
        return False

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
