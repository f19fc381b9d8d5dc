"""Frozen processes, lost connections and answers, clocks that step: held against nobody, and nothing is doubled."""

import logging
import socket
import sqlite3
import zlib
from contextlib import closing, contextmanager

import psycopg2
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from world import SILENT, hit

from splitter.errors import InputError
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
from tasks.domain.outage import Outage
from tasks.domain.states import State
from tasks.jobs import celery_tasks, runtime
from tasks.jobs.runtime import Control, Opened
from tasks.store.content.pages import STORE_RESULT_PAGES
from tasks.store.queue.leases import RENEW_LEASES, Renewal
from tasks.store.sql import postgres
from tasks.store.sql.database import Store, is_committed, lift_limits, try_lock
from tasks.store.sql.outages import own_errors
from tasks.store.sql.tables import targets, task_parts
from tasks.store.sql.writer import Writer

LOST = StoreUnavailable("server closed the connection unexpectedly")


class LosesAnswers(Store):
    """A store whose next COMMITs are made, or not, and answered by nobody."""

    def __init__(self, store, *, made, times=1):
        super().__init__(store.engine)
        self._made, self.left = made, times

    @contextmanager
    def begin(self, connection=None, *, now=None):
        with super().begin(connection, now=now) as tx:
            yield tx
            if self.left and not self._made:
                self.left -= 1
                raise LOST
        if self.left:
            self.left -= 1
            raise LOST


class Refusal(psycopg2.DatabaseError):
    """An error of the driver with the server's code."""

    __module__ = "psycopg2.errors"
    pgcode = None

    def __init__(self, text, code):
        super().__init__(text)
        self.pgcode = code


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (Refusal("deadlock detected", "40P01"), StoreConflict),
        (Refusal("canceling statement due to lock timeout", "55P03"), StoreConflict),
        (Refusal("terminating connection due to administrator command", "57P01"), StoreUnavailable),
        (Refusal("connection failure", "08006"), StoreUnavailable),
        (Refusal("relation does not exist", "42P01"), WrongRevision),
        (Refusal("syntax error", "42601"), StoreFailed),
        (psycopg2.OperationalError("server closed the connection\n\tunexpectedly"), StoreUnavailable),
        (psycopg2.OperationalError("FATAL: the database system is starting up"), StoreUnavailable),
        (psycopg2.OperationalError("FATAL: password authentication failed"), StoreFailed),
        (psycopg2.OperationalError("server does not support SSL, but SSL was required"), StoreFailed),
        (psycopg2.OperationalError("fe_sendauth: no password supplied"), StoreFailed),
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
    with pytest.raises(own) as caught, own_errors():
        raise raised
    assert type(caught.value) is own
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is raised


