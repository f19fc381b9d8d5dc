"""Processes of the benches: modules run on their own, and private servers."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from typing import Any

from app.run.cluster import processes
from app.run.cluster.servers import PostgresServer, RedisServer
from app.run.version import ROOT
from research.tools.meter import BenchError

_IMPORTED = (
    "app.cli.main",
    "research.tools.processes",
    "research.bench.politeness",
    "research.bench.strategies.runs",
)
"""Modules that processes of the fork server have without importing them."""
_END_S = 30.0


def _popen(
    module: str, arguments: tuple[str, ...], core: set[int] | None, **pipes: Any
) -> subprocess.Popen[str]:
    # Without variables such as PYTHONDONTWRITEBYTECODE: installed packages have bytecode, so ours may keep it, too.
    command = [sys.executable, "-E", "-m", module, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **pipes)
    if core is not None:
        os.sched_setaffinity(process.pid, core)
    return process


def printed_by(module: str, *arguments: str, core: set[int] | None = None, timeout_s: float = 150.0) -> Any:
    """Run a module in a process of its own, on a core, and return what it prints, read as JSON. Raises BenchError."""
    name = f"{module.rpartition('.')[2]} {' '.join(arguments)}"[:200]
    with _popen(module, arguments, core, stderr=subprocess.PIPE) as process:
        try:
            out, complaints = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError(f"{name} was not done after {timeout_s:g} s") from None
    if process.returncode or not out:
        raise BenchError(f"{name} failed: {complaints.strip()[-600:]}")
    return json.loads(out)


@contextmanager
def serving(
    module: str, *arguments: str, core: set[int] | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Run a module that prints a line of JSON when it serves, and ends with its standard input.

    Yields:
        The line that it printed, and a dictionary that gets the JSON of its end, once it ended.

    Raises:
        BenchError: it did not start.
    """
    with _popen(module, arguments, core, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready, done = process.stdout.readline(), dict[str, Any]()
        if not ready:
            raise BenchError(f"{module} did not start: its message is above")
        try:
            yield json.loads(ready), done
        finally:
            rest, _ = process.communicate(timeout=_END_S)
    done.update(json.loads(rest or "{}"))


@contextmanager
def running(server: PostgresServer | RedisServer) -> Iterator[int]:
    """Prepare and run a private server; yields its process id. Raises ServerFailed."""
    server.prepare()
    process = processes.start(server.program)
    try:
        server.wait(lambda: process.poll() is None)
        yield process.pid
    finally:
        processes.stop([(server.program, process)])
        server.clean_up()


def forkserver() -> ForkServerContext:
    """Return a context whose processes are forked from one that has imported most modules."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context
