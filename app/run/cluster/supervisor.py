"""A real cluster on one machine: servers, scheduler, beat and one Celery worker process a node, watched and restarted.

One thread does it all: a child ends with the thread that made it (see `app.run.cluster.processes`).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from subprocess import Popen
from types import FrameType

from sqlalchemy.exc import DBAPIError

from app.run.cluster import processes, programs
from app.run.cluster.processes import Program, last_lines
from app.run.cluster.pulse import is_stopped, last_beat
from app.run.cluster.servers import POSTGRES, PostgresServer, RedisServer
from app.run.cluster.servers_needed import check, servers_answer
from app.run.held_file import alone_in
from app.run.setting_fields import Settings
from app.run.until import Until
from app.run.version import DEFAULT_DATABASE
from splitter.errors import ReviewloopError
from tasks.domain.backoff import backoff_s
from tasks.store.queue import snapshot
from tasks.store.queue.nodes import Node, set_addresses
from tasks.store.sql.database import Store
from tasks.store.sql.outages import is_outage

_CHECK_EVERY_S = 0.1
_WATCH_EVERY_S = 0.5
# A program that lives this long came up. One that ends earlier five times in a row, although its servers answer, never
# will.
_CAME_UP_S = 10.0
_GIVE_UP_AFTER = 5
_BACKOFF_S, _BACKOFF_MOST_S = 0.5, 4.0
# Longer than a tracer (strace, py-spy) stops a process for.
_STOPPED_S = 5.0

Say = Callable[[str], None]


class ClusterFailed(ReviewloopError):
    """A program of the cluster ends again and again; the message has the end of its log."""


@dataclass(slots=True)
class _Kept:
    """A program and its process.

    Attributes:
        early_ends: ends in a row soon after the start.
        failures: how many of these are the program's own fault, as its servers answered.
        killed: True if the supervisor killed the process.
        stopped_at: when the process was first seen stopped; None while it runs.
        again_at: when it is started again; None while it runs.
    """

    program: Program
    process: Popen[bytes]
    started_at: float
    early_ends: int = 0
    failures: int = 0
    killed: bool = False
    stopped_at: float | None = None
    again_at: float | None = None


class Supervisor:
    """Keeps programs running. Belongs to the main thread.

    Args:
        servers_answer: returns True if the servers that programs need answer now.
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
        self._kept: dict[str, _Kept] = {}
        self._away_at = -inf

    def start(self, program: Program) -> None:
        """Start a program and keep it running."""
        self._kept[program.name] = _Kept(program, processes.start(program), self._clock())

    def alive(self, name: str) -> bool:
        """Whether a program runs now."""
        return self._kept[name].process.poll() is None

    def pid(self, name: str) -> int | None:
        """The process of a program; None where it does not run now."""
        process = self._kept[name].process
        return process.pid if process.poll() is None else None

    def end_stopped(self, names: Sequence[str]) -> None:
        """Kill those of these programs that have been stopped for a while: they hold leases and locks."""
        for kept in map(self._kept.__getitem__, names):
            if kept.again_at is not None or not is_stopped(kept.process.pid):
                kept.stopped_at = None
                continue
            now = self._clock()
            kept.stopped_at = now if kept.stopped_at is None else kept.stopped_at
            if now - kept.stopped_at > _STOPPED_S:
                self._say(f"{kept.program.name} is stopped: it is killed")
                kept.process.kill()
                kept.killed = True

    def check(self) -> None:
        """Kill what is silent; start again what has ended, after a growing delay.

        Raises:
            ClusterFailed: that is no use.
        """
        for kept in self._kept.values():
            self._kill_silent(kept)
            if kept.again_at is None and kept.process.poll() is not None:
                self._plan_restart(kept)
            elif kept.again_at is not None and self._clock() >= kept.again_at:
                kept.process, kept.started_at = processes.start(kept.program), self._clock()
                kept.killed, kept.stopped_at, kept.again_at = False, None, None

    def _kill_silent(self, kept: _Kept) -> None:
        """Kill a program whose loop is held, unless it may be waiting for a server: it can't end itself."""
        if kept.program.pulse is None or kept.again_at is not None:
            return
        try:
            beat = last_beat(kept.program.pulse)
        except ValueError:  # it starts
            return
        now, limit_s = self._clock(), kept.program.silent_s
        silent_s = beat.silent_s(now)
        if min(silent_s, now - self._away_at) <= limit_s or beat.pid != kept.process.pid:
            return
        if not self._servers_answer():
            self._away_at = self._clock()
        elif beat.kill():
            kept.killed = True
            self._say(f"{kept.program.name} is silent for {silent_s:.0f} s and was killed")

    def _plan_restart(self, kept: _Kept) -> None:
        now, program = self._clock(), kept.program
        if kept.killed or now - kept.started_at >= _CAME_UP_S:
            kept.early_ends = kept.failures = 0
        else:
            kept.failures += self._servers_answer()
        kept.early_ends += 1
        status = f"{program.name} ended with {_how(kept.process.returncode)}"
        if kept.failures >= _GIVE_UP_AFTER:
            raise ClusterFailed(
                f"{status}, {kept.failures} times in a row; its log {program.log} ends:\n{last_lines(program.log)}"
            )
        delay_s = backoff_s(_BACKOFF_S, kept.early_ends, _BACKOFF_MOST_S)
        kept.again_at = now + delay_s
        self._say(f"{status}; started again in {delay_s:g} s (log: {program.log})")

    def stop(self, names: Sequence[str]) -> None:
        """End programs in order, all at once, and keep them no longer; kills what doesn't end."""
        running = [self._kept.pop(name) for name in names if name in self._kept]
        for name in processes.stop([(kept.program, kept.process) for kept in running]):
            self._say(f"{name} did not end in time and was killed: what it held is taken back by its lease")


