"""The lab's request log: one line for every request, in the order in which they were answered.

Left out: the lab's own pages, and what is not HTTP (the server refuses it with 400).
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TextIO

KEPT = 200_000
"""Requests kept in memory; a log file has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One request.

    Attributes:
        t: when it came, in seconds of the lab's time (monotonic).
        client: source address.
        host: as asked for, lower case, no port.
        path: path with query string.
        status: of the answer; 0 where there was none.
        outcome: a `profile.Answer`, or robots, favicon, login, unknown_host, bad_method, busy, client_gone.
        bytes: of the body sent.
        tried: number of this request among those for its URL, from 1; 0 where they are not counted.
    """

    t: float
    client: str
    host: str
    path: str
    status: int
    outcome: str
    bytes: int
    tried: int = 0


class RequestLog:
    """Entries in memory, and in a file if one is given. May be read from another thread."""

    def __init__(self, started: datetime, path: Path | None = None) -> None:
        """Open a log of a lab started at ``started``; a file there already is written anew."""
        self._started = started
        self._lock = Lock()
        self._entries: deque[LogEntry] = deque(maxlen=KEPT)
        # Line by line, so that what a client has seen answered is in the file even if the lab is killed.
        self._file: TextIO | None = path.open("w", encoding="utf-8", buffering=1) if path else None

    def add(self, entry: LogEntry) -> None:
        """Note a request; done before the last byte of the answer is sent."""
        with self._lock:
            self._entries.append(entry)
        if self._file:
            self._file.write(self.line(entry))

    def restart(self, started: datetime) -> None:
        """The lab's time begins only now, before its first entry."""
        self._started = started

    def entries(self) -> tuple[LogEntry, ...]:
        """The last `KEPT` requests."""
        with self._lock:
            return tuple(self._entries)

    def line(self, entry: LogEntry) -> str:
        """An entry as a line of JSON, with the wall time beside the lab's own."""
        wall = (self._started + timedelta(seconds=entry.t)).isoformat()
        line = {"t": round(entry.t, 6), "wall": wall, **{k: v for k, v in asdict(entry).items() if k != "t"}}
        return json.dumps(line) + "\n"

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file:
            self._file.close()
            self._file = None