SERVER = make_url("postgresql+psycopg2://ann:geheim@db.example.cn:5433/reviews?sslmode=require")
AT = "postgresql://ann:***@db.example.cn:5433/reviews"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('connection to server at "db", port 5433 failed: FATAL:  password authentication failed for user "ann"',
         f"{AT} refuses user or password"),
        ("connection to server failed: fe_sendauth: no password supplied", f"{AT} refuses user or password"),
        ('failed: FATAL:  role "ann" does not exist', f"{AT}: there is no such user"),
        ('failed: FATAL:  database "reviews" does not exist', f"{AT}: there is no such database"),
        ('could not translate host name "db.example.cn" to address: Name or service not known', "no name server"),
        ("connection failed: Connection refused\n\tIs the server running?", f"no PostgreSQL answers at {AT}"),
        ("connection to db failed: the server did not answer for 5 s", f"no PostgreSQL answers at {AT}"),
        ('failed: FATAL:  no pg_hba.conf entry for host "10.0.0.7"', "pg_hba.conf"),
        ("failed: FATAL:  sorry, too many clients already", f"{AT} has no free connection"),
        ("failed: FATAL:  the database system is starting up", f"{AT} is starting or stopping"),
        ("server closed the connection unexpectedly", f"{AT} ended the connection"),
        ("something that nobody has seen", f"{AT}: something that nobody has seen"),
    ],
)  # fmt: skip
def test_an_error_of_postgresql_says_which_database_and_what_is_right(text, said):
    with pytest.raises(StoreFailed) as caught, own_errors(SERVER):
        raise psycopg2.OperationalError(text)
    assert said in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlite3.OperationalError("database is locked"), "another process has held {file} for too long"),
        (sqlite3.OperationalError("database or disk is full"), "the disk of {file} is full"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "may not write to {file}"),
        (sqlite3.DatabaseError("database disk image is malformed"), "{file} is damaged"),
        (sqlite3.DatabaseError("file is not a database"), "{file} is no SQLite database"),
        (sqlite3.OperationalError("no such table: pages"), "{file} lacks a table"),
    ],
)
def test_an_error_of_sqlite_says_which_file_and_what_is_right(error, said, tmp_path):
    file = tmp_path / "r.db"
    with pytest.raises((StoreFailed, WrongRevision)) as caught, own_errors(make_url(f"sqlite:///{file}")):
        raise error
    assert said.format(file=file) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "{file} is a folder: name the file of the database, such as {file}/reviewloop.db"),
        ("none/r.db", "there is no folder {folder}"),
        ("none/deep/r.db", "there is no folder {folder}"),
        ("text.db", "{file} is no SQLite database"),
        ("text.db/r.db", "there is no folder {folder}"),
    ],
)
def test_a_place_that_is_no_database_is_named(name, said, tmp_path):
    (tmp_path / "text.db").write_text("some text, long enough to be looked at\n" * 100)
    file = tmp_path / name
    with closing(Store.open(f"sqlite:///{file}")) as store, pytest.raises(StoreFailed) as caught:
        store.connect()
    assert said.format(file=file, folder=file.parent) in str(caught.value)