class Cluster:
    """Servers for as long as the block runs, and in it `run` for the workers.

    Args:
        settings: a PostgreSQL or Redis not named there is started here.
        folder: for the data of such servers, and for logs. One cluster at a time.
        say: called with one line that a person should read.

    Attributes:
        settings: with the addresses of the servers.
        supervisor: keeps the servers running, and whatever else is started with it.
        signalled: True once Ctrl-C, SIGTERM or SIGHUP came.
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
        """Start the servers. Raises InputError, ServerFailed."""
        with ExitStack() as stack:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._logs.mkdir(exist_ok=True)
            stack.enter_context(alone_in(self._folder))
            stack.enter_context(self._signals())
            if self.settings.database_url == DEFAULT_DATABASE:
                postgres = PostgresServer(self._folder / POSTGRES, self.log("postgres"), self._say)
                self.settings = self.settings.with_(database_url=self._served(stack, postgres))
            if not self.settings.redis_url:
                redis = RedisServer(self._folder / "redis", self.log("redis"))
                self.settings = self.settings.with_(redis_url=self._served(stack, redis))
            check(self.settings)
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
        beside: Sequence[Program] = (),
    ) -> None:
        """Run the workers until `until` or a signal; then every lease is given back.

        Args:
            watch: called about twice a second, to show progress.
            beside: programs that run and end with the workers.

        Raises:
            ClusterFailed: a program ends again and again.
        """
        with store.begin() as conn:
            set_addresses(conn, nodes)
        started = [
            programs.control(self.settings, self.log("control")),
            programs.beat(self.settings, self.log("beat")),
            *(programs.node(node, self.settings, self.log(node.name)) for node in nodes),
            *beside,
        ]
        names = [program.name for program in started]
        end_at = None if until.seconds is None else time.monotonic() + until.seconds
        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(self._is_settled, store, watch)
            watch_at = time.monotonic() + _WATCH_EVERY_S
            try:
                for program in started:
                    self.supervisor.start(program)
                while not self.signalled and (end_at is None or time.monotonic() < end_at):
                    self.supervisor.check()
                    self.supervisor.end_stopped(names)
                    if watching.done() and time.monotonic() >= watch_at:
                        if watching.result() and until.done:
                            break
                        watching = pool.submit(self._is_settled, store, watch)
                        watch_at = time.monotonic() + _WATCH_EVERY_S
                    time.sleep(_CHECK_EVERY_S)
            finally:
                self.supervisor.stop(names)

    def _is_settled(self, store: Store, watch: Callable[[], None]) -> bool:
        """Show progress, and return True if all is settled.

        It runs in a thread of its own, since a database that is away holds it for a while. That is no reason to end.
        """
        try:
            watch()
            with store.read() as conn:
                return snapshot.all_settled(conn)
        except DBAPIError as error:
            if not is_outage(error):
                raise
            return False

    def _served(self, stack: ExitStack, server: PostgresServer | RedisServer) -> str:
        """Serve for as long as the stack is open; returns the server's address."""
        name = server.program.name
        stack.callback(server.clean_up)
        server.prepare()
        self.supervisor.start(server.program)
        stack.callback(self.supervisor.stop, [name])
        server.wait(lambda: self.supervisor.alive(name))
        return server.url

    def log(self, name: str) -> Path:
        """A new log file of a program; the one of the last run is kept beside it."""
        log = self._logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        return log

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C, SIGTERM and a closed terminal end `run` in order."""

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


def _how(status: int) -> str:
    return f"status {status}" if status >= 0 else signal.Signals(-status).name
