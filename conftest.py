"""Tiers of the tests, and the databases and servers that they use.

A test is slow if it uses PostgreSQL or Redis, lies in one of `SLOW_FOLDERS`, or has `@pytest.mark.slow`.
`--tier fast` runs the others, with few examples for each property. `--tier slow` runs the slow tests, and the
properties again with all their examples. Servers are private, start when a test needs them, and always stop.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import contents
import pytest
import servers
from hypothesis import is_hypothesis_test, settings
from redis import Redis
from sqlalchemy import URL

from app.views import words
from tasks.store.sql import schema
from tasks.store.sql.database import Store

# pytest-xdist sets 80; the output of a command must be as wide as in a file.
os.environ.pop("COLUMNS", None)
os.environ["LC_ALL"] = "C.UTF-8"  # texts are English unless a test wants another language

# The examples of a test are the same in every run, however slow the machine is.
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("full", derandomize=True, deadline=None, max_examples=100)

ROOT = Path(__file__).parent
SLOW_FOLDERS = (ROOT / "tests" / "cluster", ROOT / "research" / "tests")
SERVERS = {"postgres_databases", "_redis"}
"""Fixtures that every test with PostgreSQL or Redis uses."""

MAX_CPU_S = 2.0
"""Maximum CPU time of a fast test, including its ended child processes; more on a machine that is slow just now."""
_NUMBERS, _SUMMED_S = 300_000, 0.0125
"""Numbers whose squares `_slowness` adds up, and its CPU seconds on a machine that is not slow."""


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the language that a command sets for the process."""
    monkeypatch.setattr(words._Process, "language", "en")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=["fast", "slow"], help="run only the tests of one tier")
    parser.addoption(
        "--database", choices=["sqlite", "postgres"], default="sqlite", help="database of the fixture `store`"
    )


def pytest_configure(config: pytest.Config) -> None:
    is_fast = config.getoption("--tier") == "fast"
    settings.load_profile("fast" if is_fast else "full")
    if is_fast:
        config.pluginmanager.register(CpuLimit())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier is None:
        return
    chosen = [item for item in items if _is_in_tier(item, tier)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _is_in_tier(item: pytest.Item, tier: str) -> bool:
    if tier == "slow" and is_hypothesis_test(getattr(item, "obj", None)):
        return True
    return _is_slow(item) == (tier == "slow")


def _is_slow(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    uses_server = not SERVERS.isdisjoint(fixtures)
    if item.config.getoption("--database") == "postgres":
        uses_server = uses_server or "dialect" in fixtures
    is_in_slow_folder = any(item.path.is_relative_to(folder) for folder in SLOW_FOLDERS)
    return uses_server or is_in_slow_folder or item.get_closest_marker("slow") is not None


class CpuLimit:
    """Fails each test that uses more than `MAX_CPU_S`, or the seconds of its marker `cpu`.

    The setup of shared fixtures is not counted.
    """

    def __init__(self) -> None:
        self._shared_s = 0.0
        self._began_s = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        shared_s, began_s = self._shared_s, _cpu_s()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._shared_s = shared_s + _cpu_s() - began_s

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        self._shared_s, self._began_s = 0.0, _cpu_s()
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        used_s = _cpu_s() - self._began_s - self._shared_s
        yield
        marker = item.get_closest_marker("cpu")
        limit_s = marker.args[0] if marker else MAX_CPU_S
        if used_s > limit_s and used_s > (most_s := limit_s * _slowness()):
            pytest.fail(
                f"{item.nodeid} used {used_s:.1f} s of CPU; a fast test may use {most_s:.1f} s here and now",
                pytrace=False,
            )


def _slowness() -> float:
    """Return how many times the CPU time of a machine that is not slow a test may take now, at least 1.

    That is twice as much as a sum takes: it runs after the test, and needs none of the cache that others fill.
    """
    began_s = time.process_time()
    sum(number * number for number in range(_NUMBERS))
    return max(1.0, 2.0 * (time.process_time() - began_s) / _SUMMED_S)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


MIGRATIONS = ROOT / "migrations"


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


@pytest.fixture(scope="session")
def dialect(request: pytest.FixtureRequest) -> str:
    """The database that `--database` names: `sqlite` or `postgres`."""
    return str(request.config.getoption("--database"))


@pytest.fixture
def store(request: pytest.FixtureRequest, dialect: str) -> Store:
    """A store in the database that `--database` names, migrated and empty."""
    opened: Store = request.getfixturevalue(f"{dialect}_store")
    return opened


@pytest.fixture
def store_url(request: pytest.FixtureRequest, dialect: str) -> str:
    """URL of the test's own database of the kind that `--database` names, migrated and empty."""
    return str(request.getfixturevalue(f"{dialect}_url"))


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, dialect: str, tmp_path: Path) -> str:
    """URL of the test's own database of the kind that `--database` names, without tables."""
    return (
        f"sqlite:///{tmp_path / 'empty.db'}"
        if dialect == "sqlite"
        else str(request.getfixturevalue("empty_postgres_url"))
    )


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


DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The shared sample data, where it stands beside the clone."""
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not there")
    return DATA
