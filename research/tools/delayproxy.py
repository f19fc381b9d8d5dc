"""A TCP proxy that makes a server on this machine as far away as one wants: a fixed round trip, nothing else.

Half the round trip is added on the way there and half on the way back. Bytes are delayed, never serialised: what is
sent while earlier bytes are under way arrives as much later as it was sent later, in order, at any bandwidth. What
opens a connection pays one round trip more, as TCP's handshake does; name look-ups and TLS are not imitated.

    python -m research.tools.delayproxy 0.010 127.0.0.1:6379 /run/postgresql/.s.PGSQL.5432

listens on a loopback port for each server, prints them as one JSON list in that order, and serves until its standard
input is closed. The first argument is the round trip in seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, cast

from research.tools.processes import serving

# Timers of the event loop count whole milliseconds: what is due within half of one goes now.
_SOON_S = 0.0005


class Timer(Protocol):
    """What a delay line needs of an event loop."""

    def time(self) -> float:
        """Now, in seconds."""

    def call_at(self, when: float, callback: Callable[[], None], /) -> object:
        """Call back then."""


class DelayLine:
    """What enters comes out after a fixed time, in order.

    Args:
        delay_s: between the two.
        out: takes bytes that came through; b"" for the end of the stream.
        timer: the event loop, as a rule.
    """

    def __init__(self, delay_s: float, out: Callable[[bytes], None], timer: Timer) -> None:
        self._delay_s = delay_s
        self._out = out
        self._timer = timer
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._ready_at = timer.time()

    def hold_up(self, seconds: float) -> None:
        """Let nothing enter before so long from now (the handshake of a connection)."""
        self._ready_at = self._timer.time() + seconds

    def enter(self, data: bytes) -> None:
        """Bytes, or b"" for the end, come in now."""
        due = max(self._timer.time(), self._ready_at) + self._delay_s
        self._under_way.append((due, data))
        if len(self._under_way) == 1:
            self._leave()

    def _leave(self) -> None:
        soon = self._timer.time() + _SOON_S
        while self._under_way and self._under_way[0][0] <= soon:
            self._out(self._under_way.popleft()[1])
        if self._under_way:
            self._timer.call_at(self._under_way[0][0], self._leave)


class _End(asyncio.Protocol):
    """One end of a proxied connection: what it hears enters `line`, what comes through is said by `say`."""

    def __init__(self) -> None:
        self.line: DelayLine | None = None
        self._transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def join(self, line: DelayLine) -> None:
        """Let what is heard enter a line, what was heard before included."""
        self.line = line
        for data in self._early:
            line.enter(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        self._heard(data)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._heard(b"")

    def say(self, data: bytes) -> None:
        assert self._transport is not None
        if not data:
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def _heard(self, data: bytes) -> None:
        if self.line is None:
            self._early.append(data)
        else:
            self.line.enter(data)


class _Client(_End):
    def __init__(self, server: str, round_trip_s: float) -> None:
        super().__init__()
        self._server = server
        self._round_trip_s = round_trip_s
        self._joining: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._joining = asyncio.get_running_loop().create_task(self._join())

    async def _join(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            far = await _connected(self._server)
        except OSError:
            self.say(b"")
            return
        there = DelayLine(self._round_trip_s / 2, far.say, loop)
        there.hold_up(self._round_trip_s)
        self.join(there)
        far.join(DelayLine(self._round_trip_s / 2, self.say, loop))


async def _connected(server: str) -> _End:
    loop = asyncio.get_running_loop()
    if server.startswith("/"):
        return (await loop.create_unix_connection(_End, server))[1]
    host, _, port = server.rpartition(":")
    return (await loop.create_connection(_End, host, int(port)))[1]


async def serve(servers: Sequence[str], round_trip_s: float) -> list[asyncio.Server]:
    """Listen on loopback for each of these servers (HOST:PORT, or the path of a unix socket)."""
    loop = asyncio.get_running_loop()
    return [
        await loop.create_server(
            lambda server=server: _Client(server, round_trip_s),  # type: ignore[misc]
            "127.0.0.1",
            0,
        )
        for server in servers
    ]


@contextmanager
def delayed(servers: Sequence[str], round_trip_s: float) -> Iterator[list[int]]:
    """Run a proxy in a process of its own; yields its loopback ports, one a server. Raises BenchError."""
    with serving(__name__, str(round_trip_s), *servers) as (ports, _):
        yield ports


async def _main(servers: Sequence[str], round_trip_s: float) -> None:
    listening = await serve(servers, round_trip_s)
    print(json.dumps([server.sockets[0].getsockname()[1] for server in listening]), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    # Not uvloop: its clock counts whole milliseconds.
    asyncio.run(_main(sys.argv[2:], float(sys.argv[1])))
