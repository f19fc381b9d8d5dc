"""Lock files held for as long as a process lives: a second process is told who holds the file, and since when."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from splitter.errors import InputError


@contextmanager
def held(lock: Path, what: str, instead: str) -> Iterator[None]:
    """Hold a lock file; the system lets go of it however the process ends.

    Args:
        what: what another holder is doing, for the message.
        instead: what the person could do.

    Raises:
        InputError: another process holds it.
    """
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{what} ({_holder(lock)}): {instead}") from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}))
        file.flush()
        yield


@contextmanager
def alone_on(database: Path | None) -> Iterator[None]:
    """Let no second `run` work on the same SQLite file; None: another kind of database, which takes many.

    Raises:
        InputError: there is another run; the message names it.
    """
    if database is None or not os.access(database.absolute().parent, os.W_OK):
        yield  # what is wrong with a folder is said where the database is opened
        return
    what, instead = (
        f"another `reviewloop run` works on {database}",
        "end it, or name another database with --db",
    )
    with held(database.with_name(f"{database.name}.run"), what, instead):
        yield


def alone_in(folder: Path) -> AbstractContextManager[None]:
    """Let no second cluster work in a folder.

    Raises:
        InputError: as `held`.
    """
    return held(
        folder / "lock",
        f"another command works with {folder}",
        "end it, or name another folder with --data",
    )


def refuse_busy(folder: Path) -> None:
    """Refuse a folder in which a cluster works, before anything else is looked at; nothing is made.

    Raises:
        InputError: as `held`.
    """
    if (folder / "lock").exists():
        with alone_in(folder):
            pass


def _holder(lock: Path) -> str:
    try:
        told = json.loads(lock.read_text("utf-8"))
        return f"process {told['pid']}, since {told['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return f"it holds {lock}"
