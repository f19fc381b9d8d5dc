"""The log of requests: one JSON line for each that was sent, written by a thread.

The event loop only adds to a queue. A file that can't be written to (a full disk) is logged once; crawling goes on.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit, urlunsplit

from tasks.domain.failures import error_class

log = logging.getLogger("reviewloop.requests")

MOST_BYTES = 64_000_000
"""Maximum size of a file. Then it becomes FILE.1, replacing the previous one, and a new file begins."""

MOST_QUEUED = 50_000
"""Maximum number of lines that wait to be written. Further ones are counted and dropped."""

_EVERY_S = 0.5
_CLOSE_S = 10.0
_SECRET = (
    "token", "secret", "passw", "pwd", "signature", "session", "auth", "apikey", "api_key", "appkey", "accesskey",
    "access_key", "ticket", "cookie",
)  # fmt: skip
_SECRET_NAMES = frozenset({"sign", "sig", "sid"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request that was sent.

    Attributes:
        at: time of its answer or failure.
        node: name of the node; its address if it asks outside an attempt.
        status: 0: it was not answered.
        size: bytes of the body, decompressed.
        error: why there was no whole answer; empty: there was one.
        subtask, attempt: that it belongs to; 0: none (robots.txt, before there is a task).
    """

    at: datetime
    node: str
    site: str
    host: str
    url: str
    status: int
    size: int
    seconds: float
    error: str
    subtask: int
    attempt: int

    @property
    def outcome(self) -> str:
        """Return the outcome in one word: ok, redirect, unchanged, or the class of the error."""
        if self.error or self.status < 300:
            return self.error or "ok"
        if self.status < 400:
            return "unchanged" if self.status == 304 else "redirect"
        return str(error_class(self.status))

    def line(self) -> str:
        """Return the record as a line of JSON."""
        fields = {
            "time": self.at.isoformat(timespec="milliseconds"),
            "node": self.node,
            "site": self.site,
            "host": self.host,
            "url": hide_secrets(self.url),
            "status": self.status or None,
            "bytes": self.size,
            "seconds": round(self.seconds, 4),
            "outcome": self.outcome,
            "subtask": self.subtask or None,
            "attempt": self.attempt or None,
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


class RequestLog:
    """Writes requests to a file. `note` belongs to one event loop.

    Args:
        path: of the file, which only its owner may read.

    Raises:
        OSError: the file can't be opened.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._waiting: deque[RequestRecord] = deque()
        self._lost = 0
        self._failing = False
        self._file: int | None = _open(path)
        self._end = Event()
        self._thread = Thread(target=self._write_on, name="request-log", daemon=True)
        self._thread.start()

    def note(self, sent: RequestRecord) -> None:
        """A request was sent, and answered or not."""
        if len(self._waiting) < MOST_QUEUED:
            self._waiting.append(sent)
        else:
            self._lost += 1

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._end.set()
        self._thread.join(_CLOSE_S)

    def _write_on(self) -> None:
        while not self._end.wait(_EVERY_S):
            self.flush()
        self.flush()
        if self._file is not None:
            os.close(self._file)

    def flush(self) -> None:
        """Write the queued lines. The thread calls this."""
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not taken:
            return
        data = "".join(one.line() for one in taken).encode("utf-8", "replace")
        try:
            if self._file is None:
                self._file = _open(self._path)
            if os.fstat(self._file).st_size >= self._most_bytes:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                os.close(self._file)
                self._file = None
                self._file = _open(self._path)
            _write_all(self._file, data)
        except OSError as error:
            self._lost += len(taken)
            if not self._failing:
                log.warning(
                    "requests are not logged now: %s: %s; crawling goes on", self._path, error.strerror
                )
            self._failing = True
            return
        if self._lost:
            log.warning("requests are logged again; %d lines are missing", self._lost)
        self._failing, self._lost = False, 0


def _open(path: Path) -> int:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.fchmod(file, 0o600)
    return file


def _write_all(file: int, data: bytes) -> None:
    """Write all of it, or nothing."""
    before = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, before)
        raise


def hide_secrets(url: str) -> str:
    """A URL without user and password, and without the values of parameters that are named like a secret."""
    parts = urlsplit(url)
    query = "&".join(_harmless(pair) for pair in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def _harmless(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    plain = name.lower()
    secret = plain in _SECRET_NAMES or any(word in plain for word in _SECRET)
    return f"{name}=***" if equals and secret else pair
