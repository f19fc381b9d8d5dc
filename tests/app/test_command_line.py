import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from datetime import UTC, datetime, timedelta

import click
import pytest
from patience import PATIENCE_S
from tiny_world import ROOT

import app.cli.crawl.demo
from app.cli.main import cli
from app.cli.program import as_called, program
from app.run.settings import load_settings
from splitter.errors import InputError
from tasks.store.queries.queues import HostQueue


def commands(group, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = list(commands(cli))


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_teaches(path, command):
    text = command.help or ""
    assert text.splitlines()[0].endswith(".")
    assert f"reviewloop {path[0]}" in text or "Example" in text
    if not isinstance(command, click.Group):
        assert any("--json" in option.opts for option in command.params)


def test_an_unknown_command_is_wrong_input(reviewloop):
    assert reviewloop("collect").exit_code == 2
    assert "reviewloop demo" in reviewloop("--help").stdout


@pytest.fixture
def off_path(tmp_path, monkeypatch):
    """A console script as `make setup` leaves it: called by its path in the folder, and not on the PATH."""
    script = tmp_path / "bin" / "reviewloop"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["bin/reviewloop"])
    return script


def test_the_program_is_named_as_a_shell_finds_it(off_path, monkeypatch):
    assert (program(), program(from_anywhere=True)) == ("bin/reviewloop", str(off_path))
    monkeypatch.setenv("PATH", str(off_path.parent))
    assert (program(), program(from_anywhere=True)) == ("reviewloop", "reviewloop")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["/a folder/reviewloop"])
    assert program() == "'/a folder/reviewloop'"
    monkeypatch.setattr(sys, "argv", ["/a folder/app/__main__.py"])
    assert program() == "reviewloop"


@pytest.mark.parametrize(
    ("text", "shown_as"),
    [
        ("first `reviewloop product add NAME`", "first `bin/reviewloop product add NAME`"),
        ("reviewloop run, reviewloop up", "bin/reviewloop run, bin/reviewloop up"),
        ("a newer version of reviewloop made it", "a newer version of reviewloop made it"),
        (".venv/bin/reviewloop run", ".venv/bin/reviewloop run"),
        ("my-reviewloop run", "my-reviewloop run"),
    ],
)
@pytest.mark.usefixtures("off_path")
def test_commands_in_a_text_are_as_they_can_be_called(text, shown_as):
    assert as_called(text) == shown_as


@pytest.mark.usefixtures("off_path")
def test_a_message_names_the_command_that_works(reviewloop, tmp_path):
    assert "bin/reviewloop product add" in reviewloop("product", "list", "--db", tmp_path / "no.db").stderr
    at = reviewloop("schedule", "list", "--db", tmp_path / "no.db").stdout
    assert "bin/reviewloop schedule set" in at
    begun = reviewloop("init", tmp_path / "reviews").stdout
    assert f"{tmp_path}/bin/reviewloop doctor" in begun


def test_help_names_the_command_that_works(tmp_path):
    script = tmp_path / "reviewloop"
    script.write_text("from app.cli.main import main\nmain()\n")
    ran = subprocess.run(
        [sys.executable, script, "product", "--help"], capture_output=True, text=True, timeout=PATIENCE_S,
        env={**os.environ, "PATH": "", "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    commands = re.findall(r"\S*reviewloop(?= product)", ran.stdout)
    assert set(commands) == {str(script)}
    assert len(commands) > 1


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(crawled):
    command = f"{sys.executable} -m app export reviews --db {crawled.url} | head -c 10 > /dev/null"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ},
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_a_database_that_cannot_be_opened_is_told(reviewloop, tmp_path):
    no_database = tmp_path / "text.db"
    no_database.write_text("some text, long enough to be looked at\n" * 100)
    for url in (
        f"sqlite:///{tmp_path}/no/folder.db",
        f"sqlite:///{no_database}",
        "postgresql://x@127.0.0.1:1/x",
        f"sqlite:///{tmp_path}",
    ):
        result = reviewloop("product", "add", "特仑苏", "--db", url)
        assert result.exit_code == 1
        assert "the database cannot be opened: " in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [("status",), ("product", "list"), ("product", "add", "特仑苏"), ("run", "特仑苏"), ("migrate",)],
)
def test_a_folder_that_is_given_as_a_database_is_named(reviewloop, tmp_path, command):
    for given in (tmp_path, f"{tmp_path}/", f"sqlite:///{tmp_path}"):
        result = reviewloop(*command, "--db", given)
        assert result.exit_code in (1, 2)
        assert f"{tmp_path} is a folder: name the file" in result.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "migrate"])
