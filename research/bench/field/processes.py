"""Processes of a bench whose CPU time is measured one by one, and which never outlive it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from app.run.version import ROOT

_LOOK_S = 0.5
_GRACE_S = 20.0
"""After SIGINT a process has so long to end well."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        status: exit status; negative: the number of the signal that ended it.
        cpu_s: user and system time of it and of the children it waited for (getrusage).
        cpu_at: moments and the CPU seconds used by then, about every half second, ascending.
        in_time: False where it had to be told to end.
    """

    status: int
    cpu_s: float
    cpu_at: tuple[tuple[datetime, float], ...]
    in_time: bool

    def cpu_before(self, moment: datetime) -> float:
        """CPU seconds it had used at a moment, as far as was looked."""
        return max((used for at, used in self.cpu_at if at <= moment), default=0.0)


class CommandProcess:
    """A `reviewloop` command in a process group of its own."""

    def __init__(self, arguments: Sequence[str], output: IO[bytes] | int, errors: IO[bytes]) -> None:
        """Start `reviewloop ARGUMENTS`."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        self._cpu_at: list[tuple[datetime, float]] = []
        self._ended: Ended | None = None

    def first_line(self) -> str:
        """The first line it prints; empty where it ends without one."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def wait(self, seconds: float) -> Ended:
        """Wait so long for its end, then ask for it: SIGINT, and SIGKILL if that does not help."""
        if self._ended is not None:
            return self._ended
        in_time = self._over(seconds)
        if not in_time:
            self._process.send_signal(signal.SIGINT)
            if not self._over(_GRACE_S):
                self._process.kill()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        with suppress(ProcessLookupError):
            # What it may have left behind.
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._ended = Ended(
            self._process.returncode, usage.ru_utime + usage.ru_stime, tuple(self._cpu_at), in_time
        )
        return self._ended

    def _over(self, seconds: float) -> bool:
        """Whether it ends within so many seconds; looks at its CPU time meanwhile."""
        until_s = time.monotonic() + seconds
        watched = os.pidfd_open(self._process.pid)
        try:
            while not select.select([watched], [], [], max(0.0, min(_LOOK_S, until_s - time.monotonic())))[0]:
                if time.monotonic() >= until_s:
                    return False
                self._cpu_at.append((datetime.now(UTC), self.cpu_s()))
            return True
        finally:
            os.close(watched)

    def cpu_s(self) -> float:
        """User and system time so far: fields 14 and 15 of proc(5), after the name in parentheses."""
        fields = (
            Path(f"/proc/{self._process.pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM leaves the block as an exception, so that what was started within it is ended; in a main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def command(arguments: Sequence[str], log: Path, *, piped: bool = False) -> Iterator[CommandProcess]:
    """A `reviewloop` command that ends with the context at the latest.

    Args:
        log: file for what it says on standard error, and on standard output if that is not piped.
        piped: standard output can be read with `CommandProcess.first_line`.
    """
    with log.open("wb") as errors:
        process = CommandProcess(arguments, subprocess.PIPE if piped else errors, errors)
        try:
            yield process
        finally:
            process.wait(0)
