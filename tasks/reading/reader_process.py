"""The process that reads what may take long. It does one job after the other, and may be ended in any of them.

It ends by itself: when its parent is gone or has closed the connection, when it was idle for a minute, after a thousand
jobs, and in the middle of a job that takes longer than its parent would wait. It is started without an environment, so
that it holds no secret.
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
from typing import Any

from tasks.domain.failures import FetchError
from tasks.reading.page_jobs import done, unreadable

LENGTH = struct.Struct(">Q")
"""Before each message, its length in bytes."""
READY = b"+"
"""Sent once, when jobs may come."""
_IDLE_S = 60.0
_LOOK_S = 2.0
_MOST_JOBS = 1000
_MOST_MEMORY = 2 << 30


def main() -> None:
    """Do the jobs that come over standard input, which is a socket; answers go back the same way."""
    parent = os.getppid()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    with socket.socket(fileno=0) as connection:
        connection.sendall(READY)
        for _ in range(_MOST_JOBS):
            if not _comes(connection, parent):
                return
            message = received(connection)
            if message is None:
                return
            patience_s, job = pickle.loads(message)
            # The kernel ends this process then, whatever it is in the midst of, and whether or not anybody is left to.
            signal.setitimer(signal.ITIMER_REAL, 1.2 * patience_s)
            answer = pickle.dumps(_outcome(job), pickle.HIGHEST_PROTOCOL)
            signal.setitimer(signal.ITIMER_REAL, 0)
            send(connection, answer)


def _outcome(job: Any) -> tuple[bool, Any]:
    """(True, what was read), or (False, class and detail of the error)."""
    try:
        return True, done(job, apart=True)
    except FetchError as error:
        return False, (error.error, error.detail)
    except MemoryError:
        outcome = unreadable(f"reading it takes more than {_MOST_MEMORY >> 20} MB")
        return False, (outcome.error, outcome.detail)


def _comes(connection: socket.socket, parent: int) -> bool:
    """Wait for a job; False where none will come."""
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


def received(connection: socket.socket) -> bytes | None:
    """One message; None where the other end has closed."""
    head = _exactly(connection, LENGTH.size)
    return None if head is None else _exactly(connection, LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(1 << 20, size - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)
