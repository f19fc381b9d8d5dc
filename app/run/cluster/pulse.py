"""The pulse of a process: a file that the process writes every few seconds. A check can end a silent process.

    python -m app.run.cluster.pulse FILE --within SECONDS [--end]

The check exits with 0 if the last beat is younger than SECONDS, else with 1. With `--end` it also kills the process, so
that its supervisor restarts it: a frozen or blocked process can't end itself. A container runs the
check every few seconds (docker-compose.yml), so it needs only the standard library. Linux only.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import Event, Thread
from typing import Self

log = logging.getLogger("reviewloop.pulse")

EVERY_S = 5.0
"""Seconds between two beats."""


class Pulse:
    """Writes the pulse of this process.

    Args:
        file: path in a folder that exists. If it is empty, no pulse is written.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file) if file else None
        self._process = f"{os.getpid()} {read_start(os.getpid())}" if file else ""

    def beat(self) -> None:
        """Record that this process is alive.

        If the file can't be written, log it; the process then counts as silent.
        """
        if self._file is None:
            return
        # The file is replaced, so that a reader never sees half a line. The monotonic clock can't be set.
        part = self._file.with_name(f"{self._file.name}.part")
        try:
            part.write_text(f"{self._process} {time.monotonic()}\n")
            part.replace(self._file)
        except OSError as error:
            log.warning("the pulse can't be written: %s", error)


class PoolPulse:
    """Writes the pulse from the threads of a pool every `EVERY_S`. A context manager.

    The pulse stops if all threads of the pool are blocked.
    """

    def __init__(self, pulse: Pulse, pool: Executor) -> None:
        self._pulse = pulse
        self._pool = pool
        self._end = Event()

    def __enter__(self) -> Self:
        Thread(target=self._live, name="reviewloop-pulse", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()

    def _live(self) -> None:
        try:
            while not self._end.is_set():
                self._pool.submit(self._pulse.beat).result()
                self._end.wait(EVERY_S)
        except RuntimeError:  # the pool is shut
            return


@dataclass(frozen=True, slots=True)
class Beat:
    """The last beat of a process.

    Attributes:
        start: start of the process, as `read_start` returns it. A later process may have the same number.
        at_s: time of the beat by `time.monotonic`.
    """

    pid: int
    start: str
    at_s: float

    def silent_s(self, now_s: float) -> float:
        """Return the seconds from the beat to `now_s`; infinity if the machine was restarted after the beat."""
        return now_s - self.at_s if now_s >= self.at_s else inf

    def kill(self) -> bool:
        """Kill the process that wrote the beat. Return False if that process is gone."""
        if read_start(self.pid) != self.start:
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True


def last_beat(file: Path) -> Beat:
    """Return the beat that a file contains. Raises ValueError if the file is missing or has another form."""
    try:
        pid, start, at_s = file.read_text().split()
        return Beat(int(pid), start, float(at_s))
    except FileNotFoundError:
        raise ValueError(f"{file}: no process has written its pulse there yet") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} holds no pulse: {error}") from None


def read_start(pid: int) -> str:
    """Return the start time of a process in ticks since the machine's start; empty if the process is gone."""
    return _stat(pid, 22)


def is_stopped(pid: int) -> bool:
    """Return True if a process is stopped by SIGSTOP or a debugger. A waiting process is not stopped."""
    return _stat(pid, 3) in ("T", "t")


def _stat(pid: int, field: int) -> str:
    """Return a field of /proc/PID/stat, numbered as in proc(5); empty if the process is gone."""
    try:
        # Field 2, the name, may contain blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[field - 3]
    except OSError:
        return ""


def main() -> None:
    """Check the pulse file that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--within", type=float, required=True, help="most seconds since the last beat")
    parser.add_argument("--end", action="store_true", help="kill a process that is silent for longer")
    given = parser.parse_args()
    try:
        beat = last_beat(given.file)
    except ValueError as error:
        sys.exit(str(error))
    silent_s = beat.silent_s(time.monotonic())
    if silent_s > given.within:
        killed = given.end and beat.kill()
        sys.exit(f"process {beat.pid} is silent for {silent_s:.0f} s{': killed' if killed else ''}")


if __name__ == "__main__":
    main()