@pytest.mark.parametrize("folder", [".", "there", "there/", "./there", "there/deep"])
def test_a_folder_is_no_address_of_a_database(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there" / "deep").mkdir(parents=True)
    with pytest.raises(InputError, match="is a folder: name the file"):
        Store.open(folder)


def test_what_no_driver_declares_is_the_stores_too():
    for error, own in (
        (PoolExhausted("QueuePool limit"), StoreUnavailable),
        (OverflowError("date"), Unstorable),
        (ValueError("A string literal cannot contain NUL (0x00) characters."), Unstorable),
    ):
        with pytest.raises(own), own_errors():
            raise error


def test_other_errors_stay_as_they_are():
    with pytest.raises(ValueError, match="mine"), own_errors():
        raise ValueError("mine")


@pytest.mark.parametrize("made", [True, False], ids=["committed", "rolled back"])
def test_a_commit_without_an_answer_changes_nothing_twice(postgres_world, made):
    world = postgres_world
    lease, work = world.begin(world.waiting())
    store = LosesAnswers(world.store, made=made)
    page = world.result_page(lease, work.targets[0], [hit("1"), hit("2")])
    with closing(Writer(store)) as writer:
        (stored,) = writer.call(lambda tx: STORE_RESULT_PAGES.run(tx, [page]))
    assert store.left == 0
    assert len(stored.todo) == 2
    (part,) = world.rows(task_parts)
    assert (part.pages_read, part.listed) == (1, 2)
    assert sum(row.tries for row in world.rows(targets)) == 0


def test_a_transaction_says_whether_it_was_committed(postgres_store):
    with postgres_store.begin() as tx:
        number = tx.number()
        assert number is not None
        with postgres_store.begin() as other:
            assert is_committed(other, number) is None
    with postgres_store.begin() as tx:
        assert is_committed(tx, number) is True
        assert is_committed(tx, number + 1_000_000) is False


def test_what_is_written_waits_for_a_database_that_is_away(postgres_world, caplog):
    renewal = Renewal(postgres_world.begun(), SILENT, Counters(tried=1, offered=1))
    with closing(Writer(LosesAnswers(postgres_world.store, made=False, times=3))) as writer:
        assert writer.call(lambda tx: RENEW_LEASES.run(tx, [renewal])) == [True]
    assert "the database is away" in caplog.text
    assert "the database is back" in caplog.text


def test_the_server_ends_a_session_that_is_silent_within_a_transaction(postgres_store):
    """The limits hold in each session; one is set low here, and the frozen holder's row and lock pass on."""
    limits = {
        "idle_in_transaction_session_timeout": "8s",
        "statement_timeout": "10s",
        "lock_timeout": "9s",
    }
    with postgres_store.begin() as tx:
        assert {name: tx.value(f"SHOW {name}") for name in limits} == limits
    with closing(postgres_store.connect()) as frozen, pytest.raises(StoreUnavailable):
        hold_and_wake(postgres_store, frozen)


def hold_and_wake(store, connection):
    with store.begin(connection) as frozen:
        frozen.run("SET LOCAL idle_in_transaction_session_timeout = 50")
        assert try_lock(frozen, "scheduler", 2.0)
        with store.begin() as tx:
            key = zlib.crc32(b"scheduler")
            tx.value("SELECT pg_advisory_xact_lock(:key)", key=key)  # gets the lock by the holder's end
        frozen.value("SELECT 1")


def test_a_connection_without_an_answer_is_closed(postgres_store, monkeypatch):
    """The server is busy with a statement for longer than an answer may take."""
    monkeypatch.setattr(postgres, "ANSWER_S", 0.3)
    with postgres_store.connect() as kept:
        driver = kept.connection.driver_connection
        with (
            pytest.raises(StoreUnavailable, match="no PostgreSQL answers at") as caught,
            postgres_store.begin(kept) as tx,
        ):
            tx.value("SELECT pg_sleep(9)")
        assert "did not answer for 0.3 s" in str(caught.value.__cause__)
        assert driver.closed


def test_a_patient_connection_waits_for_its_answer(postgres_store, monkeypatch):
    with postgres_store.begin() as tx, lift_limits(tx):
        monkeypatch.setattr(postgres, "ANSWER_S", 0.01)
        assert tx.value("SELECT 1 FROM pg_sleep(0.2)") == 1


def test_an_error_of_connecting_names_the_server(postgres_store):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    expected = f"no PostgreSQL answers at postgresql://u@127.0.0.1:{port}/x: start it"
    with pytest.raises(StoreUnavailable, match=expected) as caught:
        Store.open(f"postgresql://u@127.0.0.1:{port}/x").connect()
    assert f"port {port} failed: Connection refused" in str(caught.value.__cause__)


def test_a_server_that_takes_no_connection_is_given_up(postgres_store):
    """It takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = Store.open(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x", connect_s=1)
        with pytest.raises(StoreUnavailable, match="no PostgreSQL answers at") as caught:
            away.connect()
        assert "did not answer for 1 s" in str(caught.value.__cause__)


def test_who_holds_a_lock_is_logged_once_without_its_statement(postgres_store, monkeypatch, caplog):
    monkeypatch.setattr(postgres, "LOCK_TOLD_S", 0.05)
    with postgres_store.begin() as tx:
        tx.insert("hosts", ("host",), [("a",)])
        assert tx.value("SELECT 1 FROM pg_sleep(0.2)") == 1, "slow, but no wait for a lock"
    assert caplog.messages == []
    with postgres_store.begin() as holder:
        holder.value("SELECT 1")  # BEGIN goes with the first statement
        pid = holder.value("  SELECT pg_backend_pid() FROM hosts WHERE 'secret' <> '' FOR UPDATE")
        for _ in range(2):
            with pytest.raises(StoreConflict):
                lock_hosts(postgres_store)
    (line,) = caplog.messages
    for said in (f"process {pid}", "idle in transaction", "last statement: SELECT ..."):
        assert said in line
    assert "secret" not in line


def test_a_spare_scheduler_that_holds_the_lock_for_a_moment_is_not_logged(postgres_store, caplog):
    with postgres_store.begin() as holder, postgres_store.begin() as tx:
        assert try_lock(holder, "scheduler", 0.5)
        assert not try_lock(tx, "scheduler", 0.5)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("statement", "shown"),
    [("SELECT {}, 'secret'", "SELECT"), ("/* secret */ SELECT {}", "unknown"), ("\n  select{}", "select")],
)
def test_of_a_statement_only_the_first_word_is_logged(postgres_store, monkeypatch, caplog, statement, shown):
    monkeypatch.setattr(postgres, "ADVISORY_TOLD_S", 0.0)
    held = f"(pg_try_advisory_xact_lock({zlib.crc32(b'scheduler')}))"
    with postgres_store.begin() as holder:
        holder.value("SELECT 1")  # BEGIN goes with the first statement
        assert holder.rows(statement.format(held))
        with postgres_store.begin() as tx:
            assert not try_lock(tx, "scheduler", 0.5)
            assert not try_lock(tx, "scheduler", 0.5)
    (line,) = caplog.messages
    assert line.endswith(f"last statement: {shown} ...")


def lock_hosts(store):
    with store.begin() as tx:
        assert try_lock(tx, "scheduler", 0.5)
        tx.value("SELECT host FROM hosts FOR UPDATE")


@pytest.mark.parametrize("started", [True, False])
def test_recall_passes_over_what_another_transaction_has_locked(postgres_world, started):
    world = postgres_world
    lease = world.begun if started else world.granted
    held, free = lease("特仑苏"), lease("早餐奶")
    world.pass_s(60)
    with world.store.begin() as frozen:
        assert frozen.value("SELECT id FROM subtasks WHERE id = :id FOR UPDATE", id=held.subtask_id)
        world.recall()
        assert world.state(free.subtask_id) is State.WAIT
        assert world.state(held.subtask_id) is State.CRAWL
    world.recall()
    assert world.state(held.subtask_id) is State.WAIT


# --- the scheduler reports an absence once, and once that it is over: no traceback a tick ----------------------


class Away:
    """A store whose database is away, or there."""

    def __init__(self, store):
        self._store, self.away = store, True
        self.now_s = 0.0
        self.outage = Outage(
            logging.getLogger("reviewloop.store"),
            "the database is away",
            "the database is back",
            lambda: self.now_s,
        )

    @contextmanager
    def begin(self):
        if self.away:
            raise LOST
        with self._store.begin() as tx:
            yield tx


@pytest.fixture
def database(world, monkeypatch):
    def raise_lost(*_):
        raise LOST

    database = Away(world.store)
    control = Control(
        store=database,
        context=world.context,
        write=raise_lost,
        plan=raise_lost,
        report=lambda: 1 / 0,
        deliver=None,
        alerts=None,
    )
    monkeypatch.setattr(runtime, "opened", Opened(control))
    return database


def test_one_line_when_it_goes_and_one_when_it_is_back(database, caplog):
    for name in ("recall", "plan", "retention") * 3:
        celery_tasks.sweep.run(name)
    (gone,) = caplog.messages
    assert gone == f"the database is away: {LOST}"
    database.now_s = 60.0
    database.away = False
    for _ in range(3):
        celery_tasks.sweep.run("recall")
    assert caplog.messages[1:] == ["the database is back after 60.0 s"]
    assert all(record.exc_info is None for record in caplog.records)
    database.now_s = 600.0
    database.away = True
    celery_tasks.sweep.run("recall")
    assert len(caplog.records) == 3, "another outage is reported, too"
    with pytest.raises(ZeroDivisionError):  # other errors are raised
        celery_tasks.sweep.run("report")


def test_a_sweep_that_fails_holds_up_none_of_its_message(database, monkeypatch):
    database.away = False
    ran = []
    monkeypatch.setattr(celery_tasks, "_tick", ran.append)
    for names in (("report", "recall"), ("recall", "report", "wake"), ("report", "report", "admit")):
        ran.clear()
        with pytest.raises(ZeroDivisionError):
            celery_tasks.sweep.run(*names)
        assert ran == [[name for name in names if name != "report"]]


@pytest.mark.parametrize(
    "wrong", [(), ("wake",), ("recall", "admit"), ("recall", "wake", "admit"), ("admit",)]
)
def test_sweeps_of_the_scheduler_share_a_transaction_until_one_fails(database, monkeypatch, wrong):
    database.away = False
    names, committed = ("recall", "wake", "admit"), []

    def tick(some):
        if bad := [name for name in some if name in wrong]:
            raise LookupError(bad[0])
        committed.append(list(some))

    monkeypatch.setattr(celery_tasks, "_tick", tick)
    if not wrong:
        celery_tasks.sweep.run(*names)
        assert committed == [list(names)]
        return
    with pytest.raises(LookupError, match=wrong[0]):
        celery_tasks.sweep.run(*names)
    assert committed == [[name] for name in names if name not in wrong]
