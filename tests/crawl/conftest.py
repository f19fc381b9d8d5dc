"""Own servers for the crawl tests: a scripted HTTP server on loopback and a private Redis."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.backoff import ConstantBackoff

from tasks.crawl.downloader import Downloader, FetchLimits

NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not there")
    return DATA


Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A raw server: `handler` gets the head of each request and writes what it likes.

    `release` ends handlers that wait for it; `heads` are the requests seen, `peers` where they came from.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.release = asyncio.Event()
        self.heads: list[str] = []
        self.peers: list[str] = []
        self.connections = 0
        self._open: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open[asyncio.current_task()] = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head.decode())
                self.peers.append(writer.get_extra_info("peername")[0])
                await self._handler(head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self.release.set()
            server.close()
            for writer in self._open.values():
                writer.transport.abort()
            if self._open:
                await asyncio.wait(self._open)


def answer(body: bytes = b"", status: str = "200 OK", headers: str = "", length: int | None = None) -> bytes:
    """The bytes of an answer; `headers` are lines ending in \\r\\n."""
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {size}\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def lab(handler: Handler, **settings: object) -> AsyncIterator[tuple[Downloader, Server]]:
    """A downloader that sends every host to a server with this handler."""
    server = Server(handler)
    async with (
        server.running() as port,
        Downloader(
            user_agent="reviewloop-test/1.0", clock=lambda: NOW, lab=("127.0.0.1", port), **settings
        ) as downloader,
    ):
        yield downloader, server


def small(**limits: float) -> FetchLimits:
    return FetchLimits(**{"body_bytes": 50_000, "inflated_bytes": 400_000, "idle_s": 5.0, **limits})


@pytest.fixture(scope="session")
def redis_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Path of the unix socket of a Redis of our own."""
    binary = shutil.which("redis-server", path=str(Path(sys.executable).parent)) or shutil.which(
        "redis-server"
    )
    if binary is None:
        pytest.skip("no redis-server: install the `servers` extra")
    folder = tmp_path_factory.mktemp("redis")
    # A socket's path may have 107 characters only, a temporary folder's may be longer.
    path = Path("/tmp") / f"reviewloop-{folder.name}-{socket.gethostname()[:20]}-{id(folder):x}.sock"  # noqa: S108
    process = subprocess.Popen(
        [
            binary,
            "--port",
            "0",
            "--unixsocket",
            str(path),
            "--dir",
            str(folder),
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
        path.unlink(missing_ok=True)
