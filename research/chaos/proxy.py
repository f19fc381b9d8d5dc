"""The connections of programs to servers, through a proxy of our own that can spoil them.

A link is one program's way to one server. It is open, slow (what is said arrives later), silent (nothing arrives, and
nobody is told: a black hole), or it loses the answers to COMMITs: the COMMIT reaches the database, and the connection
ends before its answer comes back.

The near end of a PostgreSQL is a unix socket in a folder of our own, as the server trusts whoever reaches it; that of a
Redis, which asks for a password, a loopback port. Everything runs on one event loop in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_CHUNK = 65_536
_COMMIT = b"COMMIT"
_IN_TRANSACTION = b"Z\x00\x00\x00\x05T"
"""The last bytes of a PostgreSQL answer while a transaction is open (ReadyForQuery)."""
_SOCKET = ".s.PGSQL.5432"


@dataclass(eq=False)
class _Connection:
    """Both ends of a connection; `mute` from a COMMIT whose answer is to be lost until the end."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    mute: bool = False

    def cut(self) -> None:
        """End it at once, at both ends."""
        for end in (self.near, self.far):
            end.transport.abort()


@dataclass(eq=False)
class Link:
    """A program's way to a server. Its fields are changed on the event loop only (see `Proxy`).

    Attributes:
        server: HOST:PORT, or the path of a unix socket.
        delay_s: added to whatever is said, in both directions.
        lose: so many COMMITs from now on lose their answers.
        lost: so many have.
        silence_at: after so many answers within open transactions the link falls silent, before the last of them
            arrives; 0: it does not.
        fell_silent: called then.
    """

    server: str
    delay_s: float = 0.0
    lose: int = 0
    lost: int = 0
    silence_at: int = 0
    fell_silent: Callable[[], None] = lambda: None
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[_Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.heard.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until one end closes it."""
        try:
            await self.heard.wait()
            far_reader, far = await _connected(self.server)
        except OSError:  # the server is away: so is the connection
            writer.transport.abort()
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        connection = _Connection(writer, far)
        self.connections.add(connection)
        try:
            ways = [
                asyncio.ensure_future(self._there(reader, connection)),
                asyncio.ensure_future(self._back(far_reader, connection)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self.connections.discard(connection)
            connection.cut()

    async def _there(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        while data := await reader.read(_CHUNK):
            await self._passed()
            if self.lose > 0 and _COMMIT in data:
                self.lose -= 1
                connection.mute = True
            connection.far.write(data)
            await connection.far.drain()

    async def _back(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        while data := await reader.read(_CHUNK):
            if self.silence_at and data.endswith(_IN_TRANSACTION):
                self.silence_at -= 1
                if not self.silence_at:
                    self.heard.clear()
                    self.fell_silent()
            await self._passed()
            if connection.mute:
                self.lost += 1
                connection.cut()
                return
            connection.near.write(data)
            await connection.near.drain()

    async def _passed(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self.heard.wait()


class Proxy:
    """All links, on an event loop in a thread; to be called from any other thread.

    Args:
        folder: of the sockets; its path must be short.
    """

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._folder = folder
        self._loop = loop
        self._links: dict[tuple[str, str], Link] = {}
        self._listening: list[asyncio.Server] = []

    def postgres(self, program: str, name: str, socket_folder: str) -> str:
        """A new link to the PostgreSQL in a folder; returns the folder of its near end."""
        folder = self._folder / program
        folder.mkdir(mode=0o700, exist_ok=True)
        near = folder / _SOCKET
        near.unlink(missing_ok=True)

        async def listen() -> None:
            link = self._link(program, name, f"{socket_folder}/{_SOCKET}")
            self._listening.append(await asyncio.start_unix_server(link.serve, near))

        self._run(listen())
        return str(folder)

    def tcp(self, program: str, name: str, server: str) -> int:
        """A new link to a server at HOST:PORT; returns the loopback port of its near end."""

        async def listen() -> int:
            link = self._link(program, name, server)
            listening = await asyncio.start_server(link.serve, "127.0.0.1", 0)
            self._listening.append(listening)
            return int(listening.sockets[0].getsockname()[1])

        return self._run(listen())

    def slow(self, program: str, name: str, delay_s: float) -> None:
        """Let all that is said on a link arrive so much later; 0: at once."""
        self._change(program, name, lambda link: setattr(link, "delay_s", delay_s))

    def silence(self, program: str, name: str) -> None:
        """Let nothing arrive any more, and nobody know."""
        self._change(program, name, lambda link: link.heard.clear())

    def silence_in_transaction(self, program: str, name: str, answers: int, wait_s: float) -> bool:
        """Let a link to a PostgreSQL fall silent while a transaction is open there, after so many answers within such.

        Returns:
            False where none was open within so many seconds: it is silent all the same.
        """
        fell = Event()

        def change(link: Link) -> None:
            link.fell_silent, link.silence_at = fell.set, answers

        self._change(program, name, change)
        if fell.wait(wait_s):
            return True
        self._change(program, name, lambda link: setattr(link, "silence_at", 0))
        self.silence(program, name)
        return fell.is_set()

    def hear(self, program: str, name: str, *, cut: bool) -> None:
        """End a silence: what was said meanwhile arrives now; or the connections of the time before it are over."""

        def change(link: Link) -> None:
            if cut:
                for connection in list(link.connections):
                    connection.cut()
            link.heard.set()

        self._change(program, name, change)

    def lose_commits(self, program: str, name: str, count: int) -> None:
        """Lose the answers to the next COMMITs."""
        self._change(program, name, lambda link: setattr(link, "lose", count))

    def lost_commits(self, program: str, name: str) -> int:
        """How many COMMITs of a link have lost their answers so far."""
        return self._links[program, name].lost

    async def close(self) -> None:
        """End all links; on the event loop."""
        for server in self._listening:
            server.close()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)  # what was closed now is told so

    def _link(self, program: str, name: str, server: str) -> Link:
        return self._links.setdefault((program, name), Link(server))

    def _change(self, program: str, name: str, change: Callable[[Link], None]) -> None:
        self._loop.call_soon_threadsafe(change, self._links[program, name])

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@contextmanager
def running_proxy(folder: Path) -> Iterator[Proxy]:
    """A proxy for as long as the block runs; its connections end with it."""
    ready: Future[tuple[Proxy, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        proxy = Proxy(folder, loop)
        ready.set_result((proxy, loop, stop))
        await stop.wait()
        await proxy.close()

    # Not uvloop: it has no need to be fast, and asyncio's own transports abort as documented.
    thread = Thread(target=lambda: asyncio.run(live()), name="chaos-proxy", daemon=True)
    thread.start()
    proxy, loop, stop = ready.result()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def _connected(server: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if server.startswith("/"):
        return await asyncio.open_unix_connection(server)
    host, _, port = server.rpartition(":")
    return await asyncio.open_connection(host, int(port))
