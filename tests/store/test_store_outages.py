"""Frozen processes, lost connections and answers, clocks that step: held against nobody, and nothing is doubled."""

import socket
import sqlite3
import zlib
from contextlib import contextmanager

import psycopg2
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from world import SILENT, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import (
    StoreBusy,
    StoreConflict,
    StoreFailed,
    StoreUnavailable,
    StoreUnwritable,
    Unstorable,
    WrongRevision,
)
from tasks.domain.states import State
from tasks.jobs import recalling, sweeps
from tasks.store.content.pages import STORE_RESULT_PAGES
from tasks.store.queue.leases import RENEW_LEASES, Renewal
from tasks.store.sql import postgres
from tasks.store.sql.database import Store, is_committed, lift_limits, try_lock
from tasks.store.sql.outages import own_errors
from tasks.store.sql.tables import targets, task_parts
from tasks.store.sql.writer import Writer


class LosesAnswers(Store):
    """A store whose next COMMITs are made, or not, and answered by nobody."""

    def __init__(self, store, *, made, times=1):
        super().__init__(store.engine)
        self._made = made
        self.left = times

    @contextmanager
    def begin(self, connection=None, *, now=None):
        with super().begin(connection, now=now) as conn:
            yield conn
            if self.left and not self._made:
                self.left -= 1
                raise _lost()
        if self.left:
            self.left -= 1
            raise _lost()


class _Refusal(psycopg2.DatabaseError):
    """An error of the driver with the server's code."""

    __module__ = "psycopg2.errors"
    pgcode = None

    def __init__(self, text, code):
        super().__init__(text)
        self.pgcode = code


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (_Refusal("deadlock detected", "40P01"), StoreConflict),
        (_Refusal("canceling statement due to lock timeout", "55P03"), StoreConflict),
        (_Refusal("terminating connection due to administrator command", "57P01"), StoreUnavailable),
        (_Refusal("connection failure", "08006"), StoreUnavailable),
        (_Refusal("relation does not exist", "42P01"), WrongRevision),
        (_Refusal("syntax error", "42601"), StoreFailed),
        (psycopg2.OperationalError("server closed the connection\n\tunexpectedly"), StoreUnavailable),
        (psycopg2.OperationalError("FATAL: the database system is starting up"), StoreUnavailable),
        (psycopg2.OperationalError("FATAL: password authentication failed"), StoreFailed),
        (psycopg2.IntegrityError("duplicate key"), Unstorable),
        (sqlite3.IntegrityError("UNIQUE constraint failed"), Unstorable),
        (sqlite3.OperationalError("database is locked"), StoreBusy),
        (sqlite3.OperationalError("attempt to write a readonly database"), StoreUnwritable),
        (sqlite3.DatabaseError("database disk image is malformed"), StoreUnwritable),
        (sqlite3.OperationalError("no such table: pages"), WrongRevision),
        (sqlite3.DatabaseError("file is not a database"), StoreFailed),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False], ids=["by SQLAlchemy", "bare"])
def test_a_driver_error_leaves_as_one_of_the_store(error, own, wrapped):
    driver = sqlite3.Error if isinstance(error, sqlite3.Error) else psycopg2.Error
    raised = DBAPIError.instance("SELECT", {}, error, driver) if wrapped else error
    with pytest.raises(own) as told, own_errors():
        raise raised
    assert type(told.value) is own
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is raised


def test_other_errors_stay_as_they_are():
    with pytest.raises(ValueError, match="mine"), own_errors():
        raise ValueError("mine")


def _lost():
    return StoreUnavailable("server closed the connection unexpectedly")


@pytest.mark.parametrize("made", [True, False], ids=["committed", "rolled back"])
def test_a_commit_without_an_answer_changes_nothing_twice(postgres_world, made):
    world = postgres_world
    lease, work = world.begin(world.waiting())
    store = LosesAnswers(world.store, made=made)
    writer = Writer(store)
    try:
        page = world.result_page(lease, work.targets[0], [hit("1"), hit("2")])
        (stored,) = writer.call(lambda tx: STORE_RESULT_PAGES.run(tx, [page]))
        assert store.left == 0
    finally:
        writer.close()
    assert stored is not None
    assert len(stored.todo) == 2
    (part,) = world.rows(task_parts)
    assert (part.pages_read, part.listed) == (1, 2)
    assert sum(row.tries for row in world.rows(targets)) == 0


def test_a_transaction_tells_whether_it_was_committed(postgres_store):
    with postgres_store.begin() as conn:
        number = conn.number()
        assert number is not None
        with postgres_store.begin() as other:
            assert is_committed(other, number) is None
    with postgres_store.begin() as conn:
        assert is_committed(conn, number) is True
        assert is_committed(conn, number + 1_000_000) is False


