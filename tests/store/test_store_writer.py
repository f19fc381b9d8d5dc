"""The writer thread: shared transactions, but no operation pays for another's failure."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from tasks.errors import TaskError
from tasks.store.database import Store
from tasks.store.tables import hosts
from tasks.store.writer import Writer


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    made = Writer(store)
    yield made
    made.close()


def _add(host: str) -> Callable[[Connection, datetime], str]:
    def add(conn: Connection, now: datetime) -> str:
        conn.execute(insert(hosts).values(host=host, robots_at=now))
        return host

    return add


def _hosts(store: Store) -> list[str]:
    with store.read() as conn:
        return list(conn.scalars(select(hosts.c.host).order_by(hosts.c.host)))


class _Plug:
    """Keeps the writer busy, so that what is submitted meanwhile makes one batch."""

    def __init__(self, writer: Writer) -> None:
        self._pulled = threading.Event()
        running = threading.Event()

        def wait(_conn: Connection, _now: datetime) -> None:
            running.set()
            assert self._pulled.wait(timeout=10)

        writer.submit(wait)
        assert running.wait(timeout=10)

    def pull(self) -> None:
        self._pulled.set()


def test_an_operation_runs_and_its_result_comes_back(writer: Writer, store: Store) -> None:
    assert writer.call(_add("a")) == "a"
    assert asyncio.run(writer.run(_add("b"))) == "b"
    assert _hosts(store) == ["a", "b"]


def test_one_that_fails_takes_no_other_along(writer: Writer, store: Store) -> None:
    plug = _Plug(writer)
    first, again, broken, last = (
        writer.submit(operation)
        for operation in (_add("a"), _add("a"), lambda conn, _: [_add("x")(conn, _), 1 / 0], _add("b"))
    )
    plug.pull()
    assert (first.result(), last.result()) == ("a", "b")
    assert isinstance(again.exception(), IntegrityError)
    assert isinstance(broken.exception(), ZeroDivisionError)
    assert _hosts(store) == ["a", "b"]


def test_a_future_is_done_when_others_can_see_it(writer: Writer, store: Store) -> None:
    seen: list[list[str]] = []
    future = writer.submit(_add("a"))
    future.add_done_callback(lambda _: seen.append(_hosts(store)))
    future.result()
    writer.close()
    assert seen == [["a"]]


def test_what_nobody_waits_for_any_more_is_not_done(writer: Writer, store: Store) -> None:
    plug = _Plug(writer)
    dropped, kept = writer.submit(_add("a")), writer.submit(_add("b"))
    assert dropped.cancel()
    plug.pull()
    kept.result()
    assert _hosts(store) == ["b"]


def test_what_is_queued_is_committed_on_close(store: Store) -> None:
    writer = Writer(store)
    plug = _Plug(writer)
    names = [f"h{n:03}" for n in range(200)]
    futures = [writer.submit(_add(name)) for name in names]
    plug.pull()
    writer.close()
    writer.close()
    assert all(future.done() for future in futures)
    assert _hosts(store) == names
    with pytest.raises(TaskError, match="closed"):
        writer.submit(_add("late"))


def test_submitting_while_it_closes_is_refused_or_done(store: Store) -> None:
    """Nothing may come to lie behind the end of the queue, where its future would wait for ever."""
    writer = Writer(store)
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    plug = _Plug(writer)
    inner = writer._queue
    futures: list[Any] = []

    class Door:
        get, get_nowait = inner.get, inner.get_nowait

        @staticmethod
        def put(item: Any) -> None:
            if item is None:
                ended.set()
            else:
                entered.set()
                assert go_on.wait(timeout=10)
            inner.put(item)

    writer._queue = Door()  # type: ignore[assignment]
    submitting = threading.Thread(target=lambda: futures.append(writer.submit(_add("a"))))
    submitting.start()
    assert entered.wait(timeout=10)
    closing = threading.Thread(target=writer.close)
    closing.start()
    ended.wait(timeout=0.2)
    go_on.set()
    submitting.join()
    plug.pull()
    closing.join()
    assert futures[0].result(timeout=2) == "a"


def test_a_transaction_that_cannot_begin_fails_all_that_wait_for_it(store: Store) -> None:
    class Broken(Store):
        def begin(self, kept: Any = None) -> Any:
            raise OperationalError("BEGIN", None, Exception("gone"))

    writer = Writer(Broken(store.engine))
    assert isinstance(writer.submit(_add("a")).exception(), OperationalError)
    assert isinstance(writer.submit(_add("b")).exception(), OperationalError)
    writer.close()


def test_a_deadlock_between_processes_costs_time_but_no_operation(postgres_store: Store) -> None:
    with postgres_store.begin() as conn:
        conn.execute(insert(hosts), [{"host": "a"}, {"host": "b"}])
    both = threading.Barrier(2)

    def note(host: str, text: str, *, first: bool) -> Callable[[Connection, datetime], str]:
        met = threading.Event()

        def run(conn: Connection, _now: datetime) -> str:
            conn.exec_driver_sql("SET LOCAL deadlock_timeout = '20ms'")
            row = hosts.c.host == host
            before = conn.scalar(select(hosts.c.robots).where(row).with_for_update()) or ""
            conn.execute(update(hosts).where(row).values(robots=before + text))
            if first and not met.is_set():
                met.set()
                both.wait(timeout=10)
            return text

        return run

    writers = [Writer(postgres_store), Writer(postgres_store)]
    plugs = [_Plug(writer) for writer in writers]
    futures = [
        writer.submit(note(host, text, first=first))
        for writer, text, order in zip(writers, "12", ("ab", "ba"), strict=True)
        for host, first in zip(order, (True, False), strict=True)
    ]
    for plug in plugs:
        plug.pull()
    assert [future.result(timeout=10) for future in futures] == ["1", "1", "2", "2"]
    for writer in writers:
        writer.close()
    with postgres_store.read() as conn:
        assert {"".join(sorted(text)) for text in conn.scalars(select(hosts.c.robots))} == {"12"}
