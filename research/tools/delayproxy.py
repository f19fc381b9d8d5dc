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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from research.tools.processes import serving

# Timers of the event loop count whole milliseconds: what is due within half of one goes now.
_SOON_S = 0.0005
_CHUNK = 65_536


async def carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float, from_s: float = 0.0
) -> None:
    """Write whatever is read, `delay_s` later and in order, until one end closes; then close the writer.

    Args:
        from_s: time of the event loop before which nothing enters (the handshake of a connection).
    """
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        data = b"."
        while data:
            due_s, data = await under_way.get()
            await asyncio.sleep(due_s - loop.time() - _SOON_S)
            writer.write(data)
        writer.close()

    delivering = asyncio.create_task(deliver())
    data = b"."
    while data:
        try:
            data = await reader.read(_CHUNK)
        except ConnectionError:
            data = b""
        under_way.put_nowait((max(loop.time(), from_s) + delay_s, data))
    await delivering


async def _join(
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter], server: str, round_trip_s: float
) -> None:
    """Serve one connection."""
    from_s = asyncio.get_running_loop().time() + round_trip_s
    try:
        if server.startswith("/"):
            far = await asyncio.open_unix_connection(server)
        else:
            host, _, port = server.rpartition(":")
            far = await asyncio.open_connection(host, int(port))
    except OSError:
        near[1].close()
        return
    with suppress(asyncio.CancelledError):  # the proxy ends
        await asyncio.gather(
            carry(near[0], far[1], round_trip_s / 2, from_s), carry(far[0], near[1], round_trip_s / 2)
        )


async def serve(servers: Sequence[str], round_trip_s: float) -> list[asyncio.Server]:
    """Listen on loopback for each of these servers (HOST:PORT, or the path of a unix socket)."""

    async def listen(server: str) -> asyncio.Server:
        return await asyncio.start_server(lambda *near: _join(near, server, round_trip_s), "127.0.0.1", 0)

    return [await listen(server) for server in servers]


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
