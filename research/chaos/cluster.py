"""The programs of a chaos run: a cluster as of `reviewloop up`, with spares, each program behind links of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
from redis import Redis
from redis.exceptions import RedisError

from app.run.cluster import processes
from app.run.cluster.processes import Program
from app.run.cluster.pulse import last_beat
from app.run.cluster.servers import free_port
from app.run.cluster.supervisor import Cluster
from app.run.nodes import numbered_nodes
from app.run.setting_fields import Settings
from app.run.settings import as_environment
from research.chaos import diagnosis
from research.chaos.faults import BEATS, CONTROLS
from research.chaos.proxy import Proxy
from splitter.errors import ReviewloopError

DATABASE_LINK, REDIS_LINK = "database", "redis"
_LAB = "lab"
_LAB_UP_S = 60.0
_ASK_S = 1.0


class LabFailed(ReviewloopError):
    """The lab did not come up."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a chaos run, in one folder."""

    folder: Path

    @property
    def sites(self) -> Path:
        """The catalog that a site may leave."""
        return self.folder / "sites.yaml"

    @property
    def all_sites(self) -> Path:
        """The catalog as it is when all sites are in it: the lab's."""
        return self.folder / "all-sites.yaml"

    @property
    def calm_sites(self) -> Path:
        """The catalog of the calm run."""
        return self.folder / "calm-sites.yaml"

    @property
    def calm_database(self) -> Path:
        """The database of the calm run."""
        return self.folder / "calm.db"


