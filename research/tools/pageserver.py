"""The page server of the benches: answers are kept in memory, and go out at once or at a pace.

It is a process of its own on a loopback port: it prints that port and serves until its standard input is closed; then it prints the
connections that were open at once and its CPU seconds, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from app.run.process import run_coroutine
from research.tools.meter import allow_open_files

_TICK_S = 0.002
_SEGMENT_BYTES = 1460  # of TCP payload in an Ethernet frame


def answered(body: bytes, kind: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    """Return a whole answer, head and body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


ROBOTS = answered(b"User-agent: *\nAllow: /\n", "text/plain")
LOST = answered(b"there is no such page", "text/plain", "404 Not Found")


class Pace:
    """When an answer goes out: at once."""

    def send(self, transport: asyncio.Transport, answer: bytes) -> None:
        """Send an answer on its connection."""
        if not transport.is_closing():
            transport.write(answer)


class Delayed(Pace):
    """Each answer goes out ``delay_s`` after its request."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._waiting: deque[tuple[float, asyncio.Transport, bytes]] = deque()

    def send(self, transport: asyncio.Transport, answer: bytes) -> None:
        """See `Pace`."""
        loop = asyncio.get_running_loop()
        # The delay is one for all, so the queue is in order and one timer serves it.
        if not self._waiting:
            loop.call_later(self._delay_s, self._send_due)
        self._waiting.append((loop.time() + self._delay_s, transport, answer))

    def _send_due(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            super().send(*self._waiting.popleft()[1:])
        if self._waiting:
            loop.call_at(self._waiting[0][0], self._send_due)


class Held(Pace):
    """No answer goes out before ``count`` requests wait at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []

    def send(self, transport: asyncio.Transport, answer: bytes) -> None:
        """See `Pace`."""
        self._waiting.append((transport, answer))
        if len(self._waiting) >= self._count:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                super().send(*one)


class SharedLink(Pace):
    """Answers share a link of ``bits_per_s``, a segment of each in turn."""

    def __init__(self, bits_per_s: float) -> None:
        self._bytes_per_s = bits_per_s / 8
        self._sending: deque[tuple[asyncio.Transport, bytes]] = deque()  # with the rest of the answer
        self._ticked_at = self._may_go = 0.0

    def send(self, transport: asyncio.Transport, answer: bytes) -> None:
        """See `Pace`."""
        if not self._sending:
            loop = asyncio.get_running_loop()
            # Idle time is lost, as on a real link; a debt is not.
            self._ticked_at, self._may_go = loop.time(), min(self._may_go, 0.0)
            loop.call_later(_TICK_S, self._tick)
        self._sending.append((transport, answer))

    def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        self._may_go += (now - self._ticked_at) * self._bytes_per_s
        self._ticked_at = now
        while self._may_go >= 1 and self._sending:
            transport, answer = self._sending.popleft()
            super().send(transport, answer[:_SEGMENT_BYTES])
            self._may_go -= min(_SEGMENT_BYTES, len(answer))
            if len(answer) > _SEGMENT_BYTES:
                self._sending.append((transport, answer[_SEGMENT_BYTES:]))
        if self._sending:
            asyncio.get_running_loop().call_later(_TICK_S, self._tick)


class _Server:
    """State of the server that all connections share."""

    def __init__(self, answer: Callable[[bytes], bytes], pace: Pace) -> None:
        self.answer, self.send = answer, pace.send
        self.open_now = self.open_most = 0


class Connection(asyncio.Protocol):
    """A kept connection, on which requests are answered in their order."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transports are none of asyncio's classes
        self._server.open_now += 1
        self._server.open_most = max(self._server.open_most, self._server.open_now)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a client may leave
        """See `asyncio.Protocol`."""
        self._server.open_now -= 1

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._server.send(self._transport, self._server.answer(request))


def serve(answer: Callable[[bytes], bytes], pace: Pace | None = None) -> None:
    """Serve until standard input is closed.

    Args:
        answer: returns the whole answer to a request's head.
        pace: None: each answer goes out at once.
    """
    allow_open_files()
    run_coroutine(_serve(_Server(answer, pace or Pace())))


async def _serve(shared: _Server) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(shared), "0.0.0.0", 0, backlog=20_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(json.dumps({"connections": shared.open_most, "server_cpu_s": time.process_time()}))
