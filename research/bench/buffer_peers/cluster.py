"""The product as a contestant: a real cluster whose crawl node is far from Redis and PostgreSQL, and the rest near.

Control worker, beat and node are started with the commands of `reviewloop up`; only the node is given the addresses of
the delay proxy.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from redis import Redis
from sqlalchemy import URL, make_url

from app.run.cluster import processes
from app.run.cluster.celery_app import make_app
from app.run.cluster.processes import Program, last_lines
from app.run.cluster.servers import PostgresServer, RedisServer
from app.run.open_store import open_redis
from app.run.setting_fields import Settings
from app.run.settings import as_environment
from research.bench.buffer_peers.prepared import Databases, attempts_of, results_read
from research.bench.buffer_peers.web import catalog
from research.tools.delayproxy import delayed
from research.tools.meter import BenchError
from research.tools.processes import running, serving
from tasks.jobs.queues import CONTROL, crawl_queue
from tasks.store.content.pages import page_count, page_keys
from tasks.store.sql.database import Store
from tasks.worker.redis_seen import RedisSeen

NODE = "far"
SLOTS = 64
_LOOK_EVERY_S = 0.25
_READY_S = 60.0
_POSTGRES_SOCKET = ".s.PGSQL.5432"
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING")


@dataclass(frozen=True, slots=True)
class Servers:
    """What runs for the whole bench.

    Attributes:
        folder: for logs and the catalog's file.
        socket: path of PostgreSQL's.
        page_port: of the page server.
    """

    folder: Path
    databases: Databases
    socket: str
    redis_url: str
    page_port: int


@dataclass(frozen=True, slots=True)
class Run:
    """The counts of one run of the cluster.

    Attributes:
        counts: (seconds since the node's process was started, result pages read so far), ascending, from (0, 0) on.
        attempts: by outcome, at the end.
    """

    counts: Sequence[tuple[float, int]]
    attempts: Mapping[str, int]

    @property
    def lasted_s(self) -> float:
        """Seconds from the start of the node's process to the last count."""
        return self.counts[-1][0]

    @property
    def first_s(self) -> float | None:
        """When the first result page had been read; None: never."""
        return next((at for at, count in self.counts if count), None)

    def rate(self, seconds: float | None = None) -> float:
        """Return result pages a second from the start of the process on, over `seconds` (`None`: all)."""
        until = self.lasted_s if seconds is None else min(seconds, self.lasted_s)
        return count_at(self.counts, until) / until

    def rate_since_first(self) -> float:
        """Return result pages a second from the first one on, 0 if there is none."""
        if self.first_s is None or self.first_s >= self.lasted_s:
            return 0.0
        return (self.counts[-1][1] - count_at(self.counts, self.first_s)) / (self.lasted_s - self.first_s)

    def seconds_for(self, results: int) -> float | None:
        """Return the seconds from the start until `results` pages had been read. `None`: never."""
        return next((at for at, count in self.counts if count >= results), None)


def count_at(counts: Sequence[tuple[float, int]], second: float) -> float:
    """The count at a moment; between two counts it is taken to grow evenly."""
    for (before_s, before), (after_s, after) in pairwise(counts):
        if before_s <= second <= after_s:
            return before + (after - before) * (second - before_s) / max(1e-9, after_s - before_s)
    return float(counts[-1][1])


@contextmanager
def servers(folder: Path, results: int) -> Iterator[Servers]:
    """Run PostgreSQL, Redis and the page server, the database prepared."""
    postgres = PostgresServer(folder / "postgres", folder / "postgres.log", lambda _line: None)
    redis = RedisServer(folder / "redis", folder / "redis.log")
    web = "research.bench.buffer_peers.web"
    with running(postgres), running(redis), serving(web, str(results)) as (page_port, _):
        databases = Databases(postgres.url)
        databases.prepare(results)
        sites = {"version": 1, **catalog().model_dump(mode="json", exclude_none=True)}
        (folder / "sites.yaml").write_text(json.dumps(sites), encoding="utf-8")
        socket = f"{make_url(postgres.url).query['host']}/{_POSTGRES_SOCKET}"
        yield Servers(folder, databases, socket, redis.url, page_port)


def crawl(
    on: Servers,
    name: str,
    round_trip_s: float,
    seconds: float,
    batch: int,
    remembered: int,
    *,
    enough: int | None = None,
) -> Run:
    """Let a node that far away crawl for so many seconds, its start included.

    Args:
        name: of the run: of its database and its logs.
        batch, remembered: the settings of that name.
        enough: result pages after which it may end earlier.
    """
    with ExitStack() as stack:
        database = stack.enter_context(on.databases.copy(name))
        with Redis.from_url(on.redis_url) as redis:
            redis.flushall()
        near = Settings(
            database_url=_text(database),
            redis_url=on.redis_url,
            sites=str(on.folder / "sites.yaml"),
            lab=("127.0.0.1", on.page_port),
            batch=batch,
            remembered=remembered,
            seed=1,
        )
        store = Store.open(near.database_url)
        stack.callback(store.close)
        asyncio.run(_fill_seen(near, store))
        redis_at = urlsplit(on.redis_url)
        ports = stack.enter_context(delayed([on.socket, f"127.0.0.1:{redis_at.port}"], round_trip_s))
        far = near.replace(
            database_url=_text(database.set(host="127.0.0.1", port=ports[0], query={})),
            redis_url=redis_at._replace(netloc=f":{redis_at.password}@127.0.0.1:{ports[1]}").geturl(),
        )
        _start(stack, on.folder, name, "beat", near, "beat")
        _start(stack, on.folder, name, "control", near, *_worker(CONTROL, 2))
        _until_control_works(near)
        began = time.monotonic()
        node = _start(stack, on.folder, name, NODE, far, *_worker(crawl_queue(NODE), SLOTS))
        counts = list(_watched(store, began, seconds, enough))
        if node.poll() is not None:
            raise BenchError(f"the node ended: {last_lines(on.folder / f'{name}.{NODE}.log')}")
        return Run(counts, attempts_of(store))


def _watched(store: Store, began: float, seconds: float, enough: int | None) -> Iterator[tuple[float, int]]:
    """Look a few times a second, last of all when the time is over."""
    end = began + seconds
    yield 0.0, 0
    while (now := time.monotonic()) < end:
        time.sleep(min(_LOOK_EVERY_S, end - now))
        count = results_read(store)
        yield time.monotonic() - began, count
        if enough is not None and count >= enough:
            return


def _worker(queue: str, slots: int) -> tuple[str, ...]:
    return ("worker", "-P", "threads", "-c", str(slots), "-Q", queue, "-n", f"{queue}@bench", *_QUIET)


def _start(
    stack: ExitStack, folder: Path, run: str, name: str, settings: Settings, *arguments: str
) -> processes.Child:
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "app.celery", *arguments]
    # Killed at the end, not asked to stop: its database goes with it.
    program = Program(
        name=name,
        command=command,
        log=folder / f"{run}.{name}.log",
        environment=as_environment(settings),
        stop_s=0.0,
    )
    process = processes.start(program)
    stack.callback(processes.stop, [(program, process)])
    return process


def _until_control_works(settings: Settings) -> None:
    """Wait until the control worker has taken a message and done what it says."""
    make_app(settings).send_task("sweep", ("recall",), queue=CONTROL)
    end = time.monotonic() + _READY_S
    with Redis.from_url(settings.redis_url) as redis:
        while redis.llen(CONTROL) or redis.hlen("unacked"):
            if time.monotonic() > end:
                raise BenchError("the control worker does not take messages")
            time.sleep(0.05)


async def _fill_seen(settings: Settings, store: Store) -> None:
    async with open_redis(settings) as redis:
        await RedisSeen(redis, time.monotonic).rebuild(page_count(store), page_keys(store))


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
