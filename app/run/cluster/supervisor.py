"""Run and supervise a real cluster on one machine: servers, scheduler, beat and a Celery worker process per node.

One thread starts all processes, because a child ends with the thread that made it (`app.run.cluster.processes`).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import FrameType

from app.run.cluster import processes
from app.run.cluster.processes import Child, Program, last_lines
from app.run.cluster.pulse import is_stopped, last_beat
from app.run.cluster.servers import POSTGRES, PostgresServer, RedisServer
from app.run.open_store import check_cluster, hold_folder, servers_answer, try_redis
from app.run.process import Until
from app.run.setting_fields import Settings
from app.run.version import DEFAULT_DATABASE
from app.views.words import describe, translate
from splitter.errors import ReviewloopError
from tasks.domain.backoff import backoff_s
from tasks.domain.errors import StoreFailed, StoreUnavailable
from tasks.store.queries.queues import get_mark
from tasks.store.queue import snapshot
from tasks.store.queue.nodes import Node, set_addresses
from tasks.store.queue.upkeep import note_start
from tasks.store.sql.database import Store

_CHECK_EVERY_S = 0.5
_WATCH_EVERY_S = 1.0
_WATCH_SETTLED_EVERY_S = 5.0
_START_S = 60.0
# A program that runs this long has started. One that ends earlier five times in a row, although its servers answer,
# never will.
_CAME_UP_S = 10.0
_GIVE_UP_AFTER = 5
_BACKOFF_S, _BACKOFF_MOST_S = 0.5, 4.0
# Tracers (strace, py-spy) stop a process for a shorter time.
_STOPPED_S = 5.0

Say = Callable[[str], None]


class ClusterFailed(ReviewloopError):
    """A program of the cluster ended several times in a row. The message quotes the end of its log."""


@dataclass(slots=True)
class _Child:
    """A program and its process. Times are seconds of the supervisor's clock.

    Attributes:
        early_ends: how often in a row the program ended soon after its start.
        failures: how many of the early ends happened while the servers answered, so that the program is at fault.
        killed: True if the supervisor killed the process.
        stopped_at: time at which the process was first seen stopped by SIGSTOP; `None` if it is not stopped.
        again_at: time of the next start, infinite if the program will not start again; `None` while it runs.
    """

    program: Program
    process: Child
    started_at: float
    early_ends: int = 0
    failures: int = 0
    killed: bool = False
    stopped_at: float | None = None
    again_at: float | None = None


class Supervisor:
    """Keeps programs running. Only the main thread may use it.

    Args:
        servers_answer: returns True if the servers that the programs need answer now.
    """

    def __init__(
        self,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
        servers_answer: Callable[[], bool] = lambda: True,
    ) -> None:
        self._say = say
        self._clock = clock
        self._servers_answer = servers_answer
        self._children: dict[str, _Child] = {}
        self._away_at = -inf

    def start(self, program: Program) -> None:
        """Start a program and keep it running."""
        self._children[program.name] = _Child(program, processes.start(program), self._clock())

    def pid(self, name: str) -> int | None:
        """Return the id of a program's process, or None if the program does not run now."""
        process = self._children[name].process
        return process.pid if process.poll() is None else None

    def end_stopped(self, names: Sequence[str]) -> None:
        """Kill programs that have been stopped by SIGSTOP for a while, because they still hold leases and locks."""
        for child in map(self._children.__getitem__, names):
            if child.again_at is not None or not is_stopped(child.process.pid):
                child.stopped_at = None
                continue
            now = self._clock()
            child.stopped_at = now if child.stopped_at is None else child.stopped_at
            if now - child.stopped_at > _STOPPED_S:
                self._say(translate("{name} is stopped: it is killed", name=child.program.name))
                child.process.kill()
                child.killed = True

    def check(self) -> None:
        """Kill programs whose pulse is silent. Restart programs that have ended, after a growing delay.

        Raises:
            ClusterFailed: a program that is needed ended too often.
        """
        for child in self._children.values():
            self._kill_silent(child)
            if child.again_at is None and child.process.poll() is not None:
                self._plan_restart(child)
            elif child.again_at is not None and self._clock() >= child.again_at:
                child.process, child.started_at = processes.start(child.program), self._clock()
                child.killed, child.stopped_at, child.again_at = False, None, None

    def _kill_silent(self, child: _Child) -> None:
        """Kill a program whose pulse is silent, unless the servers don't answer: it may be waiting for them."""
        if child.program.pulse is None or child.again_at is not None:
            return
        try:
            beat = last_beat(child.program.pulse)
        except ValueError:  # it starts
            return
        now, limit_s = self._clock(), child.program.silent_s
        silent_s = beat.silent_s(now)
        if min(silent_s, now - self._away_at) <= limit_s or beat.pid != child.process.pid:
            return
        if not self._servers_answer():
            self._away_at = self._clock()
        elif beat.kill():
            child.killed = True
            self._say(
                translate(
                    "{name} is silent for {s:.0f} s and was killed", name=child.program.name, s=silent_s
                )
            )

    def _plan_restart(self, child: _Child) -> None:
        now, program = self._clock(), child.program
        if child.killed or now - child.started_at >= _CAME_UP_S:
            child.early_ends = child.failures = 0
        else:
            child.failures += self._servers_answer()
        child.early_ends += 1
        status = _describe(child.process.returncode or 0)
        if child.failures >= _GIVE_UP_AFTER:
            failed = ClusterFailed(
                "{name} ended with {status}, {n} times in a row; its log {log} ends:\n{end}",
                name=program.name,
                status=status,
                n=child.failures,
                log=program.log,
                end=last_lines(program.log),
            )
            if program.needed:
                raise failed
            self._say("\n".join((describe(failed), translate("Everything else goes on without it."))))
            child.again_at = inf
            return
        delay_s = backoff_s(_BACKOFF_S, child.early_ends, _BACKOFF_MOST_S)
        child.again_at = now + delay_s
        self._say(
            translate(
                "{name} ended with {status}; started again in {delay_s:g} s (log: {log})",
                name=program.name,
                status=status,
                delay_s=delay_s,
                log=program.log,
            )
        )

    def stop(self, names: Sequence[str]) -> None:
        """Ask all these programs to end, and don't restart them. Kill those that don't end in time."""
        running = [self._children.pop(name) for name in names if name in self._children]
        for name in processes.stop([(child.program, child.process) for child in running]):
            self._say(
                translate(
                    "{name} did not end in time and was killed: what it held is taken back by its lease",
                    name=name,
                )
            )


