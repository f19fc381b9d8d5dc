"""The writer: all writes of a process, in batches that share one transaction.

SQL never runs on the event loop. All queued items share one transaction, and so one commit; items of one
`BatchOperation` share their statements too, so that a batch of any size costs the same number of round trips. The batch
size adapts to the round trip: items that arrive during one transaction are written by the next one. Items without
a waiting caller linger a little, so that they are written in batches and not one by one.

If an item of a transaction fails, the transaction is rolled back and each of its items is written again in one of its
own, so that only the failing one is lost. While the database is away, queued items wait for its return, and are then
written. Nothing is written twice: if a COMMIT got no answer, the database is asked whether it was made.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, Generic, TypeVar

from tasks.domain.batches import MOST_AT_ONCE
from tasks.domain.errors import StoreConflict, StoreUnavailable, StoreUnwritable, TaskError
from tasks.store.sql.database import Store
from tasks.store.sql.lasting import LastingConnection
from tasks.store.sql.transaction import Transaction

T = TypeVar("T")
I_contra = TypeVar("I_contra", contravariant=True)
Operation = Callable[[Transaction], T]

_TRIES = 5
"""Most tries of an item that loses a deadlock, or waits too long for a lock, each time."""
_LINGER_S = (0.05, 0.25)
"""Shortest and longest time an item lingers for others that may come, if no caller waits for it."""
_LINGER = 10.0
"""Time an item lingers, in durations of the last transaction: if few pages come, little time goes into writing them."""
_HURRIED_S = (0.005, 0.04)
"""The same for an item that an event loop waits for."""
_HURRIED = 8.0
"""The same, in CPU times of the last transaction: many small ones take at most a ninth of a core."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchOperation(Generic[I_contra, T]):
    """A kind of item, with the function that writes many of them.

    Attributes:
        rank: kinds are written in this order within a transaction, whatever order their items came in.
        run: writes items; returns the result of each, in their order.
    """

    rank: int
    run: Callable[[Transaction, Sequence[I_contra]], Sequence[T]]


def _one_by_one(tx: Transaction, operations: Sequence[Operation[Any]]) -> Sequence[Any]:
    return [operation(tx) for operation in operations]


_OPERATIONS: BatchOperation[Operation[Any], Any] = BatchOperation(0, _one_by_one)


