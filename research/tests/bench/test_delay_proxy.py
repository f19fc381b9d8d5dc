"""The delay of the proxy: order stays, nothing is serialised, nothing comes before its time. In virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.tests.simulator.virtual_run import VirtualLoop
from research.tools.delayproxy import carry, serve

DELAY_S = 0.045


class Writer:
    """Records when messages come."""

    def __init__(self):
        self.came = []
        self.closed = False

    def write(self, data):
        now_s = asyncio.get_running_loop().time()
        self.came += [(now_s, one) for one in data.split()]

    def close(self):
        self.closed = True


def carried(pauses_s, from_s=0.0):
    """Send numbers with pauses before them; return when each was sent, and when and in which order they came."""

    async def send():
        reader, writer, sent = asyncio.StreamReader(), Writer(), []
        carrying = asyncio.create_task(carry(reader, writer, DELAY_S, from_s))
        for number, pause_s in enumerate(pauses_s):
            await asyncio.sleep(pause_s)
            sent.append((asyncio.get_running_loop().time(), b"%d" % number))
            reader.feed_data(sent[-1][1] + b" ")
        reader.feed_eof()
        await carrying
        assert writer.closed
        return sent, writer.came

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(send())


@given(st.lists(st.floats(0.0, 0.2), max_size=30))
def test_everything_comes_in_order_and_its_delay_later(pauses_s):
    sent, came = carried(pauses_s)
    assert [one for _, one in came] == [one for _, one in sent]
    for (at_s, _), (since_s, _) in zip(came, sent, strict=True):
        assert DELAY_S - 0.0006 <= at_s - since_s <= DELAY_S + 1e-6


def test_bytes_don_t_wait_for_earlier_ones_and_a_handshake_holds_up_what_comes_early():
    _, came = carried([0.0, 0.010])
    assert [at_s for at_s, _ in came] == pytest.approx([0.045, 0.055], abs=0.0006)
    _, came = carried([0.0, 0.2], from_s=0.09)
    assert [at_s for at_s, _ in came] == pytest.approx([0.135, 0.245], abs=0.0006)


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
