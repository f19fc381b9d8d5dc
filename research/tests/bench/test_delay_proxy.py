"""The delay line of the proxy: order stays, nothing is serialised, nothing comes before its time. On a clock of its own."""

from __future__ import annotations

import asyncio
import heapq

from hypothesis import given
from hypothesis import strategies as st

from research.tools.delayproxy import DelayLine, serve

DELAY_S = 0.045


class Clock:
    """Time that only passes when it is told to, and calls what falls due."""

    def __init__(self):
        self.now = 0.0
        self._calls = []

    def time(self):
        return self.now

    def call_at(self, when, callback):
        heapq.heappush(self._calls, (when, len(self._calls), callback))

    def pass_to(self, when):
        while self._calls and self._calls[0][0] <= when:
            self.now, _, callback = heapq.heappop(self._calls)
            callback()
        self.now = when


def line(delay_s=DELAY_S):
    clock = Clock()
    came = []
    return clock, DelayLine(delay_s, lambda data: came.append((round(clock.now, 6), data)), clock), came


@given(st.lists(st.floats(0.0, 0.2), max_size=30))
def test_everything_comes_in_order_and_its_delay_later(pauses_s):
    clock, delayed, came = line()
    entered = []
    for number, pause_s in enumerate(pauses_s, 1):
        clock.pass_to(clock.now + pause_s)
        entered.append((clock.now, b"%d" % number))
        delayed.enter(entered[-1][1])
    clock.pass_to(clock.now + 1.0)
    assert [data for _, data in came] == [data for _, data in entered]
    for (at, _), (since, _) in zip(came, entered, strict=True):
        assert DELAY_S - 0.0006 <= at - since <= DELAY_S + 1e-6


def test_bytes_don_t_wait_for_earlier_ones_and_a_handshake_holds_up_what_comes_early():
    clock, delayed, came = line()
    delayed.enter(b"a")
    clock.pass_to(0.010)
    delayed.enter(b"b")
    clock.pass_to(1.0)
    assert came == [(0.045, b"a"), (0.055, b"b")]
    clock, delayed, came = line()
    delayed.hold_up(0.09)
    delayed.enter(b"early")
    clock.pass_to(0.2)
    delayed.enter(b"later")
    clock.pass_to(1.0)
    assert came == [(0.135, b"early"), (0.245, b"later")]


def test_bytes_reach_the_server_and_a_missing_one_closes_the_connection():
    async def shout(reader, writer):
        writer.write((await reader.read(100)).upper())
        writer.close()

    async def ask(server, said):
        (proxy,) = await serve([server], 0.0)
        async with proxy:
            reader, writer = await asyncio.open_connection(*proxy.sockets[0].getsockname())
            writer.write(said)
            answer = await reader.read()  # to the end: the server's close comes through, too
            writer.close()
            await writer.wait_closed()
            return answer

    async def both():
        server = await asyncio.start_server(shout, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            return await ask(f"{host}:{port}", b"hello"), await ask("/nowhere/socket", b"")

    assert asyncio.run(both()) == (b"HELLO", b"")
