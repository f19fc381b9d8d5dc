"""The migrations make what the tables say, on both databases, and are safe to run twice and at once."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from patience import PATIENCE_S
from sqlalchemy import inspect
from sqlalchemy.exc import SAWarning

from tasks.store import migrate
from tasks.store.database import Store
from tasks.store.tables import metadata

ON_EXPRESSIONS = {
    "ix_subtasks_queue": "(state, priority DESC, id)",
    "ix_subtasks_by_site": '(state, site, priority DESC, id, "left")',
}
"""Indexes that Alembic cannot compare."""


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def empty(empty_url: str) -> Iterator[Store]:
    store = Store.open(empty_url)
    yield store
    store.close()


def _differences(store: Store) -> list[object]:
    with store.read() as conn, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*expression-based index 'ix_subtasks_", UserWarning)
        warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based", SAWarning)
        context = MigrationContext.configure(
            conn,
            opts={
                "compare_type": True,
                "include_object": lambda _thing, name, kind, *_: (
                    kind != "index" or name not in ON_EXPRESSIONS
                ),
            },
        )
        return list(compare_metadata(context, metadata))


def _index_sql(store: Store, name: str) -> str:
    """The definition of an index, as the database has it."""
    with store.read() as conn:
        where = (
            f"SELECT sql FROM sqlite_master WHERE name = '{name}'"
            if store.is_sqlite
            else f"SELECT indexdef FROM pg_indexes WHERE indexname = '{name}'"
        )
        return str(conn.exec_driver_sql(where).scalar_one())


def test_upgrading_an_empty_database_makes_the_tables_as_declared(empty: Store, migrations: Path) -> None:
    migrate.upgrade(empty, migrations)
    assert _differences(empty) == []
    for name, columns in ON_EXPRESSIONS.items():
        assert columns in _index_sql(empty, name)


def test_a_missing_column_is_seen(empty: Store, migrations: Path) -> None:
    migrate.upgrade(empty, migrations)
    with empty.begin() as conn:
        conn.exec_driver_sql("DROP INDEX ix_subtasks_queue")
        conn.exec_driver_sql("ALTER TABLE hosts DROP COLUMN robots_status")
    assert [difference[:1] for difference in _differences(empty)] == [("add_column",)]


def test_upgrading_twice_changes_nothing(empty: Store, migrations: Path) -> None:
    migrate.upgrade(empty, migrations)
    with empty.begin() as conn:
        conn.exec_driver_sql("INSERT INTO hosts (host) VALUES ('cca.org.cn')")
    migrate.upgrade(empty, migrations)
    with empty.read() as conn:
        assert migrate.current(conn) == migrate.newest(migrations)
        assert conn.exec_driver_sql("SELECT host FROM hosts").scalars().all() == ["cca.org.cn"]


def test_downgrading_to_base_leaves_no_table(empty: Store, migrations: Path) -> None:
    migrate.upgrade(empty, migrations)
    with empty.begin() as conn:
        command.downgrade(migrate.config(migrations, conn), "base")
    with empty.read() as conn:
        assert set(inspect(conn).get_table_names()) <= {"alembic_version"}
        assert migrate.current(conn) is None


def test_programs_that_start_together_upgrade_once(empty_url: str, migrations: Path) -> None:
    barrier = threading.Barrier(4)
    failures: list[Exception] = []

    def start() -> None:
        store = Store.open(empty_url)
        try:
            barrier.wait(timeout=PATIENCE_S)
            migrate.upgrade(store, migrations)
        except Exception as error:
            failures.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = Store.open(empty_url)
    with store.read() as conn:
        assert set(metadata.tables) <= set(inspect(conn).get_table_names())
    store.close()


_OPENS = """
import sys
from pathlib import Path
from app.run.settings import Settings
from app.run.open_store import opened_store
with opened_store(Settings(database_url=sys.argv[1])):
    print("alembic" in sys.modules)
"""


def test_a_store_of_this_version_is_opened_without_alembic(empty_url: str) -> None:
    for loaded in ("True", "False"):
        done = subprocess.run(
            [sys.executable, "-c", _OPENS, empty_url], capture_output=True, encoding="utf-8", check=True
        )
        assert done.stdout.strip() == loaded
