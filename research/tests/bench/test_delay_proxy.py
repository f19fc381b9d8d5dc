"""The delay line of the proxy: order kept, nothing serialised, nothing before its time. On a clock of its own."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from research.tools.delayproxy import DelayLine, serve

DELAY_S = 0.045


class Clock:
    """Time that only passes when it is told to, and calls what falls due."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._calls, (when, len(self._calls), callback))

    def pass_to(self, when: float) -> None:
        while self._calls and self._calls[0][0] <= when:
            self.now, _, callback = heapq.heappop(self._calls)
            callback()
        self.now = when


def line(delay_s: float = DELAY_S) -> tuple[Clock, DelayLine, list[tuple[float, bytes]]]:
    clock = Clock()
    came: list[tuple[float, bytes]] = []
    return clock, DelayLine(delay_s, lambda data: came.append((clock.now, data)), clock), came


@given(st.lists(st.floats(0.0, 0.2), max_size=30))
def test_everything_comes_in_order_and_its_delay_later(pauses_s: list[float]) -> None:
    clock, delayed, came = line()
    entered = []
    for number, pause_s in enumerate(pauses_s, 1):
        clock.pass_to(clock.now + pause_s)
        entered.append((clock.now, b"%d" % number))
        delayed.enter(entered[-1][1])
    clock.pass_to(clock.now + 1.0)
    assert [data for _, data in came] == [data for _, data in entered]
    for (at, _), (since, _) in zip(came, entered, strict=True):
        assert DELAY_S - 0.0006 <= at - since <= DELAY_S + 1e-9


def test_what_follows_closely_is_not_held_up_by_what_is_under_way() -> None:
    clock, delayed, came = line()
    delayed.enter(b"a")
    clock.pass_to(0.010)
    delayed.enter(b"b")
    clock.pass_to(1.0)
    assert came == [(0.045, b"a"), (0.055, b"b")]


def test_without_delay_bytes_pass_at_once() -> None:
    _, delayed, came = line(0.0)
    delayed.enter(b"a")
    assert came == [(0.0, b"a")]


def test_a_handshake_holds_up_what_comes_early_and_nothing_later() -> None:
    clock, delayed, came = line()
    delayed.hold_up(0.09)
    delayed.enter(b"early")
    clock.pass_to(0.2)
    delayed.enter(b"later")
    clock.pass_to(1.0)
    assert [(round(at, 6), data) for at, data in came] == [(0.135, b"early"), (0.245, b"later")]


def test_bytes_reach_the_server_and_its_answers_come_back() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(100)).upper())
        writer.close()

    async def ask() -> bytes:
        server = await asyncio.start_server(shout, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        (proxy,) = await serve([f"{host}:{port}"], 0.0)
        async with server, proxy:
            reader, writer = await asyncio.open_connection(*proxy.sockets[0].getsockname())
            writer.write(b"hello")
            answer = await reader.read()  # to the end: the server's close comes through, too
            writer.close()
            await writer.wait_closed()
            return answer

    assert asyncio.run(ask()) == b"HELLO"


def test_a_server_that_is_not_there_closes_the_connection() -> None:
    async def ask() -> bytes:
        (proxy,) = await serve(["/nowhere/socket"], 0.0)
        async with proxy:
            reader, writer = await asyncio.open_connection(*proxy.sockets[0].getsockname())
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    assert asyncio.run(ask()) == b""
