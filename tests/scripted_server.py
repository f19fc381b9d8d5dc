"""A scripted HTTP server on loopback, and a downloader that sends every host there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

from patience import PATIENCE_S

from tasks.fetching.downloader import Downloader, FetchLimits

NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
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
                self.heads.append(head.decode("utf-8", "surrogateescape"))
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
    return FetchLimits(**{"body_bytes": 50_000, "inflated_bytes": 400_000, "idle_s": PATIENCE_S, **limits})
