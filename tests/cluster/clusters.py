"""What the cluster's tests share: a small catalog's figures, stores compared, child processes watched."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from patience import PATIENCE_S
from sqlalchemy import select

from app.actions.products import new_product
from app.run.setting_fields import Settings
from app.run.settings import as_environment
from tasks.store.content import products
from tasks.store.sql.database import Store
from tasks.store.sql.tables import pages
from tasks.store.verify.verify import verify

PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶")
SITES = ("cca.org.cn", "315ok.com", "12315.com")
FAST = {"per_address_per_s": 200, "total_per_s": 400}
SILENT_S = 60.0

Pages = frozenset[tuple[str, str]]


def stored_pages(store: Store) -> Pages:
    with store.read() as tx:
        return frozenset(
            (url, str(key))
            for url, key in tx.engine_connection.execute(select(pages.c.url, pages.c.content_hash))
        )


def violations(store: Store) -> tuple[Any, ...]:
    with store.read() as tx:
        return verify(tx).violations


def add_products(store: Store) -> None:
    wanted = [new_product(name) for name in PRODUCTS]  # which loads a dictionary: not within a transaction
    with store.begin() as tx:
        for one in wanted:
            assert products.add(tx, one)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = Store.open(url)
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True)
class Web:
    """The lab, and its witness."""

    port: int
    sites: Path
    log: Path

    @property
    def settings(self) -> Settings:
        return Settings(
            sites=str(self.sites), lab=("127.0.0.1", self.port), silent_after_s=SILENT_S, backoff_s=0.2
        )

    def clients(self) -> set[str]:
        return {json.loads(line)["client"] for line in self.log.read_text().splitlines()}


class Process:
    """A child process of a test, with what it started."""

    def __init__(self, command: list[str], settings: Settings, cwd: Path) -> None:
        self._errors = cwd / "errors.txt"
        with self._errors.open("ab") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=as_environment(settings),
                cwd=cwd,
            )
        self.own = psutil.Process(self.popen.pid)

    @property
    def told(self) -> str:
        return self._errors.read_text(errors="replace")

    def children(self) -> list[psutil.Process]:
        return self.own.children()

    def child(self, name: str) -> psutil.Process | None:
        """Return the program of the cluster that has this name."""
        for process in self.own.children(recursive=True):
            try:
                if process.name() == name:
                    return process
            except psutil.Error:
                continue
        return None

    def ended(self) -> str:
        """Wait for its end; what it printed. Fails if it ended with another status than 0."""
        output, _ = self.popen.communicate(timeout=PATIENCE_S)
        assert self.popen.returncode == 0, self.told
        return output.decode()

    def kill(self) -> None:
        """Kill it and all it started; for the end of a test that failed."""
        family = [*self.own.children(recursive=True), self.own] if self.own.is_running() else []
        for process in family:
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.Error:
                continue
        self.popen.communicate()


def gone(processes: list[psutil.Process]) -> bool:
    """True where none of these is alive (a zombie is not)."""
    return not any(_alive(process) for process in processes)


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
