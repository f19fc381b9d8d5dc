"""Real data and a private Redis for the crawl tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not there")
    return DATA


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[str]:
    """Path of the unix socket of a Redis of our own."""
    binary = shutil.which("redis-server", path=str(Path(sys.executable).parent)) or shutil.which(
        "redis-server"
    )
    if binary is None:
        pytest.skip("no redis-server: install the `servers` extra")
    # Not pytest's own folder: a socket's path may have 107 characters only.
    folder = tempfile.mkdtemp(prefix="reviewloop-redis-")
    path = Path(folder) / "socket"
    process = subprocess.Popen(
        [
            binary,
            "--port",
            "0",
            "--unixsocket",
            str(path),
            "--dir",
            folder,
            "--save",
            "",
            "--appendonly",
            "no",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with Redis(
            unix_socket_path=str(path), retry=Retry(ConstantBackoff(0.05), 100), retry_on_error=[RedisError]
        ) as client:
            client.ping()
        yield str(path)
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(folder)
