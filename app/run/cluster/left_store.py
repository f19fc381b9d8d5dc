"""The store that `reviewloop up` left: its PostgreSQL is started for as long as a command needs it.

While `up` (or another such command) runs, its server is used as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.run.cluster import processes
from app.run.cluster.servers import POSTGRES, PostgresServer, url_of
from app.run.held_file import held
from splitter.errors import InputError

_SOCKETS_LINE = 4
"""Of postmaster.pid, from 0: the folder of its socket; the line of its state is the eighth."""
_STATE_LINE = 7
_STARTS_S = 10.0


def is_left(folder: Path) -> bool:
    """Whether a folder holds a cluster's PostgreSQL."""
    try:
        return (folder / POSTGRES / "PG_VERSION").is_file()
    except PermissionError:
        return False


@contextmanager
def served(folder: Path, say: Callable[[str], None]) -> Iterator[str]:
    """The address of the store in a cluster's folder, served for as long as the block runs.

    Args:
        folder: as `up --data` names it.
        say: called with what a person should know.

    Raises:
        InputError: another command holds the folder, and its server does not come up.
        ServerFailed: the server does not come up.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(
                held(folder / "lock", f"another command works with {folder}", "try again when it has ended")
            )
        except InputError:
            address = _running(folder)
            if address is None:
                raise
        else:
            address = _started(stack, folder, say)
        yield address


def _started(stack: ExitStack, folder: Path, say: Callable[[str], None]) -> str:
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    server = PostgresServer(folder / POSTGRES, logs / "postgres.log", say)
    stack.callback(server.clean_up)
    server.prepare()
    say(f"Reads what `reviewloop up` left in {folder}: its PostgreSQL runs as long as this command does.")
    process = processes.start(server.program)
    stack.callback(processes.stop, [(server.program, process)])
    server.wait(lambda: process.poll() is None)
    return server.url


def _running(folder: Path) -> str | None:
    """The address of the server that another command runs; None where it does not come up."""
    end = time.monotonic() + _STARTS_S
    while time.monotonic() < end:
        try:
            lines = (folder / POSTGRES / "postmaster.pid").read_text().splitlines()
        except OSError:
            lines = []
        if len(lines) > _STATE_LINE and lines[_STATE_LINE].strip() == "ready":
            return url_of(lines[_SOCKETS_LINE].strip())
        time.sleep(0.05)
    return None
