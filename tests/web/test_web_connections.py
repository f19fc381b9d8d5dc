"""The web server's limits of connections and of time, and the age of a cached value; time is a number here."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from dashboard import Serve
from uvicorn.server import ServerState

from app.run.setting_fields import Settings
from app.web.base import cached
from app.web.server import LimitedProtocol, make_server
from tasks.store.sql.database import Store

POST = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"


class Transport(asyncio.Transport):
    """A connection that keeps what was written."""

    def __init__(self, host: str) -> None:
        super().__init__(
            {"socket": SimpleNamespace(getpeername=lambda: (host, 1), getsockname=lambda: ("", 80))}
        )
        self.sent = b""
        self.unsent = 0
        self.end = ""

    def write(self, data: Any) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.end)

    def close(self) -> None:
        self.end = self.end or "closed"

    def abort(self) -> None:
        self.end = "aborted"


class Loop:
    """An event loop whose clock goes on by `advance` alone."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None], SimpleNamespace]] = []
        self.tasks: list[Coroutine[Any, Any, None]] = []

    def call_later(self, delay: float, call: Callable[[], None]) -> SimpleNamespace:
        timer = (self.now + delay, call, SimpleNamespace(cancel=lambda: self.timers.remove(timer)))
        self.timers.append(timer)
        return timer[2]

    def create_task(self, work: Coroutine[Any, Any, None]) -> Mock:
        self.tasks.append(work)
        return Mock()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in sorted(self.timers, key=lambda one: one[0]):
            if timer in self.timers and timer[0] <= self.now:
                self.timers.remove(timer)
                timer[1]()

    def answer(self) -> None:
        """Let the application answer the newest request."""
        with pytest.raises(StopIteration):
            self.tasks.pop().send(None)