class ChaosCluster:
    """Starts the lab, two control workers, two beats, and the nodes; strikes them by their names.

    Belongs to the main thread.

    Args:
        cluster: with its servers running.
        proxy: of the programs' connections.
        nodes: how many crawl nodes.
    """

    def __init__(self, cluster: Cluster, proxy: Proxy, files: Files, nodes: int) -> None:
        self._cluster = cluster
        self._supervisor = cluster.supervisor
        self._proxy = proxy
        self._files = files
        self._nodes = numbered_nodes(nodes, cluster.settings.slots, lab=True)
        self._frozen: dict[str, list[psutil.Process]] = {}
        self._programs: list[Program] = []
        self.node_names = tuple(node.name for node in self._nodes)
        self.lab = ("127.0.0.1", free_port())
        self._settings = cluster.settings.with_(sites=str(files.sites), lab=self.lab)

    @property
    def redis_url(self) -> str:
        """Of the Redis itself, not through a link."""
        return self._settings.redis_url

    @property
    def ended(self) -> bool:
        """True once a signal asked for the end."""
        return self._cluster.signalled

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run all programs as long as the block runs."""
        self._start_lab()
        self._programs = [
            *(
                processes.control_program(self._linked(name), self._cluster.log(name), name)
                for name in CONTROLS
            ),
            *(processes.beat_program(self._linked(name), self._cluster.log(name), name) for name in BEATS),
            *(
                processes.node_program(node, self._linked(node.name), self._cluster.log(node.name))
                for node in self._nodes
            ),
        ]
        try:
            for program in self._programs:
                self._supervisor.start(program)
            yield
        finally:
            self.thaw()
            self._supervisor.stop([*(program.name for program in self._programs), _LAB])

    def check(self) -> None:
        """Do what `up` does, but leave what is frozen here. Raises ClusterFailed if something ends again and again."""
        self._supervisor.check()
        self._supervisor.end_stopped(
            [program.name for program in self._programs if program.name not in self._frozen]
        )

    def run_to_end(self, program: Program, seconds: float, tick: Callable[[], None]) -> bool:
        """Run a program once; False where it did not end well, or not in time."""
        process = processes.start(program)
        end = time.monotonic() + seconds
        try:
            while process.poll() is None and time.monotonic() < end and not self.ended:
                tick()
            return process.poll() == 0
        finally:
            processes.stop([(program, process)])

    # --- faults ---------------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """Kill -9 a program; of a PostgreSQL the first process, as its others end with it."""
        self._signal(name, signal.SIGKILL)

    def end(self, name: str) -> None:
        """Ask a program to end in order; it is started again."""
        self._signal(name, signal.SIGTERM)

    def freeze(self, name: str) -> None:
        """Stop a program where it is, with all its processes."""
        pid = self._supervisor.pid(name)
        if pid is None:
            return
        with suppress(psutil.Error):
            first = psutil.Process(pid)
            self._frozen[name] = [first, *first.children(recursive=True)]
        for process in self._frozen.get(name, []):
            with suppress(psutil.Error):
                process.suspend()

    def thaw(self) -> None:
        """Let everything that is frozen go on."""
        while self._frozen:
            _, family = self._frozen.popitem()
            for process in family:
                with suppress(psutil.Error):
                    process.resume()

    def pids(self, names: Sequence[str]) -> dict[str, int | None]:
        """The process of each of these programs now."""
        return {name: self._supervisor.pid(name) for name in names}

    def ready(self) -> bool:
        """Whether every program has come up: it has read its catalog, and beats."""
        return all(map(self._is_up, self._programs))

    def _is_up(self, program: Program) -> bool:
        return program.pulse is not None and _beats(program.pulse) == self._supervisor.pid(program.name)

    def waits(self) -> str:
        """What every program waits for now, for the diagnosis of a stall; beats are not asked for their stacks."""
        pids = self.pids([program.name for program in self._programs])
        up = [
            program.name
            for program in self._programs
            if program.name not in (*BEATS, *self._frozen)
            and pids[program.name] is not None
            and self._is_up(program)
        ]
        return diagnosis.waits(pids, up)

    def redis_answers(self) -> bool:
        """Whether the Redis answers now."""
        try:
            with Redis.from_url(
                self.redis_url, socket_timeout=_ASK_S, socket_connect_timeout=_ASK_S
            ) as redis:
                return bool(redis.ping())
        except RedisError:
            return False

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._supervisor.pid(name)
        if pid is not None:
            os.kill(pid, number)

    # --- what runs ------------------------------------------------------------------------------------------

    def _linked(self, name: str) -> Settings:
        """The settings of a program: its connections go through links of its own."""
        database = parse_qs(urlsplit(self._settings.database_url).query)["host"][0]
        folder = self._proxy.postgres(name, DATABASE_LINK, database)
        redis = urlsplit(self._settings.redis_url)
        port = self._proxy.tcp(name, REDIS_LINK, f"{redis.hostname}:{redis.port}")
        return self._settings.with_(
            database_url=self._settings.database_url.replace(database, folder),
            redis_url=redis._replace(netloc=f":{redis.password}@127.0.0.1:{port}").geturl(),
        )

    def _start_lab(self) -> None:
        settings = self._settings.with_(sites=str(self._files.all_sites))
        port, sites = str(self.lab[1]), str(self._files.all_sites)
        words = ("lab", "--port", port, "--profile", "calm", "--sites", sites)
        self._supervisor.start(self.command(_LAB, words, settings))
        end = time.monotonic() + _LAB_UP_S
        while True:
            try:
                socket.create_connection(self.lab, timeout=1).close()
                return
            except OSError:
                if time.monotonic() > end or self._supervisor.pid(_LAB) is None:
                    raise LabFailed(
                        f"the lab does not come up: see {self._files.folder}/logs/lab.log"
                    ) from None
            time.sleep(0.1)

    def command(self, name: str, words: Sequence[str], settings: Settings | None = None) -> Program:
        """A command of ours as a program."""
        return Program(
            name=name,
            command=[sys.executable, "-m", "app", *words],
            log=self._cluster.log(name),
            environment=as_environment(settings or self._settings),
        )


def _beats(pulse: Path) -> int | None:
    try:
        return last_beat(pulse).pid
    except ValueError:
        return None
