"""An embedded run that is killed at any moment loses nothing: the next one ends with the same pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE_S
from sqlalchemy import func, select

from app.lab.log import LogEntry
from app.lab.running import running_lab
from app.run.version import ROOT
from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog, Limits
from tasks.store.sql.database import Store
from tasks.store.sql.tables import events, pages
from tasks.store.verify.verify import verify

SITES = ("cca.org.cn", "315ok.com", "weibo.com")
FAST = Limits(per_address_per_s=300, total_per_s=900)
NAMES = ("特仑苏", "蒙牛早餐奶", "光明高钙牛奶")


def small_catalog() -> Catalog:
    whole = builtin("paper-2014")
    engines = {name: engine.model_copy(update={"limits": FAST}) for name, engine in whole.engines.items()}
    sites = {name: whole.sites[name].model_copy(update={"pages": 2}) for name in SITES}
    return whole.model_copy(update={"limits": FAST, "engines": engines, "sites": sites})


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    catalog = small_catalog()
    path = tmp_path_factory.mktemp("lab") / "sites.yaml"
    path.write_text(json.dumps({"version": 1, **catalog.model_dump(mode="json", exclude_none=True)}), "utf-8")
    with running_lab(catalog, "calm", seed=3) as running:
        yield running, path


def run(lab, url: str, *names: str) -> subprocess.Popen[str]:
    running, _ = lab
    command = ["run", *names, "--until-done", "--lab", f"127.0.0.1:{running.port}", "--db", url]
    return subprocess.Popen(
        [sys.executable, "-m", "app", *command, "--sites", str(lab[1]), "--json"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("REVIEWLOOP_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored(url: str) -> set[tuple[str, str]]:
    store = Store.open(url)
    try:
        with store.read() as tx:
            assert verify(tx).violations == ()
            return {(r.url, r.content_hash) for r in tx.engine_connection.execute(select(pages))}
    finally:
        store.close()


def transitions(url: str) -> set[str]:
    store = Store.open(url)
    try:
        with store.read() as tx:
            return set(tx.engine_connection.scalars(select(events.c.transition)))
    finally:
        store.close()


def committed(url: str) -> int:
    """Pages in the database so far; 0 where there is none yet."""
    if not Path(url.removeprefix("sqlite:///")).exists():
        return 0
    store = Store.open(url)
    try:
        with store.read() as tx:
            known = tx.engine_connection.dialect.has_table(tx.engine_connection, "pages")
            return tx.engine_connection.scalar(select(func.count()).select_from(pages)) if known else 0
    finally:
        store.close()


def kill_after(lab, monkeypatch, url: str, count: int, *names: str) -> None:
    """A run that is killed once so many pages are committed; the lab, asked by it, looks before it answers."""
    log = lab[0].log

    def add(entry: LogEntry, add: Callable[[LogEntry], None] = log.add) -> None:
        if committed(url) >= count:
            process.kill()
        add(entry)

    with monkeypatch.context() as patch:
        patch.setattr(log, "add", add)
        process = run(lab, url, *names)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL, errors


@pytest.mark.slow
def test_killed_twice_it_ends_with_the_same_pages_as_undisturbed(lab, tmp_path, monkeypatch):
    calm = f"sqlite:///{tmp_path / 'calm.db'}"
    process = run(lab, calm, *NAMES)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    expected = stored(calm)
    assert len(expected) > 40

    killed = f"sqlite:///{tmp_path / 'killed.db'}"
    kill_after(lab, monkeypatch, killed, 5, *NAMES)
    kill_after(lab, monkeypatch, killed, 20)
    process = run(lab, killed)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "the last run was killed: " in errors
    assert stored(killed) == expected
    assert "silent" not in transitions(killed)