async def _answer_at_once(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Server:
    """A server on a loop of its own, for 12 connections, 3 of a client."""

    def __init__(self) -> None:
        self.loop = Loop()
        self._state = ServerState()
        self._config = uvicorn.Config(
            _answer_at_once,
            log_config=None,
            lifespan="off",
            ws="none",
            limit_concurrency=13,
            forwarded_allow_ips=["10.0.0.0/8"],
        )
        self._config.load()

    def connect(self, host: str = "192.0.2.1", sent: bytes = b"") -> tuple[LimitedProtocol, Transport]:
        protocol = LimitedProtocol(self._config, self._state, {}, self.loop)
        transport = Transport(host)
        protocol.connection_made(transport)
        if sent:
            protocol.data_received(sent)
        return protocol, transport

    def close(self) -> None:
        for work in self.loop.tasks:
            work.close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.mark.parametrize("sent", [b"", b"GET /x HT"])
def test_headers_that_do_not_come_end_the_connection_after_10_s(server: Server, sent: bytes) -> None:
    _, transport = server.connect(sent=sent)
    server.loop.advance(9.9)
    assert transport.end == ""
    server.loop.advance(0.1)
    assert transport.end == "aborted"


def test_a_byte_now_and_then_gives_headers_no_more_time(server: Server) -> None:
    protocol, transport = server.connect(sent=b"GET /x HTTP/1.1\r\nX: ")
    for _ in range(5):
        assert transport.end == ""
        protocol.data_received(b"x")
        server.loop.advance(2)
    assert transport.end == "aborted"


@pytest.mark.parametrize(("unsent", "end"), [(0, "closed"), (1, "aborted")])
def test_a_body_gets_30_s_in_all(server: Server, unsent: int, end: str) -> None:
    protocol, transport = server.connect(sent=POST)
    transport.unsent = unsent
    for _ in range(6):
        assert transport.end == ""
        protocol.data_received(b"x")
        server.loop.advance(5)
    assert transport.end == end
    assert transport.sent.startswith(b"HTTP/1.1 400 ") is (unsent == 0)


def test_a_body_that_an_answer_refused_gets_no_more_time(server: Server) -> None:
    protocol, transport = server.connect(sent=POST)
    server.loop.answer()
    for _ in range(6):
        assert transport.end == ""
        protocol.data_received(b"x")
        server.loop.advance(5)
    assert transport.end == "aborted"
    assert transport.sent.startswith(b"HTTP/1.1 200 ")


def test_the_application_may_take_its_time(server: Server) -> None:
    protocol, transport = server.connect(sent=POST)
    server.loop.advance(29)
    protocol.data_received(b"x" * 100)
    server.loop.advance(1000)
    assert transport.end == ""


def test_the_next_request_of_a_connection_gets_10_s_from_the_last_answer(server: Server) -> None:
    protocol, transport = server.connect(sent=GET)
    for _ in range(3):
        server.loop.answer()
        server.loop.advance(4)
        protocol.data_received(GET)
    server.loop.answer()
    server.loop.advance(4)
    protocol.data_received(b"GET /x HT")
    server.loop.advance(5.9)
    assert transport.end == ""
    server.loop.advance(0.1)
    assert transport.end == "aborted"


def test_an_answer_that_the_client_does_not_take_ends_the_connection(server: Server) -> None:
    protocol, transport = server.connect(sent=GET)
    protocol.pause_writing()
    server.loop.advance(29)
    protocol.resume_writing()
    server.loop.advance(1)
    protocol.pause_writing()
    server.loop.advance(29)
    assert transport.end == ""
    server.loop.advance(1)
    assert transport.end == "aborted"


def test_a_connection_that_ended_leaves_no_timer(server: Server) -> None:
    protocol, _ = server.connect(sent=GET[:-1])
    protocol.connection_lost(None)
    assert server.loop.timers == []


def _is_refused(connection: tuple[LimitedProtocol, Transport]) -> bool:
    _, transport = connection
    return transport.end == "aborted"


def test_one_client_gets_its_share_of_the_connections(server: Server) -> None:
    first, *_ = [server.connect() for _ in range(3)]
    assert all(_is_refused(server.connect()) for _ in range(20))
    assert not _is_refused(server.connect("192.0.2.2"))
    first[0].connection_lost(None)
    assert not _is_refused(server.connect())
    assert not any(_is_refused(server.connect(f"192.0.2.{n}")) for n in range(3, 11))
    assert _is_refused(server.connect("192.0.2.11"))


def test_an_ipv6_network_is_one_client(server: Server) -> None:
    assert not any(_is_refused(server.connect(f"2001:db8::{n}")) for n in range(3))
    assert _is_refused(server.connect("2001:db8::9"))
    assert not _is_refused(server.connect("2001:db8:0:1::9"))


def test_a_trusted_proxy_may_use_all_connections(server: Server) -> None:
    assert not any(_is_refused(server.connect("10.0.0.1")) for _ in range(12))
    assert _is_refused(server.connect("10.0.0.1"))


def test_the_last_connection_below_the_limit_is_answered(server: Server) -> None:
    *_, (_, transport) = [server.connect("10.0.0.1", sent=GET) for _ in range(12)]
    server.loop.answer()
    assert transport.sent.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("open_files", "connections"), [(200, 50), (1024, 256), (1_000_000, 512)])
def test_connections_leave_room_for_other_files(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, open_files: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda of: (open_files, open_files))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        assert make_server(Settings(), sqlite_store, sock).config.limit_concurrency == connections


def test_half_sent_requests_of_one_client_leave_room_for_others(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda of: (16, 16))  # 3 connections, 1 of a client
    served = serve()
    port = int(served.address.rstrip("/").rpartition(":")[2])
    half = [socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0)) for _ in range(20)]
    try:
        for one in half[1:]:
            assert one.recv(12) == b""
        assert served.get("/healthz").text == "ok\n"
    finally:
        for one in half:
            one.close()


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("took_s", "after_s", "shown"),
    [(0.01, 0.4, 1), (0.01, 0.6, 2), (1.0, 19.0, 1), (1.0, 24.0, 1), (1.0, 26.0, 2), (1.0, 36_000.0, 2)],
)
def test_a_value_that_nobody_asked_for_in_time_is_computed_again(
    monkeypatch: pytest.MonkeyPatch, took_s: float, after_s: float, shown: int
) -> None:
    clock, made = _Clock(), count(1)
    monkeypatch.setattr(cached, "Thread", Mock())
    values = cached.Cached(clock)

    def make() -> int:
        clock.now += took_s
        return next(made)

    assert values.get("state", make) == 1
    clock.now += after_s
    assert values.get("state", make) == shown