@dataclass(slots=True, eq=False)
class _Item:
    """Something to write, with the future of the thread or event loop that waits for it."""

    kind: BatchOperation[Any, Any]
    what: Any
    future: Future[Any] | asyncio.Future[Any]

    def begin(self) -> bool:
        """Return True if the item is still wanted: its future was not cancelled."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()


class Writer:
    """Writes in shared transactions; its methods may be called from any thread.

    Over one connection items are written in the order they come; over several, an item that must come after another one
    has to be queued after awaiting that one.

    Args:
        most: most items of one transaction; 1 to compare with (`reviewloop bench buffers`).
        connections: most transactions at once, each on a thread and a connection of its own. SQLite allows one writer
            only; to a PostgreSQL far away, further transactions need not wait for the first to return.
        on_unwritable: called from the writer's thread with the error when the database's file can't be written to;
            True: no caller waits for results any longer, so none is delivered.
    """

    def __init__(
        self,
        store: Store,
        *,
        most: int = MOST_AT_ONCE,
        connections: int = 1,
        on_unwritable: Callable[[StoreUnwritable], bool] = lambda _error: False,
    ) -> None:
        self._store = store
        self._most = most
        self._on_unwritable = on_unwritable
        self._took_s = 0.0
        self._worked_s = 0.0
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._at_once = threading.Event()
        self._taking = (
            threading.Lock()
        )  # one connection at a time takes a batch, so that kinds stay in one batch
        self._closed = False
        self._closing = Event()
        self._putting = threading.Lock()  # nothing may be queued behind the end marker
        self._threads = [
            threading.Thread(target=self._work, name="reviewloop-writer", daemon=True)
            for _ in range(1 if store.is_sqlite else connections)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Queue an operation; its future is done once its transaction is committed. Raises TaskError if closed."""
        future: Future[T] = Future()
        self._put(_Item(_OPERATIONS, operation, future))
        self._at_once.set()
        self._hurry.set()
        return future

    def call(self, operation: Operation[T]) -> T:
        """Run an operation and wait for it (not on the event loop)."""
        return self.submit(operation).result()

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation and await it."""
        return await self.soon(_OPERATIONS, operation)

    def soon(self, kind: BatchOperation[I_contra, T], item: I_contra) -> asyncio.Future[T]:
        """Queue an item that the event loop waits for. Raises TaskError if closed."""
        future = self.later(kind, item)
        self.hurry()
        return future

    def later(self, kind: BatchOperation[I_contra, T], item: I_contra) -> asyncio.Future[T]:
        """Queue an item that may linger until `hurry` or the next item that may not. Raises TaskError if closed."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Item(kind, item, future))
        return future

    def hurry(self) -> None:
        """Write the items that were queued with `later` now."""
        self._hurry.set()

    def close(self) -> None:
        """Commit all queued items, then stop."""
        with self._putting:
            if not self._closed:
                self._closed = True
                self._closing.set()
                for _ in self._threads:
                    self._queue.put(None)
                self._at_once.set()
                self._hurry.set()
        for thread in self._threads:
            thread.join()

    def _put(self, item: _Item) -> None:
        with self._putting:
            if self._closed:
                raise TaskError("the writer is closed")
            self._queue.put(item)

    # --- the thread -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        with ExitStack() as stack:
            connection = LastingConnection(self._store, stack, self._closing)
            connection.open_early()
            while True:
                with self._taking:
                    first = self._queue.get()
                    if first is None:
                        return
                    if self._hurry.wait(_within(_LINGER_S, _LINGER * self._took_s)):
                        # Others of the event loop may be about to come to the same point.
                        self._at_once.wait(_within(_HURRIED_S, _HURRIED * self._worked_s))
                    self._hurry.clear()
                    self._at_once.clear()
                    batch, stop = self._take_batch(first)
                started, worked_before = time.monotonic(), time.thread_time()
                self._commit(connection, [item for item in batch if item.begin()])
                self._took_s = time.monotonic() - started
                self._worked_s = time.thread_time() - worked_before
                if stop:
                    return

    def _take_batch(self, first: _Item) -> tuple[list[_Item], bool]:
        """Return the queued items, at most `most`, and whether the end marker came with them."""
        batch = [first]
        while len(batch) < self._most:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
            if item is None:
                return batch, True
            batch.append(item)
        self._at_once.set()  # more may be waiting
        self._hurry.set()
        return batch, False

    def _commit(self, connection: LastingConnection, batch: list[_Item]) -> None:
        if not batch:
            return
        try:
            _deliver(zip(batch, connection.write(partial(self._written, batch)), strict=True))
            return
        except Exception as error:
            if isinstance(error, StoreUnwritable) and self._on_unwritable(error):
                return
            is_away = isinstance(error, StoreUnavailable)  # and it is not known what was committed
            if is_away or (len(batch) == 1 and not isinstance(error, StoreConflict)):
                _deliver((item, error) for item in batch)
                return
        for item in sorted(batch, key=lambda item: item.kind.rank):
            _deliver([(item, self._alone(connection, item))])

    def _alone(self, connection: LastingConnection, item: _Item) -> Any:
        """Write an item in its own transaction, again while it loses deadlocks; its result or its exception."""
        for tries in range(1, _TRIES + 1):
            try:
                return connection.write(partial(self._written, [item]))[0]
            except Exception as error:
                if tries == _TRIES or not isinstance(error, StoreConflict):
                    return error
        raise AssertionError("the loop returns")

    @staticmethod
    def _written(batch: list[_Item], tx: Transaction) -> list[Any]:
        """Write a batch; its results. An exception of any item rolls all back."""
        groups: dict[BatchOperation[Any, Any], list[int]] = {}
        for place, item in enumerate(batch):
            groups.setdefault(item.kind, []).append(place)
        results: list[Any] = [None] * len(batch)
        for kind, places in sorted(groups.items(), key=lambda group: group[0].rank):
            done = kind.run(tx, [batch[place].what for place in places])
            for place, result in zip(places, done, strict=True):
                results[place] = result
        return results


def _within(bounds: tuple[float, float], value: float) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _deliver(results: Iterable[tuple[_Item, Any]]) -> None:
    """Set the results of futures; an exception is one. One call per event loop, however many futures."""
    of_loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for item, result in results:
        if isinstance(item.future, Future):
            _settle(item.future, result)
        else:
            of_loops.setdefault(item.future.get_loop(), []).append((item.future, result))
    for loop, done in of_loops.items():
        try:
            loop.call_soon_threadsafe(_settle_all, done)
        except RuntimeError:  # the loop is closed
            continue


def _settle_all(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in done:
        if not future.done():
            _settle(future, result)


def _settle(future: Future[Any] | asyncio.Future[Any], result: Any) -> None:
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