def test_what_is_written_waits_for_a_database_that_is_away(postgres_world, caplog):
    world = postgres_world
    lease, _ = world.begin(world.waiting())
    writer = Writer(LosesAnswers(world.store, made=False, times=3))
    try:
        (kept,) = writer.call(
            lambda tx: RENEW_LEASES.run(tx, [Renewal(lease, SILENT, Counters(tried=1, offered=1))])
        )
    finally:
        writer.close()
    assert kept
    assert "the database is away" in caplog.text
    assert "the database is back" in caplog.text


def test_the_server_ends_a_session_that_is_silent_within_a_transaction(postgres_store):
    """The limits hold in each session; one is set low here, and the frozen holder's row and lock pass on."""
    with postgres_store.begin() as conn:
        shown = {
            name: conn.engine_connection.execute(text(f"SHOW {name}")).scalar_one()
            for name in ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
        }
    assert shown == {
        "idle_in_transaction_session_timeout": "8s",
        "statement_timeout": "10s",
        "lock_timeout": "9s",
    }
    frozen = postgres_store.connect()
    try:
        with pytest.raises(StoreUnavailable):
            _hold_and_wake(postgres_store, frozen)
    finally:
        frozen.close()


def _hold_and_wake(store, connection):
    with store.begin(connection) as frozen:
        frozen.run("SET LOCAL idle_in_transaction_session_timeout = 50")
        assert try_lock(frozen, "scheduler", 2.0)
        with store.begin() as conn:  # gets the lock by the holder's end
            conn.engine_connection.execute(_waits_for("scheduler"))
        frozen.value("SELECT 1")


def _waits_for(name):
    return text("SELECT pg_advisory_xact_lock(:key)").bindparams(key=zlib.crc32(name.encode()))


def test_a_connection_without_an_answer_is_closed(postgres_store, monkeypatch):
    """The server is busy with a statement for longer than an answer may take."""
    monkeypatch.setattr(postgres, "ANSWER_S", 0.3)
    with postgres_store.connect() as conn:
        driver = conn.connection.driver_connection
        with pytest.raises(StoreUnavailable, match=r"did not answer for 0\.3 s"), own_errors():
            conn.execute(text("SELECT pg_sleep(9)"))
        assert driver.closed


def test_an_error_of_connecting_names_the_server(postgres_store):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(
        StoreUnavailable, match=f"connection to 127.0.0.1, port {port} failed: Connection refused"
    ):
        Store.open(f"postgresql://u@127.0.0.1:{port}/x").connect()


def test_a_server_that_takes_no_connection_is_given_up(postgres_store):
    """It takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = Store.open(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x", connect_s=1)
        with pytest.raises(StoreUnavailable, match="did not answer for 1 s"):
            away.connect()


def test_who_holds_a_lock_is_logged(postgres_store, monkeypatch, caplog):
    monkeypatch.setattr(postgres, "LOCK_TOLD_S", 0.05)
    with postgres_store.begin() as tx:
        tx.insert("hosts", ("host",), [("a",)])
    with postgres_store.begin() as holder:
        pid = holder.value("SELECT pg_backend_pid() FROM hosts FOR UPDATE")
        with pytest.raises(StoreConflict):
            _lock_hosts(postgres_store)
    (line,) = caplog.messages
    assert f"process {pid}" in line
    assert "idle in transaction" in line
    assert "SELECT pg_backend_pid() FROM hosts FOR UPDATE" in line


def _lock_hosts(store):
    with store.begin() as tx:
        assert try_lock(tx, "scheduler", 0.5)
        tx.value("SELECT host FROM hosts FOR UPDATE")


def test_a_slow_statement_is_no_wait_for_a_lock(postgres_store, monkeypatch, caplog):
    monkeypatch.setattr(postgres, "LOCK_TOLD_S", 0.05)
    with postgres_store.begin() as tx:
        assert tx.value("SELECT 1 FROM pg_sleep(0.2)") == 1
    assert caplog.messages == []


def test_a_patient_connection_waits_for_its_answer(postgres_store, monkeypatch):
    with postgres_store.begin() as tx, lift_limits(tx):
        monkeypatch.setattr(postgres, "ANSWER_S", 0.01)
        assert tx.value("SELECT 1 FROM pg_sleep(0.2)") == 1


@pytest.mark.parametrize("started", [True, False])
def test_recall_passes_over_what_another_transaction_has_locked(postgres_world, started):
    world = postgres_world
    first, second = world.add("特仑苏")[0], world.add("早餐奶")[0]
    world.sweep(sweeps.admit)
    held, free = (world.begin(one)[0] if started else world.grant(one) for one in (first, second))
    world.pass_s(60)
    with world.store.begin() as frozen:
        assert frozen.value("SELECT id FROM subtasks WHERE id = :id FOR UPDATE", id=held.subtask_id)
        world.sweep(recalling.recall)
        assert world.state(free.subtask_id) is State.WAIT
        assert world.state(held.subtask_id) is State.CRAWL
    world.sweep(recalling.recall)
    assert world.state(held.subtask_id) is State.WAIT
