"""The pulse of a process: a file its own loop writes every few seconds, and a check that ends it where this stopped.

    python -m app.run.cluster.pulse FILE --within SECONDS [--end]

The check exits 0 while the last beat is younger than so many seconds, else 1. With `--end` it also kills the process,
so that whoever keeps it running starts it anew: one that is frozen, or whose loop is held, can't end itself. A
container runs it every few seconds (docker-compose.yml), so it needs the standard library only. Linux only.
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
        file: where to; its folder must be there. Empty: nowhere.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file) if file else None
        self._process = f"{os.getpid()} {started(os.getpid())}" if file else ""

    def beat(self) -> None:
        """Say that this process is alive. Where the file can't be written it is logged, and counts as silence."""
        if self._file is None:
            return
        # Replaced whole: who reads it never sees half a line. The clock is the machine's, and is never set.
        part = self._file.with_name(f"{self._file.name}.part")
        try:
            part.write_text(f"{self._process} {time.monotonic()}\n")
            part.replace(self._file)
        except OSError as error:
            log.warning("the pulse can't be written: %s", error)


class PoolPulse:
    """Beats on a pool's threads: it stops where all of them are held. A context manager.

    Args:
        pulse: of this process.
        pool: asked every `EVERY_S`.
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
        pid: of the process.
        start: when it started, as `started` tells: another process may get its number.
        at_s: when it beat, by the machine's clock that is never set (`time.monotonic`).
    """

    pid: int
    start: str
    at_s: float

    def silent_s(self, now_s: float) -> float:
        """Seconds since it; infinite where it was written before the machine started."""
        return now_s - self.at_s if now_s >= self.at_s else inf

    def kill(self) -> bool:
        """Kill the process, if it is still the one that wrote it; False where that one is gone."""
        if started(self.pid) != self.start:
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True


def last_beat(file: Path) -> Beat:
    """The beat in a file. Raises ValueError where there is none."""
    try:
        pid, start, at_s = file.read_text().split()
        return Beat(int(pid), start, float(at_s))
    except FileNotFoundError:
        raise ValueError(f"{file}: no process has written its pulse there yet") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} holds no pulse: {error}") from None


def started(pid: int) -> str:
    """Return when a process started, in ticks since the machine did; empty if it is gone."""
    return _stat(pid, 22)


def is_stopped(pid: int) -> bool:
    """Return True if a process is stopped (SIGSTOP) or held by a debugger; one that waits is neither."""
    return _stat(pid, 3) in ("T", "t")


def _stat(pid: int, field: int) -> str:
    """Return a field of /proc/PID/stat, numbered as in proc(5); empty if the process is gone."""
    try:
        # Field 2, the name, may hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[field - 3]
    except OSError:
        return ""


def main() -> None:
    """Check a pulse by the command line."""
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
