"""The process that reads answers which may take long. It does one job at a time, and may be killed during any of them.

It ends by itself if its parent is gone or has closed the connection, after a minute without a job, after a thousand
jobs, and during a job that takes more CPU time than its parent allows. CPU time, because an ordinary page takes many
times as long on a busy machine. It starts without an environment, so that it holds no secret. The rules that it learns
from sites end with it.
"""

from __future__ import annotations

import logging
import os
import pickle
import resource
import select
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from splitter.errors import CatalogError, Message

from tasks.domain.failures import FetchError
from tasks.reading.judge.theme_file import IN_FORCE
from tasks.reading.learned_rules import LearnedRules
from tasks.reading.page_jobs import PageJob, run, unreadable

LENGTH = struct.Struct(">Q")
"""Length in bytes before each message."""
READY = b"+"
"""Sent once, when jobs may come."""
_IDLE_S = 60.0
_LOOK_S = 2.0
_MAX_JOBS = 1000
_MAX_MEMORY = 2 << 30

log = logging.getLogger("reviewloop.reading")


def main(themes: str | None = None) -> None:
    """Do the jobs that come over standard input, which is a socket; answers go back the same way.

    Args:
        themes: path of the themes file; `None`: the one that comes with the project.
    """
    parent = os.getppid()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    learned = LearnedRules()
    if themes is not None:
        try:
            IN_FORCE.use(Path(themes), is_optional=True)
        except CatalogError as error:
            log.warning("the themes file is wrong, the project's own themes stay in force: %s", error)
    with (
        suppress(ConnectionError),
        socket.socket(fileno=0) as connection,
    ):  # the parent may be killed at any time
        connection.sendall(READY)
        for _ in range(_MAX_JOBS):
            if not _wait_for_job(connection, parent):
                return
            message = receive(connection)
            if message is None:
                return
            patience_s, job = pickle.loads(message)
            if isinstance(job, PageJob):
                job = replace(job, read_thread=learned.read_thread_page)
            # At its end the kernel kills this process, whatever it is doing, even if no parent is left.
            signal.setitimer(signal.ITIMER_PROF, patience_s)
            answer = pickle.dumps(_outcome(job), pickle.HIGHEST_PROTOCOL)
            signal.setitimer(signal.ITIMER_PROF, 0)
            send(connection, answer)


def _outcome(job: Any) -> tuple[bool, Any]:
    """Return (True, result), or (False, class and detail of the error)."""
    try:
        return True, run(job)
    except FetchError as error:
        return False, (error.error, error.problem)
    except MemoryError:
        outcome = unreadable(Message("reading it takes more than {n} MB", n=_MAX_MEMORY >> 20))
        return False, (outcome.error, outcome.problem)


def _wait_for_job(connection: socket.socket, parent: int) -> bool:
    """Return True when a job comes, False if none will."""
    for _ in range(int(_IDLE_S / _LOOK_S)):
        if select.select([connection], [], [], _LOOK_S)[0]:
            return True
        if os.getppid() != parent:
            return False
    return False


def send(connection: socket.socket, message: bytes) -> None:
    """Send one message."""
    connection.sendall(LENGTH.pack(len(message)))
    connection.sendall(message)


def receive(connection: socket.socket) -> bytes | None:
    """Return one message; `None` if the other end has closed."""
    head = _receive_exactly(connection, LENGTH.size)
    return None if head is None else _receive_exactly(connection, LENGTH.unpack(head)[0])


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(1 << 20, size - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)
