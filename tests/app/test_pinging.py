"""httpping against a server on loopback, and against scripted answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from scripted_server import answer, lab

from app.sites.pinging import Ask, Ping, httpping
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.downloader import Downloader
from tasks.fetching.permits import WaitTooLong

URL = "http://example.cn/"


class Script:
    """Answers in turn: seconds, or what to raise; the last one for ever."""

    def __init__(self, *turns: float | Exception, url: str = URL) -> None:
        self._turns = list(turns)
        self._url = url
        self.asked: list[str] = []

    async def __call__(self, url: str, headers: Mapping[str, str]) -> Response:
        self.asked.append(url)
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        if isinstance(turn, Exception):
            raise turn
        return Response(url=self._url, status=200, headers={}, body=b"", elapsed_s=turn, first_byte_s=turn)


def ping(ask: Ask, **settings: float) -> Ping:
    return asyncio.run(httpping(URL, ask, **settings))


def trouble(kind: ErrorClass, elapsed_s: float | None = None) -> FetchError:
    response = (
        None
        if elapsed_s is None
        else Response(url=URL, status=404, headers={}, body=b"", elapsed_s=elapsed_s, first_byte_s=elapsed_s)
    )
    return FetchError(kind, "so", response=response)


def on_loopback(handler, url: str = URL, **settings: float):
    async def run():
        async with lab(handler) as (downloader, server):
            return await httpping(url, asking(downloader), **settings), server

    return asyncio.run(run())


def asking(downloader: Downloader) -> Ask:
    async def ask(url: str, headers: Mapping[str, str]) -> Response:
        return await downloader.fetch(url, headers=headers)

    return ask


def test_one_byte_is_asked_for_over_one_kept_connection():
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"<", "206 Part", "Content-Range: bytes 0-0/9000\r\n"))

    told, server = on_loopback(handler)
    assert len(told.measured_ms) == 5
    assert 0.0 < min(told.measured_ms) <= told.rtt_ms <= max(told.measured_ms)
    assert server.connections == 1
    assert len(server.heads) == 6
    assert all("\r\nRange: bytes=0-0\r\n" in head for head in server.heads)
    assert all("\r\nAccept-Encoding: identity\r\n" in head for head in server.heads)


def test_redirects_are_followed_once_and_their_end_is_measured():
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        moved = answer(b"", "301 There", "Location: http://www.example.cn/home\r\n")
        writer.write(answer(b"x") if b"/home" in head else moved)

    told, server = on_loopback(handler)
    assert told.url == "http://www.example.cn/home"
    assert [head.split()[1] for head in server.heads] == ["/"] + ["/home"] * 6


def test_an_error_page_is_an_answer():
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"none", "404 No"))

    told, _ = on_loopback(handler)
    assert len(told.measured_ms) == 5


@pytest.mark.parametrize(
    ("status", "kind"), [("403 No", ErrorClass.FORBIDDEN), ("429 Slow", ErrorClass.RATE_LIMITED)]
)
def test_who_refuses_is_asked_once(status, kind):
    requests = []

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(head)
        writer.write(answer(b"", status))

    with pytest.raises(FetchError) as caught:
        on_loopback(handler)
    assert caught.value.error is kind
    assert len(requests) == 1


def test_a_silent_host_ends_in_time():
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        # Until the server ends: it cuts the connection.
        await writer.wait_closed()

    with pytest.raises(FetchError, match="0 of 3") as caught:
        on_loopback(handler, longest_s=0.1)
    assert caught.value.error is ErrorClass.TIMEOUT


def test_noise_is_removed_and_the_first_request_is_not_counted():
    told = ping(Script(9.0, 0.100, 0.101, 0.103, 0.108, 4.0))
    assert told.measured_ms == pytest.approx((100.0, 101.0, 103.0, 108.0, 4000.0))
    assert 100.0 <= told.rtt_ms <= 108.0


def test_the_request_after_a_lost_one_is_not_counted():
    ask = Script(0.5, 0.1, trouble(ErrorClass.CUT_OFF), 0.6, 0.1)
    assert ping(ask).measured_ms == pytest.approx((100.0,) * 5)
    assert len(ask.asked) == 8


def test_what_was_measured_before_the_trouble_is_enough_or_not():
    refusal = trouble(ErrorClass.RATE_LIMITED)
    assert len(ping(Script(0.5, 0.1, 0.1, 0.1, refusal)).measured_ms) == 3
    with pytest.raises(FetchError, match="rate_limited"):
        ping(Script(0.5, 0.1, 0.1, refusal))


def test_two_lost_in_a_row_end_it_with_their_class():
    ask = Script(trouble(ErrorClass.CONNECT))
    with pytest.raises(FetchError, match="connect"):
        ping(ask)
    assert len(ask.asked) == 2


def test_a_host_that_cannot_be_asked_soon_is_told_as_such():
    with pytest.raises(WaitTooLong):
        ping(Script(0.5, 0.1, WaitTooLong("example.cn", 90.0)))
    assert len(ping(Script(0.5, 0.1, 0.1, 0.1, WaitTooLong("example.cn", 90.0))).measured_ms) == 3


def test_a_host_that_always_sends_on_is_left_after_so_many_requests():
    asked = []

    async def ask(url: str, headers: Mapping[str, str]) -> Response:
        asked.append(url)
        return Response(
            url=f"{URL}{len(asked)}", status=200, headers={}, body=b"", elapsed_s=0.1, first_byte_s=0.1
        )

    with pytest.raises(FetchError, match="0 of 9") as caught:
        ping(ask)
    assert caught.value.error is ErrorClass.REDIRECTS
    assert len(asked) == 9
