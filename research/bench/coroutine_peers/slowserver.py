"""The server of the coroutine bench: one page of 20 KB for every request, slow in one of three ways.

    delay   each answer comes a fixed time after its request
    hold    no answer before so many requests wait at once; then all of them
    link    answers share one link of so many bits a second, as equals

A process of its own, on another core than the crawler: `python -m research.bench.coroutine_peers.slowserver MODE AMOUNT`. It
prints its port as the first line, and what it did (`Done`) as JSON once its standard input ends, which also happens
when the bench that started it dies.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Protocol, cast

from app.run.process import run_coroutine
from research.bench.coroutine_peers.machine import open_files, pin_to

BODY_BYTES = 20_480
_HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
_LINE = b'<p class="review">\xe8\xbf\x99\xe6\xac\xbe\xe5\xa5\xb6\xe7\xb2\x89\xe5\xbe\x88\xe5\xa5\xbd</p>\n'
ANSWER = _HEAD.encode() + (_LINE * BODY_BYTES)[:BODY_BYTES]
_END = b"\r\n\r\n"
_TICK_S = 0.002
_SEGMENT_BYTES = 1460  # of TCP payload in an Ethernet frame


def send(transport: asyncio.Transport, data: bytes) -> None:
    """Write, unless the client has left."""
    if not transport.is_closing():
        transport.write(data)


class Answers(Protocol):
    """When an answer goes out."""

    def ask(self, transport: asyncio.Transport) -> None:
        """Take one request, answered on its own connection."""


class Delayed:
    """Each answer ``delay_s`` after its request."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._waiting: deque[tuple[float, asyncio.Transport]] = deque()

    def ask(self, transport: asyncio.Transport) -> None:
        """See `Answers`."""
        loop = asyncio.get_running_loop()
        # The delay is one for all, so the queue is in order and one timer serves it.
        if not self._waiting:
            loop.call_later(self._delay_s, self._send_due)
        self._waiting.append((loop.time() + self._delay_s, transport))

    def _send_due(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            send(self._waiting.popleft()[1], ANSWER)
        if self._waiting:
            loop.call_at(self._waiting[0][0], self._send_due)


class Held:
    """No answer before ``count`` requests wait at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: list[asyncio.Transport] = []

    def ask(self, transport: asyncio.Transport) -> None:
        """See `Answers`."""
        self._waiting.append(transport)
        if len(self._waiting) >= self._count:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                send(one, ANSWER)


class Bucket:
    """What a link of ``bytes_per_s`` may carry: over any time, the whole bytes of rate times time."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._left = 0.0

    def fill(self, elapsed_s: float) -> int:
        """Whole bytes that may go after so much more time, with what was not taken before."""
        self._left += elapsed_s * self._bytes_per_s
        return int(self._left)

    def take(self, count: int) -> None:
        """Use ``count`` bytes; below nothing, the next filling pays first."""
        self._left -= count

    def idle(self) -> None:
        """Nobody had anything to send: that time is lost, as on a real link."""
        self._left = min(self._left, 0.0)


class SharedLink:
    """Answers share a link of ``bits_per_s``, a segment of each in turn."""

    def __init__(self, bits_per_s: float) -> None:
        self._bucket = Bucket(bits_per_s / 8)
        self._sending: deque[tuple[asyncio.Transport, int]] = deque()  # with the bytes sent already
        self._ticked_at = 0.0

    def ask(self, transport: asyncio.Transport) -> None:
        """See `Answers`."""
        if not self._sending:
            loop = asyncio.get_running_loop()
            self._ticked_at = loop.time()
            loop.call_later(_TICK_S, self._tick)
        self._sending.append((transport, 0))

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        may_go = self._bucket.fill(now - self._ticked_at)
        self._ticked_at = now
        while may_go > 0 and self._sending:
            transport, begin = self._sending.popleft()
            piece = ANSWER[begin : begin + _SEGMENT_BYTES]
            send(transport, piece)
            self._bucket.take(len(piece))
            may_go -= len(piece)
            if begin + len(piece) < len(ANSWER):
                self._sending.append((transport, begin + len(piece)))
        if self._sending:
            loop.call_later(_TICK_S, self._tick)
        else:
            self._bucket.idle()


@dataclass(slots=True)
class Done:
    """What the server did.

    Attributes:
        requests: asked for.
        open_now: connections open.
        open_most: connections open at once, at most.
        cpu_s: processor time of the whole process.
    """

    requests: int = 0
    open_now: int = 0
    open_most: int = 0
    cpu_s: float = 0.0


class Connection(asyncio.Protocol):
    """One client's connection: counts the ends of request heads and hands each on."""

    def __init__(self, answers: Answers, done: Done) -> None:
        self._answers = answers
        self._done = done
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is no subclass of it
        self._done.open_now += 1
        self._done.open_most = max(self._done.open_most, self._done.open_now)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a client may leave as it likes
        """See `asyncio.Protocol`."""
        self._done.open_now -= 1

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        heads = (self._tail + data).split(_END)
        self._tail = heads[-1]
        for _ in heads[1:]:
            self._done.requests += 1
            self._answers.ask(self._transport)


async def serve(answers: Answers, done: Done) -> None:
    """Serve on a free port of every 127.0.0.x until standard input ends; prints the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers, done), "0.0.0.0", 0, backlog=20_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main(mode: str, amount: float) -> None:
    """Serve in a mode; prints the port, then `Done` as JSON."""
    pin_to(-1)
    open_files()
    answers: Answers
    if mode == "delay":
        answers = Delayed(amount)
    elif mode == "hold":
        answers = Held(int(amount))
    else:
        answers = SharedLink(amount)
    done = Done()
    run_coroutine(serve(answers, done))
    done.cpu_s = time.process_time()
    print(json.dumps(asdict(done)))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
