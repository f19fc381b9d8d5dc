"""Links that are slow, silent, or lose the answer to a COMMIT; messages that are lost, doubled, or late."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from random import Random

import pytest
from patience import PATIENCE_S, until
from redis import Redis

from research.chaos.faults import FaultKind
from research.chaos.messages import MessageThief
from research.chaos.proxy import running_proxy


class Echo(socketserver.BaseRequestHandler):
    """Answers what it hears, and remembers it."""

    def handle(self) -> None:
        while data := self.request.recv(4096):
            self.server.heard.append(data)
            self.request.sendall(b"did " + data)


@pytest.fixture
def echo() -> Iterator[socketserver.ThreadingTCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        server.heard = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def proxy(tmp_path):
    with running_proxy(tmp_path) as running:
        yield running


@contextmanager
def connected(port: int, timeout_s: float = PATIENCE_S) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as made:
        yield made


def linked(proxy, echo) -> int:
    return proxy.tcp("node1", "database", f"127.0.0.1:{echo.server_address[1]}")


def asked(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(4096)


def ended(connection: socket.socket) -> bool:
    """Whether the other end closes it, without another word."""
    try:
        return connection.recv(4096) == b""
    except ConnectionResetError:
        return True


def test_a_slow_link_takes_its_time_both_ways(proxy, echo):
    with connected(linked(proxy, echo)) as one:
        proxy.slow("node1", "database", 0.1)
        began_s = time.monotonic()
        assert asked(one, b"this") == b"did this"
        assert time.monotonic() - began_s >= 0.2


@pytest.mark.parametrize("cut", [True, False])
def test_on_a_silent_link_nothing_arrives_until_it_is_over(proxy, echo, cut):
    port = linked(proxy, echo)
    with connected(port) as one:
        assert asked(one, b"this") == b"did this"
        proxy.silence("node1", "database")
        one.sendall(b"more")
        one.settimeout(0.3)
        with pytest.raises(TimeoutError):
            one.recv(4096)
        assert echo.heard == [b"this"]
        one.settimeout(PATIENCE_S)
        proxy.hear("node1", "database", cut=cut)
        if cut:
            assert ended(one)
        else:
            assert one.recv(4096) == b"did more"
    with connected(port) as another:
        assert asked(another, b"again") == b"did again"


def test_a_link_falls_silent_in_the_middle_of_a_transaction(proxy, echo):
    answered = b"Z\x00\x00\x00\x05"
    port = linked(proxy, echo)
    with connected(port) as one, ThreadPoolExecutor(1) as pool:
        fell = pool.submit(proxy.silence_in_transaction, "node1", "database", 2, PATIENCE_S)
        assert asked(one, b"SELECT " + answered + b"I") == b"did SELECT " + answered + b"I"
        while not fell.done():
            one.sendall(b"UPDATE " + answered + b"T")
            wait([fell], 0.2)
        assert fell.result()
    proxy.hear("node1", "database", cut=True)
    assert proxy.silence_in_transaction("node1", "database", 1, 0.05) is False


def test_a_commit_arrives_and_its_answer_does_not(proxy, echo):
    port = linked(proxy, echo)
    proxy.lose_commits("node1", "database", 1)
    with connected(port) as one:
        assert asked(one, b"INSERT") == b"did INSERT"
        one.sendall(b"COMMIT")
        assert ended(one)
    assert echo.heard == [b"INSERT", b"COMMIT"]
    assert proxy.lost_commits("node1", "database") == 1
    with connected(port) as another:
        assert asked(another, b"COMMIT") == b"did COMMIT"


def test_a_server_that_is_away_is_no_connection(proxy):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = proxy.tcp("node1", "redis", f"127.0.0.1:{probe.getsockname()[1]}")
    with connected(port) as one:
        assert ended(one)


@pytest.mark.parametrize(
    ("trick", "left"),
    [
        (FaultKind.LOST_MESSAGES, []),
        (FaultKind.LATE_MESSAGES, [b"a", b"b"]),
        (FaultKind.DOUBLED_MESSAGES, [b"a", b"a", b"b", b"b"]),
    ],
)
def test_messages_are_lost_late_or_doubled_once(redis_url, trick, left):
    with Redis.from_url(redis_url) as redis:
        redis.delete("crawl.node1")
        thief = MessageThief(redis_url, ["control", "crawl.node1"], trick, Random(1))
        redis.lpush("crawl.node1", b"a", b"b")
        until(lambda: thief.taken >= 2)
        assert thief.stop() == 2
        assert sorted(redis.lrange("crawl.node1", 0, -1)) == left
