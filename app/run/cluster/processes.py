"""Child processes that end with their parent; in groups of their own, so that a terminal's Ctrl-C is ours alone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to be kept running.

    Attributes:
        log: file its output is added to.
        environment: None: this process's own.
        stop_signal: asks it to end in order; it gets the same one where the parent is killed (Linux).
        stop_s: what it may take for that; then it is killed.
        user: the account it runs under; None: this process's own.
        pulse: file of its pulse (`app.run.cluster.pulse`); None: it has none.
        silent_s: silence of its pulse after which it is frozen or held.
    """

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_s: float = 20.0
    user: str | None = None
    pulse: Path | None = None
    silent_s: float = 60.0


def start(program: Program) -> subprocess.Popen[bytes]:
    """Start a program. From the main thread only: on Linux a child ends with the thread that made it."""
    with program.log.open("ab") as log:
        return subprocess.Popen(
            list(program.command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=program.environment,
            process_group=0,
            preexec_fn=_end_with_parent(program.stop_signal),
            **account(program.user),
        )


def stop(running: Sequence[tuple[Program, subprocess.Popen[bytes]]]) -> list[str]:
    """Ask all of them to end, wait, and kill those that don't; returns the names of these."""
    for program, process in running:
        if process.poll() is None:
            process.send_signal(program.stop_signal)
    began = time.monotonic()
    killed = []
    for program, process in running:
        try:
            process.wait(timeout=max(0.0, began + program.stop_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed.append(program.name)
    return killed


def last_lines(log: Path) -> str:
    """The last 15 lines of a program's log, for messages."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
    except OSError:
        return ""


def account(user: str | None) -> dict[str, Any]:
    """Arguments of Popen that run a child under an account, without any right of ours; None: our own."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": ()}


def _end_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """A function that the child runs before it becomes the program; None where the system has no such thing."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def run() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # killed in between
            os._exit(1)

    return run
