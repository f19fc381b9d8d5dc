"""What `reviewloop up` left stays readable: a command starts its PostgreSQL for as long as it runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner, Result

from app.cli.main import cli
from app.run.cluster.servers import POSTGRES, PostgresServer, has_store, serve_store
from app.run.version import MIGRATIONS
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.sql import schema
from tasks.store.sql.database import Store


@pytest.fixture(scope="module")
def left() -> Iterator[Path]:
    """A cluster's folder after it has ended, with a product in its store; a short path, as that of a socket is."""
    with TemporaryDirectory(prefix="left-") as short:
        folder = Path(short) / ".reviewloop"
        (folder / POSTGRES).mkdir(parents=True)
        assert not has_store(folder)
        PostgresServer(folder / POSTGRES, folder / "log", lambda _text: None).prepare()
        with serve_store(folder, lambda _text: None) as address:
            store = Store.open(address)
            schema.upgrade(store, MIGRATIONS)
            with store.begin() as tx:
                products.add(tx, NewProduct(name="光明", keywords=("光明",)))
            store.close()
        yield folder


def command(*words: object, folder: Path | None = None) -> Result:
    options = ["--db", str(folder)] if folder else []
    env = {"REVIEWLOOP_DATABASE_URL": "", "REVIEWLOOP_SITES": "paper-2014"}
    return CliRunner(env=env).invoke(cli, [*map(str, words), *options])


def test_commands_read_what_a_cluster_left(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(left.parent)
    told = command("status", "--json")
    assert told.exit_code == 0, told.stderr
    view = json.loads(told.stdout)
    assert (view["products"], view["state"], view["next_command"]) == (
        1,
        "planned",
        "reviewloop up --until-done",
    )
    refused = command("run", "--until-done")
    assert (refused.exit_code, "continue with `reviewloop up`" in refused.stderr) == (2, True)
    assert not (left.parent / "reviewloop.db").exists()
    assert "its PostgreSQL runs as long as this command does" in told.stderr
    assert not (left / POSTGRES / "postmaster.pid").exists(), "it runs no longer"
    monkeypatch.chdir(tmp_path)
    named = command("export", "reviews", "-o", "r.csv", "--json", folder=left)
    assert json.loads(named.stdout)["rows"] == 0
    assert command("status").exit_code == 2, "there is nothing here"


def test_a_server_that_runs_already_is_used(left: Path) -> None:
    with serve_store(left, lambda _text: None):
        told = command("status", "--json", folder=left)
        assert told.exit_code == 0, told.stderr
        assert told.stderr == ""


def test_a_file_here_comes_first_and_the_other_store_is_named(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("product", "add", "蒙牛纯甄", "--json").exit_code == 0
    folder = tmp_path / ".reviewloop" / POSTGRES
    folder.mkdir(parents=True)
    shutil.copy(left / POSTGRES / "PG_VERSION", folder)
    told = command("status", "--json")
    assert json.loads(told.stdout)["products"] == 1
    assert "--db .reviewloop" in told.stderr
