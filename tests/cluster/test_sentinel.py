"""Broker and rate limits found through a real sentinel."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from patience import PATIENCE_S, until
from redis import Redis
from redis.exceptions import RedisError

from app.run.cluster import processes
from app.run.cluster.celery_app import make_app
from app.run.cluster.processes import Program
from app.run.cluster.servers import RedisServer
from app.run.open_store import open_redis
from app.run.setting_fields import Settings
from splitter.catalog.model import Limits
from tasks.fetching.redis_permits import RedisPermits


@pytest.fixture
def sentinel_settings(tmp_path, unused_port):
    """Settings that name a sentinel, which watches a Redis with a password."""
    server = RedisServer(tmp_path / "redis", tmp_path / "redis.log")
    server.prepare()
    master = urlsplit(server.url)
    conf = tmp_path / "sentinel.conf"
    conf.write_text(
        f"bind 127.0.0.1\nport {unused_port}\n"
        f"sentinel monitor reviews 127.0.0.1 {master.port} 1\nsentinel auth-pass reviews {master.password}\n"
    )
    binary = shutil.which("redis-server", path=str(Path(sys.executable).parent))
    programs = [
        server.program,
        Program(name="sentinel", command=[binary, str(conf), "--sentinel"], log=tmp_path / "sentinel.log"),
    ]
    running = [(program, processes.start(program)) for program in programs]
    try:
        server.wait(lambda: running[0][1].poll() is None)
        with Redis(port=unused_port) as sentinel:
            until(lambda: _watches(sentinel), what="the sentinel answers")
        yield Settings(
            database_url="postgresql://h/d",
            redis_url=f"sentinel://:{master.password}@127.0.0.1:{unused_port}/1",
            redis_master="reviews",
        )
    finally:
        processes.stop(running)


def _watches(sentinel):
    try:
        return sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "reviews")
    except RedisError:
        return None


def test_messages_and_permits_go_through_the_master_a_sentinel_names(sentinel_settings):
    app = make_app(sentinel_settings)
    app.send_task("sweep", ("turn",), queue="control")
    with app.connection_for_read() as connection, connection.SimpleQueue("control") as queue:
        message = queue.get(timeout=PATIENCE_S)
        assert message.headers["task"] == "sweep"
        message.ack()

    async def reserve():
        async with open_redis(sentinel_settings) as redis:
            times = RedisPermits(redis, time.monotonic)
            limits = Limits(per_address_per_s=0.001, total_per_s=0.001)
            return [await times.reserve("h", "a", limits) for _ in range(2)]

    first, second = asyncio.run(reserve())
    assert first == 0
    assert second == pytest.approx(1000.0, rel=0.2)
