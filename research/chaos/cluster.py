"""The programs of a chaos run: a cluster as of `reviewloop up`, with spares, each program behind links of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
from app.run.nodes import make_nodes
from app.run.setting_fields import Settings
from app.run.settings import as_environment
from research.chaos.faults import BEATS, CONTROLS
from research.chaos.proxy import Proxy
from splitter.errors import ReviewloopError

DATABASE_LINK, REDIS_LINK = "database", "redis"
_LAB = "lab"
_LAB_UP_S = 60.0
_ASK_S = 1.0


class ChaosFailed(ReviewloopError):
    """The run itself did not get going: no fault of the cluster's."""


class ChaosCluster:
    """Starts the lab, two control workers, two beats, and the nodes; faults name them.

    Belongs to the main thread.

    Args:
        cluster: with its servers running.
        proxy: of the programs' connections.
        folder: of the run; its `sites.yaml` is the catalog.
        nodes: how many crawl nodes.
    """

    def __init__(self, cluster: Cluster, proxy: Proxy, folder: Path, nodes: int) -> None:
        self._cluster = cluster
        self._supervisor = cluster.supervisor
        self._proxy = proxy
        self._folder = folder
        self._nodes = make_nodes(nodes, cluster.settings.slots, lab=True)
        self._frozen: dict[str, list[psutil.Process]] = {}
        self._programs: list[Program] = []
        self.node_names = tuple(node.name for node in self._nodes)
        self.lab = ("127.0.0.1", free_port())
        self._settings = cluster.settings.replace(sites=str(folder / "sites.yaml"), lab=self.lab)

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
        pid = self._supervisor.pid(name)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

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

    def ready(self) -> bool:
        """Whether every program has come up: it has read its catalog, and beats."""
        return all(map(self._is_up, self._programs))

    def _is_up(self, program: Program) -> bool:
        return program.pulse is not None and _beats(program.pulse) == self._supervisor.pid(program.name)

    def redis_answers(self) -> bool:
        """Whether the Redis answers now."""
        try:
            with Redis.from_url(
                self.redis_url, socket_timeout=_ASK_S, socket_connect_timeout=_ASK_S
            ) as redis:
                return bool(redis.ping())
        except RedisError:
            return False

    # --- what runs ------------------------------------------------------------------------------------------

    def _linked(self, name: str) -> Settings:
        """The settings of a program: its connections go through links of its own."""
        database = parse_qs(urlsplit(self._settings.database_url).query)["host"][0]
        folder = self._proxy.postgres(name, DATABASE_LINK, database)
        redis = urlsplit(self._settings.redis_url)
        port = self._proxy.tcp(name, REDIS_LINK, f"{redis.hostname}:{redis.port}")
        return self._settings.replace(
            database_url=self._settings.database_url.replace(database, folder),
            redis_url=redis._replace(netloc=f":{redis.password}@127.0.0.1:{port}").geturl(),
        )

    def _start_lab(self) -> None:
        words = (
            "lab",
            "--port",
            str(self.lab[1]),
            "--profile",
            "calm",
            "--sites",
            str(self._folder / "sites.yaml"),
        )
        self._supervisor.start(self.command(_LAB, words))
        end = time.monotonic() + _LAB_UP_S
        while True:
            try:
                socket.create_connection(self.lab, timeout=1).close()
                return
            except OSError:
                if time.monotonic() > end or self._supervisor.pid(_LAB) is None:
                    raise ChaosFailed(f"the lab does not come up: see {self._folder}/logs/lab.log") from None
            time.sleep(0.1)

    def command(self, name: str, words: Sequence[str]) -> Program:
        """A command of ours as a program."""
        return Program(
            name=name,
            command=[sys.executable, "-m", "app", *words],
            log=self._cluster.log(name),
            environment=as_environment(self._settings),
        )


def _beats(pulse: Path) -> int | None:
    try:
        return last_beat(pulse).pid
    except ValueError:
        return None