@pytest.mark.parametrize(
    ("revision", "advice"), [("9999", "update reviewloop"), ("0026", "version 0.9.0 first")]
)
def test_a_database_of_another_version_is_refused_in_one_line(reviewloop, crawled, command, revision, advice):
    with closing(sqlite3.connect(crawled.url.removeprefix("sqlite:///"))) as conn, conn:
        conn.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    result = reviewloop(command, "--db", crawled.url)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert f"revision {revision}" in result.stderr
    assert advice in result.stderr


def test_settings_of_the_environment(tiny_sites):
    settings = load_settings(
        {"REVIEWLOOP_BACKOFF_S": "0.5", "REVIEWLOOP_SILENT_AFTER_S": "8"}, sites="paper-2014"
    )
    assert settings.loop().recall.backoff_s == 0.5
    assert settings.crawl().request_timeout_s == 4
    assert settings.catalog().name == "paper-2014"
    with pytest.raises(InputError, match="REVIEWLOOP_BACKOFF_S"):
        load_settings({"REVIEWLOOP_BACKOFF_S": "-1"})


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("mine.db", "sqlite:///mine.db"),
        ("/data/my reviews.db", "sqlite:////data/my reviews.db"),
        ("sqlite:///mine.db", "sqlite:///mine.db"),
        ("postgresql://me@there/it", "postgresql://me@there/it"),
    ],
)
def test_a_database_is_named_by_its_url_or_file(given, url, tmp_path):
    assert load_settings({"REVIEWLOOP_DATABASE_URL": given}).database_url == url
    assert load_settings({"REVIEWLOOP_DATABASE_URL": str(tmp_path)}).database_url == str(tmp_path)
    with pytest.raises(InputError, match="no scheme"):  # misspelt: no file of that name is meant
        load_settings({"REVIEWLOOP_DATABASE_URL": "postgresql:/me@there"})


def test_one_version_number(reviewloop):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## (\S+)", changelog, re.MULTILINE)[1] == project
    assert reviewloop("--version").stdout.split() == ["reviewloop", project]
    assert load_settings({}).crawl().user_agent.startswith(f"reviewloop/{project} (")


def test_the_demo_shows_everything(reviewloop, monkeypatch, tiny_sites, tmp_path):
    monkeypatch.setattr(app.cli.crawl.demo, "_CATALOG", str(tiny_sites))
    monkeypatch.setattr(app.cli.crawl.demo, "PRODUCTS", ("特仑苏",))
    monkeypatch.setitem(app.cli.crawl.demo.SHORTENED, "backoff_s", 0.02)
    url = f"sqlite:///{tmp_path / 'demo.db'}"
    result = reviewloop("demo", "--db", url)
    assert result.exit_code == 0, result.stderr
    for said in ("特仑苏 -> 蒙牛 & 特仑苏", "Shortened for the demo: silence until recall 12 s instead of 60",
                 "Completion rate", "no violation", "What to try next", "reviewloop export reviews"):  # fmt: skip
        assert said in result.stdout
    again = json.loads(reviewloop("demo", "--db", url, "--json").stdout)
    assert again["split"] == [{"product": "特仑苏", "keywords": ["蒙牛", "特仑苏"]}]
    assert again["verify"]["violations"] == []
    assert again["shortened"]["silent_after_s"] == 12
    assert again["pages"] > again["added"]["pages"] == 0
    assert set(again["samples"][0]) >= {"product", "body", "url", "node"}


NOW = datetime(2026, 1, 1, 14, 0, tzinfo=UTC)


def rests(cause, after_s, subtasks, left=0, host="12315.com"):
    return HostQueue(
        host=host, cause=cause, until=NOW + timedelta(seconds=after_s), subtasks=subtasks, left=left
    )


def test_a_database_that_does_not_answer_is_a_state(reviewloop):
    away = "postgresql+psycopg2://nobody@127.0.0.1:1/none"
    result = reviewloop("status", "--json", "--db", away)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "state": "database_away",
        "parameters": {},
        "sentence": "The database does not answer.",
        "next_command": "reviewloop doctor",
        "left_s": None,
    }


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("statsu", "status"),
        ("prodcut", "product"),
        ("exprot", "export"),
        ("verfy", "verify"),
        ("judg", "judge"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(reviewloop, wrong, meant):
    result = reviewloop(wrong)
    assert result.exit_code == 2
    _, _, hint = result.stderr.partition("id you mean")
    assert f"'{meant}'" in hint
