"""The dashboard served on a port of 127.0.0.1, over a store with a small sample."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
import sample_store
from dashboard import Serve, Served

from app.run.setting_fields import Settings
from app.web.address import listening
from app.web.server import serving
from tasks.store.sql.database import Store


@pytest.fixture(scope="session")
def sample_file(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Path:
    """A database with the sample."""
    path = Path(shutil.copy(_sqlite_template, tmp_path_factory.mktemp("web") / "sample.db"))
    store = Store.open(f"sqlite:///{path}")
    sample_store.fill(store)
    store.close()
    return path


def _served(stack: ExitStack, file: Path, **settings: Any) -> tuple[str, Store]:
    """Serve a database until the stack is closed; returns the address and the store."""
    url = f"sqlite:///{file}"
    store = Store.open(url)
    stack.callback(store.close)
    sock = stack.enter_context(listening("127.0.0.1", 0))
    given = Settings(database_url=url, sites="paper-2014", **settings)
    return stack.enter_context(serving(given, store, sock)), store


def _session(stack: ExitStack) -> requests.Session:
    session = stack.enter_context(requests.Session())
    session.trust_env = False
    return session


@pytest.fixture(scope="session")
def serve_file() -> Iterator[Callable[[Path], Served]]:
    """Serve any database."""
    with ExitStack() as stack:
        yield lambda file: Served(*_served(stack, file), _session(stack))


@pytest.fixture
def serve(sample_file: Path, tmp_path: Path) -> Iterator[Serve]:
    """Serve a copy of the sample, with settings."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Served:
            file = Path(shutil.copy(sample_file, tmp_path / "reviewloop.db"))
            return Served(*_served(stack, file, **settings), _session(stack))

        yield start


@pytest.fixture
def served(serve: Serve) -> Served:
    """The sample, served without tokens to this test alone, which may change it."""
    return serve()


@pytest.fixture(scope="session")
def _shared(sample_file: Path) -> Iterator[tuple[str, Store]]:
    with ExitStack() as stack:
        yield _served(stack, sample_file)


@pytest.fixture
def sample(_shared: tuple[str, Store]) -> Iterator[Served]:
    """The sample, served without tokens to all tests that change nothing; cookies are the test's own."""
    with ExitStack() as stack:
        yield Served(*_shared, _session(stack))
