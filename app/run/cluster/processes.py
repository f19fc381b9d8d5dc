"""Child processes, and the programs of a cluster on one machine: control worker, beat, crawl nodes, dashboard.

Children end when their parent ends. They are in process groups of their own, so only the parent gets Ctrl-C.

On Linux the Celery programs are forks of one process, which has imported their modules (`app.run.cluster.preloaded`).
A separate program would need more than a second of CPU for imports, and 60 MB of memory that forks share.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, get_context
from pathlib import Path
from runpy import run_module
from typing import Any

from app.run.nodes import own_settings
from app.run.setting_fields import Settings
from app.run.settings import as_environment, use_environment
from tasks.jobs.queues import CONTROL, crawl_queue
from tasks.store.queue.nodes import Node

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_FORKS = get_context("forkserver") if sys.platform == "linux" else None
_CONTROL_THREADS = 2
_NODE_SILENT_S = 60.0
# A long sweep (reposts, run times) may occupy one thread, a slow database the other.
_CONTROL_SILENT_S = 300.0
# Beat waits for a lost broker within its turn.
_BEAT_SILENT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that the supervisor keeps running.

    Attributes:
        log: file that the program's output is appended to.
        environment: environment variables of the program; `None` for those of this process.
        stop_signal: signal that asks the program to end. On Linux it also gets this signal if its parent is killed.
        stop_s: maximum seconds that the program may take to end before it is killed.
        user: account that the program runs under; `None` for the account of this process.
        pulse: file that the program writes as its pulse (`app.run.cluster.pulse`), if it has one.
        silent_s: seconds without a beat of its pulse after which the program counts as blocked.
        forked: True if the command is `python -m MODULE ARGUMENT...`, so that it may be forked on Linux.
        needed: False if the cluster does its work without the program.
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
    forked: bool = False
    needed: bool = True


class Fork:
    """A forked program. It has those methods of `Popen` that the supervisor uses."""

    def __init__(self, program: Program) -> None:
        import_for_forks()
        assert _FORKS is not None
        # A daemon never outlives this process.
        self._process = _FORKS.Process(target=_become, args=(program,), daemon=True)
        self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        """The exit status, negative if a signal ended the program; `None` while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit status, or `None` while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the program has ended, and return its exit status. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal if the program runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program if it runs."""
        self.send_signal(signal.SIGKILL)


Child = subprocess.Popen[bytes] | Fork
"""The process of a program."""


def import_for_forks() -> None:
    """Start the process from which programs are forked, unless it runs. It imports modules while the servers start.

    Linux only.
    """
    if _FORKS is not None:
        # Without the main module, each fork would import it again.
        _FORKS.set_forkserver_preload(["__main__", "app.run.cluster.preloaded"])
        forkserver.ensure_running()


def end_with_parent(number: signal.Signals) -> None:
    """Let the kernel send this process a signal when its parent ends. Linux only."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


def _become(program: Program) -> None:
    """Run a program in this forked process, and never return."""
    os.setpgid(0, 0)
    end_with_parent(program.stop_signal)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, program.name.encode())  # what `ps` and `top` show
    with program.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    use_environment(program.environment or {})
    _, _, module, *arguments = program.command
    sys.argv[:] = [module, *arguments]
    run_module(module, run_name="__main__", alter_sys=True)


def start(program: Program) -> Child:
    """Start a program. Call it on the main thread: on Linux a child ends with the thread that made it."""
    if program.forked and _FORKS is not None:
        return Fork(program)
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


def stop(running: Sequence[tuple[Program, Child]]) -> list[str]:
    """Ask programs to end, wait, and kill those that don't end in time. Return the names of the killed programs."""
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
    """Return the last 15 lines of a program's log, for messages."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
    except OSError:
        return ""


def account(user: str | None) -> dict[str, Any]:
    """Return Popen arguments that run a child as `user`, without the privileges of this process; empty for `None`."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": ()}


def _end_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return a function that the child runs before it becomes the program, or None if the system is not Linux."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def run() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # killed in between
            os._exit(1)

    return run


def control_program(settings: Settings, log: Path, name: str = "control") -> Program:
    """Return the program of the control worker, which runs the sweeps; not started."""
    return _worker(name, CONTROL, _CONTROL_THREADS, settings, log, _CONTROL_SILENT_S)


def beat_program(settings: Settings, log: Path, name: str = "beat") -> Program:
    """Return Celery beat, which sends the sweeps."""
    return _celery(name, settings, log, _BEAT_SILENT_S, "beat")


def node_program(row: Node, settings: Settings, log: Path) -> Program:
    """Return a crawl node with the address, kinds and proxy of its row."""
    own = own_settings(settings, row)
    if own.request_log:  # a file has one writer
        shared = Path(own.request_log)
        own = own.replace(request_log=str(shared.with_stem(f"{shared.stem}.{row.name}")))
    return _worker(row.name, crawl_queue(row.name), row.slots, own, log, _NODE_SILENT_S)


def web_program(settings: Settings, log: Path, port: int) -> Program:
    """Return the dashboard. Only this machine can reach it."""
    command = [sys.executable, "-m", "app", "web", "--port", str(port)]
    environment = as_environment(settings)
    return Program(
        name="web", command=command, log=log, environment=environment, stop_s=5.0, forked=True, needed=False
    )


def _worker(name: str, queue: str, slots: int, settings: Settings, log: Path, silent_s: float) -> Program:
    return _celery(name, settings, log, silent_s, "worker", name, queue, str(slots))


def _celery(name: str, settings: Settings, log: Path, silent_s: float, *arguments: str) -> Program:
    command = [sys.executable, "-m", "app.celery", *arguments]
    pulse = log.with_suffix(".pulse")
    environment = as_environment(settings.replace(pulse_file=str(pulse.resolve())))
    return Program(
        name=name,
        command=command,
        log=log,
        environment=environment,
        pulse=pulse,
        silent_s=silent_s,
        forked=True,
    )
