"""The one writer thread of a process: operations that come together are committed together.

SQL never runs on the event loop. Each operation runs in a savepoint of its own, so that one that fails takes no other
with it; all that are waiting share one transaction and so one commit, which is what costs.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from tasks.errors import TaskError
from tasks.store.database import Store, lost_deadlock, read_now

T = TypeVar("T")
Operation = Callable[[Connection, datetime], T]

_Item = tuple[Operation[Any], Future[Any]]

_MOST_AT_ONCE = 64
_TRIES = 5
"""Times an operation is tried that loses a deadlock each time."""


class Writer:
    """Runs operations `(conn, now) -> result` in the order they come, in shared transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="reviewloop-writer", daemon=True)
        self._closed = False
        self._door = threading.Lock()  # nothing may come to lie behind the end of the queue
        self._thread.start()

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Queue an operation; its future is done once its transaction is committed. Raises TaskError if closed."""
        future: Future[T] = Future()
        with self._door:
            if self._closed:
                raise TaskError("the writer is closed")
            self._queue.put((operation, future))
        return future

    def call(self, operation: Operation[T]) -> T:
        """Run an operation and wait for it (not on the event loop)."""
        return self.submit(operation).result()

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation and await it."""
        return await asyncio.wrap_future(self.submit(operation))

    def close(self) -> None:
        """Commit what is queued, then stop."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            stop = False
            while len(batch) < _MOST_AT_ONCE:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    stop = True
                    break
                batch.append(item)
            self._commit([(op, future) for op, future in batch if future.set_running_or_notify_cancel()])
            if stop:
                return

    def _commit(self, batch: list[_Item]) -> None:
        """Commit a batch; what lost a deadlock to another process goes again, alone and so without holding others."""
        for item in self._commit_together(batch):
            for tries in range(2, _TRIES + 1):
                if not self._commit_together([item], again=tries < _TRIES):
                    break

    def _commit_together(self, batch: list[_Item], *, again: bool = True) -> list[_Item]:
        """Commit a batch in one transaction; returns those to be done again, if `again`."""
        done: list[tuple[Future[Any], Any, Exception | None]] = []
        victims: list[_Item] = []
        if not batch:
            return victims
        try:
            with self._store.begin() as conn:
                now = read_now(conn)
                for operation, future in batch:
                    try:
                        with conn.begin_nested():
                            done.append((future, operation(conn, now), None))
                    except Exception as error:
                        if conn.invalidated or conn.closed:
                            raise
                        if again and lost_deadlock(error):
                            victims.append((operation, future))
                        else:
                            done.append((future, None, error))
        except Exception as error:
            for _, future in batch:
                future.set_exception(error)
            return []
        for future, result, failure in done:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
        return victims
