"""Databases and servers for every test: private, lazily started, always stopped (see `servers`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import contents
import pytest
import servers
from hypothesis import settings
from redis import Redis
from sqlalchemy import URL

from tasks.store import schema
from tasks.store.database import Store

# pytest-xdist says 80; what a command prints here is as wide as in a file.
os.environ.pop("COLUMNS", None)

# The same examples every time, however slow the machine is.
settings.register_profile("reviewloop", derandomize=True, deadline=None)
settings.load_profile("reviewloop")

ON_SERVERS = {"postgres_databases", "_redis"}
"""What whoever uses PostgreSQL or Redis uses."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-servers", action="store_true", help="only what uses PostgreSQL or Redis")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what would be the same against any other server."""
    if not config.getoption("--on-servers"):
        return
    kept = [item for item in items if isinstance(item, pytest.Function) and _on_servers(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _on_servers(item: pytest.Function) -> bool:
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return bool(ON_SERVERS.intersection(item.fixturenames)) or not {"postgres", "redis"}.isdisjoint(
        one for one in chosen if isinstance(one, str)
    )


MIGRATIONS = Path(__file__).parent / "migrations"


def _migrated(url: str) -> None:
    store = Store.open(url)
    try:
        schema.upgrade(store, MIGRATIONS)
    finally:
        store.close()


@pytest.fixture(scope="session")
def migrations() -> Path:
    """The folder of the migrations."""
    return MIGRATIONS


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[servers.Databases]:
    """A PostgreSQL to make databases in."""
    with servers.postgres() as databases:
        yield databases


@pytest.fixture(scope="session")
def _postgres_template(postgres_databases: servers.Databases) -> Iterator[URL]:
    template = postgres_databases.create()
    try:
        _migrated(servers.url_of(template))
        yield template
    finally:
        postgres_databases.drop(template)


@pytest.fixture
def empty_postgres_url(postgres_databases: servers.Databases) -> Iterator[str]:
    """A PostgreSQL database of the test's own, without tables."""
    url = postgres_databases.create()
    yield servers.url_of(url)
    postgres_databases.drop(url)


@pytest.fixture
def postgres_url(postgres_databases: servers.Databases, _postgres_template: URL) -> Iterator[str]:
    """A PostgreSQL database of the test's own, migrated and empty."""
    url = postgres_databases.create(_postgres_template)
    yield servers.url_of(url)
    postgres_databases.drop(url)


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    _migrated(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, _sqlite_template: Path) -> str:
    """A SQLite database of the test's own, migrated and empty."""
    path = shutil.copy(_sqlite_template, tmp_path / "reviewloop.db")
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def _postgres_store(postgres_databases: servers.Databases, _postgres_template: URL) -> Iterator[Store]:
    url = postgres_databases.create(_postgres_template)
    opened = Store.open(servers.url_of(url))
    yield opened
    opened.close()
    postgres_databases.drop(url)


@pytest.fixture(scope="session")
def _sqlite_store(_sqlite_template: Path) -> Iterator[Store]:
    path = shutil.copy(_sqlite_template, _sqlite_template.with_name("shared.db"))
    opened = Store.open(f"sqlite:///{path}")
    yield opened
    opened.close()


def _emptied(store: Store) -> Store:
    contents.empty(store)
    return store


@pytest.fixture
def postgres_store(_postgres_store: Store) -> Store:
    """A PostgreSQL store, migrated and empty. One for all tests, which saves 150 ms each, so leave its tables as they
    are: whoever changes them takes `postgres_url`."""
    return _emptied(_postgres_store)


@pytest.fixture
def sqlite_store(_sqlite_store: Store) -> Store:
    """A SQLite store, migrated and empty. One for all tests: whoever changes its tables takes `sqlite_url`."""
    return _emptied(_sqlite_store)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    """A store over each kind of database, migrated and empty."""
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened


@pytest.fixture(scope="session")
def _redis() -> Iterator[str]:
    with servers.redis() as url:
        yield url


@pytest.fixture
def redis_url(_redis: str) -> str:
    """URL of an empty Redis database."""
    with Redis.from_url(_redis) as client:
        client.flushdb()
    return _redis


DATA = Path(__file__).parents[1] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The shared sample data, where it stands beside the clone."""
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not there")
    return DATA
