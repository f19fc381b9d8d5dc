"""The product as a contestant: a real cluster whose crawl node is far from Redis and PostgreSQL, and the rest near.

Control worker, beat and node are started with the commands of `reviewloop up`; only the node is given the addresses of
the delay proxy.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from research.bench.buffer_peers.counted import Run
from research.bench.buffer_peers.prepared import Databases, attempts_of, results_read
from research.bench.buffer_peers.server import page_server
from research.bench.buffer_peers.web import catalog
from research.tools.delayproxy import delayed
from splitter.errors import ReviewloopError
from tasks.jobs.queues import CONTROL, crawl_queue
from tasks.store.content.known_pages import page_count, page_keys
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


@contextmanager
def servers(folder: Path, results: int) -> Iterator[Servers]:
    """PostgreSQL, Redis and the page server, the database prepared."""
    with ExitStack() as stack:
        postgres = PostgresServer(folder / "postgres", folder / "postgres.log", lambda _line: None)
        stack.callback(postgres.clean_up)
        postgres.prepare()
        _serve(stack, postgres.program, postgres.wait)
        redis = RedisServer(folder / "redis", folder / "redis.log")
        stack.callback(redis.clean_up)
        redis.prepare()
        _serve(stack, redis.program, redis.wait)
        databases = Databases(postgres.url)
        databases.prepare(results)
        sites = {"version": 1, **catalog().model_dump(mode="json", exclude_none=True)}
        (folder / "sites.yaml").write_text(json.dumps(sites), encoding="utf-8")
        page_port = stack.enter_context(page_server(results))
        socket = f"{make_url(postgres.url).query['host']}/{_POSTGRES_SOCKET}"
        yield Servers(folder, databases, socket, redis.url, page_port)


def _serve(stack: ExitStack, program: Program, wait: Callable[[Callable[[], bool]], None]) -> None:
    process = processes.start(program)
    stack.callback(processes.stop, [(program, process)])
    wait(lambda: process.poll() is None)


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
        far = near.with_(
            database_url=_text(database.set(host="127.0.0.1", port=ports[0], query={})),
            redis_url=redis_at._replace(netloc=f":{redis_at.password}@127.0.0.1:{ports[1]}").geturl(),
        )
        ping_ms = _ping_ms(far.redis_url)
        _start(stack, on.folder, name, "beat", near, "beat")
        _start(stack, on.folder, name, "control", near, *_worker(CONTROL, 2))
        _until_control_works(near)
        began = time.monotonic()
        node = _start(stack, on.folder, name, NODE, far, *_worker(crawl_queue(NODE), SLOTS))
        counts = list(_watched(store, began, seconds, enough))
        if node.poll() is not None:
            raise ReviewloopError(f"the node ended: {last_lines(on.folder / f'{name}.{NODE}.log')}")
        return Run(counts, attempts_of(store), ping_ms)


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
) -> subprocess.Popen[bytes]:
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
                raise ReviewloopError("the control worker does not take messages")
            time.sleep(0.05)


async def _fill_seen(settings: Settings, store: Store) -> None:
    async with open_redis(settings) as redis:
        await RedisSeen(redis, time.monotonic).rebuild(page_count(store), page_keys(store))


def _ping_ms(url: str, times: int = 21) -> float:
    took = []
    with Redis.from_url(url) as redis:
        for _ in range(times):
            began = time.perf_counter()
            redis.ping()
            took.append((time.perf_counter() - began) * 1000)
    return round(sorted(took)[times // 2], 2)


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
