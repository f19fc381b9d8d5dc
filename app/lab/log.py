"""The request log of the lab: one line per request, in the order of the answers.

Requests for the lab's own pages are not logged, nor is anything that is not HTTP (the server refuses it with 400).
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TextIO

MAX_ENTRIES = 200_000
"""Maximum number of requests in memory. A log file has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A logged request, with its answer.

    Attributes:
        t: Time of arrival in seconds of the lab's time (monotonic).
        client: Source address.
        host: Host of the request in lower case without port.
        path: Path with query string.
        status: Status of the answer, or 0 if there was none.
        outcome: A `LabAnswer`, an outcome of a sign-in server, or robots, favicon, login, unknown_host, bad_method,
            client_gone.
        bytes: Size of the body that was sent.
        tried: Number of this request among those for its URL, from 1. Zero if they are not counted.
    """

    t: float
    client: str
    host: str
    path: str
    status: int
    outcome: str
    bytes: int
    tried: int = 0


class LabLog:
    """The log in memory, and optionally in a file. Any thread may read it.

    Attributes:
        started: System time at which the lab's time was zero.
    """

    def __init__(self, started: datetime, path: Path | None = None) -> None:
        self.started = started
        self._lock = Lock()
        self._entries: deque[LogEntry] = deque(maxlen=MAX_ENTRIES)
        # Buffer single lines, so that a killed lab leaves every request in the file whose answer a client has seen.
        self._file: TextIO | None = path.open("w", encoding="utf-8", buffering=1) if path else None

    def add(self, entry: LogEntry) -> None:
        """Add a request.

        Call it before the last byte of the answer is sent, so that a client finds its request in the log.
        """
        with self._lock:
            self._entries.append(entry)
        if self._file:
            self._file.write(self.line(entry))

    def entries(self) -> tuple[LogEntry, ...]:
        """Return the last `MAX_ENTRIES` requests."""
        with self._lock:
            return tuple(self._entries)

    def line(self, entry: LogEntry) -> str:
        """Return an entry as a line of JSON. It contains the lab's time and the system time."""
        wall = (self.started + timedelta(seconds=entry.t)).isoformat()
        return json.dumps({"t": 0, "wall": wall} | asdict(entry) | {"t": round(entry.t, 6)}) + "\n"

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file:
            self._file.close()
            self._file = None