class Cluster:
    """A context manager that runs the servers of a cluster. Its method `run` runs the workers.

    Args:
        settings: if they name no PostgreSQL or Redis, the cluster starts its own.
        folder: folder for the servers' data and logs. Only one cluster at a time may use it.
        say: called with one line that a person should read.

    Attributes:
        settings: the settings with the URLs of the servers.
        supervisor: starts the servers and programs, and starts each again that ends.
        signalled: True after Ctrl-C, SIGTERM or SIGHUP.
    """

    def __init__(self, settings: Settings, folder: Path, say: Say) -> None:
        self.settings = settings
        self._folder = folder
        self._logs = folder / "logs"
        self._say = say
        self.supervisor = Supervisor(say, servers_answer=lambda: servers_answer(self.settings))
        self._stack = ExitStack()
        self.signalled = False

    def __enter__(self) -> Cluster:
        """Start the servers. Raises InputError or ServerFailed."""
        with ExitStack() as stack:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._logs.mkdir(exist_ok=True)
            stack.enter_context(hold_folder(self._folder))
            stack.enter_context(self._signals())
            processes.import_for_forks()
            if self.settings.database_url == DEFAULT_DATABASE:
                postgres = PostgresServer(self._folder / POSTGRES, self.log("postgres"), self._say)
                self.settings = self.settings.replace(database_url=self._serve(stack, postgres))
            if not self.settings.redis_url:
                redis = RedisServer(self._folder / "redis", self.log("redis"))
                self.settings = self.settings.replace(redis_url=self._serve(stack, redis))
            check_cluster(self.settings)
            if (silent := try_redis(self.settings)) is not None:
                self._say(translate("{problem}. New work waits until it answers.", problem=silent))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the servers; their data stays."""
        self._stack.close()

    def run(
        self,
        store: Store,
        nodes: Sequence[Node],
        until: Until,
        watch: Callable[[], None],
        others: Sequence[Program] = (),
    ) -> None:
        """Run the workers until the conditions `until` are met or a signal comes.

        At the end they give every lease back.

        Args:
            watch: called to show progress: about once a second, or every 5 s while all work is settled.
            others: programs that run and end together with the workers.

        Raises:
            ClusterFailed: a program that is needed ended several times in a row.
        """
        with store.begin() as tx:
            set_addresses(tx, nodes)
            note_start(tx)
        started = [
            processes.control_program(self.settings, self.log("control")),
            processes.beat_program(self.settings, self.log("beat")),
            *(processes.node_program(node, self.settings, self.log(node.name)) for node in nodes),
            *others,
        ]
        names = [program.name for program in started]
        self._attempts_before: int | None = None  # the number of the last one before this run
        self._counts_from_s = time.monotonic() + _START_S
        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(self._is_settled, store, watch)
            watch_at = time.monotonic() + _WATCH_EVERY_S
            try:
                for program in started:
                    self.supervisor.start(program)
                while not self.signalled and not self._is_over(until):
                    self.supervisor.check()
                    self.supervisor.end_stopped(names)
                    if watching.done() and time.monotonic() >= watch_at:
                        is_settled = watching.result()
                        if is_settled and until.done:
                            break
                        watching = pool.submit(self._is_settled, store, watch)
                        watch_at = time.monotonic() + (
                            _WATCH_SETTLED_EVERY_S if is_settled else _WATCH_EVERY_S
                        )
                    time.sleep(_CHECK_EVERY_S)
            finally:
                self.supervisor.stop(names)
        with suppress(StoreFailed), store.begin() as tx:
            note_start(tx, over=True)

    def _is_over(self, until: Until) -> bool:
        """Return True if the run's time is over.

        It starts with the first attempt, if one begins soon after the start.
        """
        return until.seconds is not None and time.monotonic() >= self._counts_from_s + until.seconds

    def _is_settled(self, store: Store, watch: Callable[[], None]) -> bool:
        """Show progress, and return True if all work is settled.

        Call it on a separate thread, because it blocks while the database does not answer.
        """
        try:
            watch()
            with store.read() as tx:
                attempt_id = get_mark(tx).attempt_id
                if self._attempts_before is None:
                    self._attempts_before = attempt_id
                if attempt_id > self._attempts_before:
                    self._counts_from_s = min(self._counts_from_s, time.monotonic())
                return snapshot.all_settled(tx, self.settings.only_sites)
        except StoreUnavailable:
            return False

    def _serve(self, stack: ExitStack, server: PostgresServer | RedisServer) -> str:
        """Start a server, which runs until the stack is closed. Return the server's URL."""
        name = server.program.name
        stack.callback(server.clean_up)
        server.prepare()
        self.supervisor.start(server.program)
        stack.callback(self.supervisor.stop, [name])
        server.wait(lambda: self.supervisor.pid(name) is not None)
        return server.url

    def log(self, name: str) -> Path:
        """Return the path of a new log file for a program. The log of the run before gets the ending .log.1."""
        log = self._logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        return log

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let Ctrl-C, SIGTERM and a closed terminal end `run` in an orderly way."""

        def note(_number: int, _frame: FrameType | None) -> None:
            self.signalled = True

        before = {
            number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _describe(status: int) -> str:
    return translate("status {n}", n=status) if status >= 0 else signal.Signals(-status).name
