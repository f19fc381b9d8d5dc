"""Commands of a run as processes whose CPU time is measured, and which never outlive the bench."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.run.cluster import processes
from app.run.cluster.processes import Program, last_lines
from research.tools.meter import BenchError, cpu_s

_LOOK_S = 0.25
_READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        status: exit status; negative: the number of the signal that ended it.
        cpu_s: user and system time of it and of its descendants.
        cpu_at: moments and the CPU seconds used by then, every quarter of a second.
    """

    status: int
    cpu_s: float
    cpu_at: tuple[tuple[datetime, float], ...]

    def cpu_before(self, moment: datetime) -> float:
        """Return the CPU seconds it had used at a moment."""
        return max((used for at, used in self.cpu_at if at <= moment), default=0.0)


class Command:
    """A `reviewloop` command that runs; its output is in the log."""

    def __init__(self, process: processes.Child, program: Program) -> None:
        self._process, self._program = process, program

    def cpu_s(self) -> float:
        """Return the CPU seconds so far, with those of its descendants."""
        return cpu_s(self._process.pid)

    def ready(self) -> str:
        """Wait for the line of JSON that it prints when it is ready, and return it. Raises BenchError if there is none."""
        end_s = time.monotonic() + _READY_S
        while self._process.poll() is None and time.monotonic() < end_s:
            for line in self._program.log.read_text("utf-8", "replace").splitlines(keepends=True):
                if line.startswith("{") and line.endswith("\n"):
                    return line
            time.sleep(_LOOK_S / 10)
        raise BenchError(f"{self._program.name} did not start: {last_lines(self._program.log)}")

    def wait(self, seconds: float) -> Ended:
        """Wait for its end; after `seconds` it is asked to end (SIGINT), and killed if that does not help."""
        end_s = time.monotonic() + seconds
        samples = []
        while not (over := self._is_over()) and time.monotonic() < end_s:
            samples.append((datetime.now(UTC), self.cpu_s()))
            time.sleep(min(_LOOK_S, max(0.0, end_s - time.monotonic())))
        used = self.cpu_s()
        if not over:
            processes.stop([(self._program, self._process)])
        return Ended(self._process.wait(), used, tuple(samples))

    def _is_over(self) -> bool:
        """Return True if the process ended. It is not reaped: its CPU time can still be read."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self._process.returncode is not None or os.waitid(os.P_PID, self._process.pid, how) is not None


@contextmanager
def command(arguments: Sequence[str], log: Path) -> Iterator[Command]:
    """Run `reviewloop ARGUMENTS`. It ends with the context, or with this process.

    Args:
        log: file for its output.
    """
    program = Program(
        name=f"reviewloop {arguments[0]}",
        command=[sys.executable, "-m", "app", *arguments],
        log=log,
        stop_signal=signal.SIGINT,
    )
    process = processes.start(program)
    try:
        yield Command(process, program)
    finally:
        processes.stop([(program, process)])
