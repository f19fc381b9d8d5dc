"""Starting and stopping: one run a file, no command changes a schema by the way, a full disk is one sentence."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from patience import PATIENCE_S, until
from tiny_world import ROOT

from app.run.open_store import hold
from splitter.errors import InputError


def older(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as conn, conn:
        conn.execute("UPDATE alembic_version SET version_num = '0009'")


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("verify",),
        ("nodes", "list"),
        ("failed", "list"),
        ("explain", "1"),
        ("export", "reviews", "-o", "-"),
        ("product", "add", "特仑苏"),
        ("product", "list"),
    ],
    ids=" ".join,
)
def test_a_database_of_an_older_version_is_told_and_left_as_it_is(reviewloop, crawled, words):
    older(crawled.url)
    result = reviewloop(*words, "--db", crawled.url)
    assert result.exit_code == 1
    assert "has revision 0009" in result.stderr
    assert "version 0.9.0 first" in result.stderr
    with closing(sqlite3.connect(crawled.url.removeprefix("sqlite:///"))) as conn:
        assert conn.execute("SELECT version_num FROM alembic_version").fetchone() == ("0009",)


def test_a_second_holder_is_told_who_is_first(tmp_path):
    lock = tmp_path / "it.run"
    first = hold(lock, "another run works on it", "end it")
    told = rf"another run works on it \(process {os.getpid()}, since .* UTC\): end it"
    with first, pytest.raises(InputError, match=told), hold(lock, "another run works on it", "end it"):
        pass
    with hold(lock, "another run works on it", "end it"):
        assert lock.exists()


def nodes_in(result):
    return result.exit_code == 0 and json.loads(result.stdout)["nodes"]


def started(*words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app", *words],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("REVIEWLOOP_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_a_second_run_on_a_file_is_refused_and_others_write_meanwhile(reviewloop, lab, tiny_sites, tmp_path):
    url = f"sqlite:///{tmp_path / 'r.db'}"
    at = ("--lab", f"127.0.0.1:{lab.port}", "--sites", str(tiny_sites))
    first = started("run", "特仑苏", "--db", url, *at)
    try:
        lock = tmp_path / "r.db.run"

        def at_work() -> bool:
            assert first.poll() is None, first.communicate()
            return lock.exists() and nodes_in(reviewloop("status", "--json", "--db", url))

        until(at_work, "the first run has its nodes")
        second = reviewloop("run", "--db", url, *at)
        assert second.exit_code == 2
        assert f"process {first.pid}, since " in second.stderr
        assert reviewloop("product", "add", "蒙牛早餐奶", "--db", url).exit_code == 0
    finally:
        first.send_signal(signal.SIGTERM)
        _, told = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0, told
    with closing(sqlite3.connect(tmp_path / "r.db")) as conn:
        assert conn.execute("SELECT count(*) FROM subtasks WHERE state = 'CRAWL'").fetchone() == (0,)
        assert conn.execute("SELECT count(*) FROM events WHERE transition = 'silent'").fetchone() == (0,)


WRITER = """
import signal, sys
from pathlib import Path
from app.cli import main as entry
from app.files.exporting import whole_file

def write(**_):
    with whole_file(Path(sys.argv[1])) as file:
        file.write(b"a row")
        print("begun", flush=True)
        signal.pause()

entry.cli.main = write
entry.main()
"""
"""A command that writes a file and does not end."""


def test_sigterm_leaves_no_unfinished_file(tmp_path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "out.xlsx"], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert writer.stdout.readline() == b"begun\n"
    assert len([*tmp_path.iterdir()]) == 1
    writer.send_signal(signal.SIGTERM)
    writer.communicate(timeout=PATIENCE_S)
    assert writer.returncode == -signal.SIGTERM
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_one_sentence(lab, tiny_sites, tmp_path):
    """As far as a process can see: no file may grow beyond what the tables take."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    url = f"sqlite:///{tmp_path / 'full.db'}"
    at = ("--lab", f"127.0.0.1:{lab.port}", "--sites", str(tiny_sites))
    run = started(
        "run", "特仑苏", "蒙牛早餐奶", "光明高钙牛奶", "--until-done", "--db", url, *at, preexec_fn=limit
    )
    _, told = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 1, told
    last = told.strip().splitlines()[-1]
    assert f"{Path(url.removeprefix('sqlite:///'))}" in last
    assert "Traceback" not in told
