"""The downloader against servers that behave, and servers that don't."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import brotli
import certifi
import pycurl
import pytest
import zstandard
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from patience import PATIENCE_S
from scripted_server import NOW, Server, answer, lab, small

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.downloader import Downloader, nothing


def packed(body: bytes) -> bytes:
    """gzip without its time, so that a test has the same name in every process."""
    return gzip.compress(body, mtime=0)


def serve(*answers: bytes):
    """A handler that gives these answers in turn, the last one for ever."""
    left = list(answers)

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return handler


def fetch(handler, url: str = "http://example.cn/a", *, limits=None, **options) -> Response:
    async def run() -> Response:
        async with lab(handler, limits=limits or small()) as (downloader, _):
            return await downloader.fetch(url, **options)

    return asyncio.run(run())


def failure(handler, url: str = "http://example.cn/a", **options) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetch(handler, url, **options)
    return caught.value


def test_answer_comes_whole_with_lower_case_headers():
    response = fetch(serve(answer(b"hello", headers="X-One: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\n")))
    assert (response.status, response.body, response.url) == (200, b"hello", "http://example.cn/a")
    assert response.headers["x-one"] == "1"
    assert response.headers["set-cookie"] == "a, b"
    assert response.elapsed_s > 0


def test_url_goes_out_byte_by_byte_with_its_own_host_over_one_kept_connection():
    async def run() -> Server:
        async with lab(serve(answer(b"x"))) as (downloader, server):
            for url in (
                "http://www.baidu.com/s?wd=%E5%85%89+site%3Acca.org.cn&x=%7e{|}'()*&&ie=utf-8",
                "https://weibo.com:8443/a%2fb",
                "http://cca.org.cn#top",
            ):
                await downloader.fetch(url, headers={"If-None-Match": '"v1"'})
            return server

    server = asyncio.run(run())
    lines = [head.split("\r\n") for head in server.heads]
    assert [line[0] for line in lines] == [
        "GET /s?wd=%E5%85%89+site%3Acca.org.cn&x=%7e{|}'()*&&ie=utf-8 HTTP/1.1",
        "GET /a%2fb HTTP/1.1",
        "GET / HTTP/1.1",
    ]
    assert [line[1] for line in lines] == ["Host: www.baidu.com", "Host: weibo.com:8443", "Host: cca.org.cn"]
    assert all("User-Agent: reviewloop-test/1.0" in line for line in lines)
    assert all('If-None-Match: "v1"' in line for line in lines)
    assert server.connections == 1


def test_each_node_asks_from_its_own_address():
    async def run() -> list[str]:
        server = Server(serve(answer(b"x")))
        async with server.running() as port:
            for address in ("127.0.0.1", "127.0.0.7"):
                async with Downloader(
                    user_agent="t", clock=lambda: NOW, lab=("127.0.0.1", port), local_address=address
                ) as downloader:
                    await downloader.fetch("http://example.cn/")
        return server.peers

    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.7", 0))
    except OSError:
        pytest.skip("this system has only 127.0.0.1 on its loopback")
    assert asyncio.run(run()) == ["127.0.0.1", "127.0.0.7"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("404 No", ErrorClass.NOT_FOUND),
        ("410 Gone", ErrorClass.NOT_FOUND),
        ("500 Oops", ErrorClass.SERVER_ERROR),
        ("503 Busy", ErrorClass.SERVER_ERROR),
        ("429 Slow", ErrorClass.RATE_LIMITED),
        ("401 Who", ErrorClass.FORBIDDEN),
        ("403 No", ErrorClass.FORBIDDEN),
        ("432 Weibo", ErrorClass.FORBIDDEN),
        ("418 Tea", ErrorClass.OTHER_STATUS),
        ("304 Same", ErrorClass.OTHER_STATUS),
    ],
)
def test_status_gives_its_class_with_the_answer(status, expected):
    body = b"" if status.startswith("304") else b"why"
    error = failure(serve(answer(body, status)))
    assert error.error is expected
    assert error.response is not None
    assert error.response.body == body


def test_conditional_request_may_be_answered_that_nothing_changed():
    for name in ("If-None-Match", "if-modified-since"):
        response = fetch(serve(answer(status="304 Same", headers='ETag: "v1"\r\n')), headers={name: '"v1"'})
        assert (response.status, response.body, response.headers["etag"]) == (304, b"", '"v1"')


def test_headers_of_the_caller_take_the_place_of_the_nodes_own():
    async def run() -> list[str]:
        async with lab(serve(answer(b"x", headers="Set-Cookie: a=b\r\n"))) as (downloader, server):
            await downloader.fetch(
                "http://example.cn/", headers={"accept": "text/x", "X-Empty": "", "X": "\udce5"}
            )
            await downloader.fetch("http://example.cn/")
            return server.heads

    first, second = asyncio.run(run())
    assert "accept: text/x\r\n" in first
    assert "Accept:" not in first
    assert "\r\nX-Empty:\r\nX: \udce5\r\n" in first
    assert "Accept: text/html" in second
    assert "cookie" not in second.lower()


@pytest.mark.parametrize("bad", ["a\r\nHost: b", "a\nb", "a\0b"])
def test_headers_with_line_breaks_are_not_sent(bad):
    with pytest.raises(ValueError, match="line break"):
        fetch(serve(answer(b"x")), headers={"If-None-Match": bad})


def test_broken_body_of_an_error_does_not_hide_its_status():
    async def handler(head, writer):
        writer.write(answer(b"x" * 10, "429 Slow", "Retry-After: 7\r\n", length=500))
        writer.close()

    error = failure(handler)
    assert (error.error, error.retry_after_s) == (ErrorClass.RATE_LIMITED, 7.0)


# ---- bodies


def deflated(data: bytes, window: int) -> bytes:
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        ("gzip", packed(b"body" * 100)),
        ("x-gzip", packed(b"body" * 50) + packed(b"body" * 50)),
        ("gzip", packed(b"body" * 100) + b"\0\0\0padding"),
        ("deflate", deflated(b"body" * 100, zlib.MAX_WBITS)),
        ("deflate", deflated(b"body" * 100, -zlib.MAX_WBITS)),
        ("br", brotli.compress(b"body" * 100)),
        ("zstd", zstandard.compress(b"body" * 100)),
        ("ZSTD", zstandard.compress(b"body" * 50) * 2),
        ("zstd", zstandard.compress(b"body" * 100) + b"padding"),
        ("utf-8", b"body" * 100),
        ("identity", b"body" * 100),
    ],
)
def test_content_codings(coding, sent):
    assert fetch(serve(answer(sent, headers=f"Content-Encoding: {coding}\r\n"))).body == b"body" * 100


@pytest.mark.parametrize(
    ("coding", "sent", "expected"),
    [
        ("gzip", packed(b"0" * 300_000), ErrorClass.TOO_LARGE),  # ratio
        ("gzip", packed(b"0123456789abcdef" * 30_000), ErrorClass.TOO_LARGE),  # size
        ("deflate", deflated(bytes(10_000_000), -zlib.MAX_WBITS), ErrorClass.TOO_LARGE),
        ("gzip", packed(b"") * 50, ErrorClass.TOO_LARGE),  # members
        ("gzip", packed(b"body" * 100)[:-9], ErrorClass.CUT_OFF),
        ("gzip", b"<html>not gzip", ErrorClass.BAD_CONTENT),
        ("br", b"anything", ErrorClass.BAD_CONTENT),
        ("gzip, gzip", packed(packed(b"x")), ErrorClass.BAD_CONTENT),
    ],
)
def test_codings_that_do_harm_or_make_no_sense(coding, sent, expected):
    error = failure(serve(answer(sent, headers=f"Content-Encoding: {coding}\r\n")))
    assert error.error is expected


def test_announced_size_over_the_limit_is_refused_before_it_is_read():
    async def handler(head, writer):
        writer.write(answer(b"", length=50_001))

    assert failure(handler).error is ErrorClass.TOO_LARGE


def test_endless_body_is_cut_at_the_limit():
    async def handler(head, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + bytes(4096) + b"\r\n")
            await writer.drain()

    assert failure(handler).error is ErrorClass.TOO_LARGE


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b'5;ext=1\r\nhello\r\n003 ; a="b"\r\n\r\n!\r\n0;x\r\n\r\n', b"hello\r\n!"),
        (b"A\r\n0\r\n\r\n12345\r\n0\r\nX-Trailer: 1\r\n\r\n", b"0\r\n\r\n12345"),
        (b"0\r\n\r\n", b""),
        (b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n", b"x" * 2000),
    ],
)
def test_a_body_in_chunks_is_their_data(sent, body):
    """Asked for twice over one connection: the end of the first answer is where libcurl saw it."""

    async def run() -> tuple[bytes, bytes, int]:
        async with lab(serve(CHUNKED + sent)) as (downloader, server):
            first, second = [(await downloader.fetch(f"http://example.cn/{n}")).body for n in range(2)]
            return first, second, server.connections

    assert asyncio.run(run()) == (body, body, 1)


def test_a_packed_body_in_chunks_is_unpacked():
    page = packed(b"hello")
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(page), page)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n"
    assert fetch(serve(head + chunks)).body == b"hello"


def test_another_transfer_encoding_was_not_asked_for():
    async def handler(head, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + packed(b"hello"))
        writer.close()

    assert failure(handler).error is ErrorClass.BAD_CONTENT


ENDLESS = {
    "extensions": [b"1;" + b"x" * 1000 + b"\r\na\r\n"],
    "one extension": [b"1;", b"x" * 1000],
    "zeros": [b"", b"0" * 1000],
    "tiny chunks": [b"1\r\na\r\n" * 100],
    "trailers": [b"0\r\n", b"X: " + b"x" * 1000 + b"\r\n"],
    "one trailer": [b"0\r\nX: ", b"x" * 1000],
}


def endless(*parts: bytes):
    """A handler that sends the last part for ever, up to 20 MB; `sent` counts the bytes."""
    sent = [0]

    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"".join(parts[:-1]))
        while sent[0] < 20_000_000:
            writer.write(parts[-1])
            sent[0] += len(parts[-1])
            await writer.drain()

    return handler, sent


@pytest.mark.parametrize("kind", ENDLESS)
def test_whatever_comes_beside_a_body_counts(kind):
    handler, sent = endless(*ENDLESS[kind])
    assert failure(handler).error in (ErrorClass.TOO_LARGE, ErrorClass.CUT_OFF)
    assert sent[0] < 10_000_000  # what fits into the buffers of a socket


def test_very_many_chunks_are_no_page():
    sent = b"1\r\na\r\n" * 40_000 + b"0\r\n\r\n"
    assert failure(serve(CHUNKED + sent), limits=small(body_bytes=1_000_000)).error is ErrorClass.TOO_LARGE


def test_body_shorter_than_announced_is_cut_off():
    async def handler(head, writer):
        writer.write(answer(b"half", length=8))
        writer.close()

    assert failure(handler).error is ErrorClass.CUT_OFF


def test_chunked_body_without_its_end_is_cut_off():
    async def handler(head, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        writer.close()

    assert failure(handler).error is ErrorClass.CUT_OFF


def test_reset_within_the_body_is_cut_off():
    async def handler(head, writer):
        writer.write(answer(b"half", length=8))
        await writer.drain()
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    assert failure(handler).error is ErrorClass.CUT_OFF


# ---- heads


def test_hanging_up_without_a_word_is_no_connection():
    async def handler(head, writer):
        writer.close()

    assert failure(handler).error is ErrorClass.CONNECT


def test_hanging_up_within_the_headers_is_cut_off():
    async def handler(head, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
        writer.close()

    assert failure(handler).error is ErrorClass.CUT_OFF


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 5000 + b"\r\n",
    ],
)
def test_headers_over_the_limit(head):
    assert failure(serve(head)).error is ErrorClass.TOO_LARGE


@pytest.mark.parametrize(
    "head", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 banana\r\n\r\n", b"\0\1\2\3\r\n\r\n"]
)
def test_what_is_no_http(head):
    assert failure(serve(head)).error is ErrorClass.BAD_CONTENT


def test_nobody_listens():
    async def run():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
            async with Downloader(
                user_agent="t", clock=lambda: NOW, lab=("127.0.0.1", taken.getsockname()[1])
            ) as downloader:
                await downloader.fetch("http://example.cn/")

    with pytest.raises(FetchError) as caught:
        asyncio.run(run())
    assert caught.value.error is ErrorClass.CONNECT


# ---- time


def held(first: bytes):
    """A server that sends a beginning and then nothing until the test ends."""

    async def run(**options) -> FetchError:
        async def handler(head, writer):
            writer.write(first)
            await writer.drain()
            await server.release.wait()

        async with lab(handler, limits=options.pop("limits", small())) as (downloader, server):
            with pytest.raises(FetchError) as caught:
                await downloader.fetch("http://example.cn/", **options)
            return caught.value

    return run


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n", answer(b"half", length=8)])
def test_no_whole_answer_in_the_time_of_a_request(first):
    assert asyncio.run(held(first)(timeout_s=0.05)).error is ErrorClass.TIMEOUT


def test_idle_answer():
    error = asyncio.run(held(answer(b"half", length=8))(limits=small(idle_s=0.05), timeout_s=PATIENCE_S))
    assert error.error is ErrorClass.TIMEOUT


def test_dripping_answer_that_is_never_idle():
    async def handler(head, writer):
        writer.write(answer(b"", length=40_000))
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.005)

    assert failure(handler, timeout_s=0.1, limits=small(idle_s=1.0)).error is ErrorClass.TIMEOUT


def test_cancelling_goes_through_and_the_next_fetch_works():
    async def run() -> bytes:
        async def handler(head, writer):
            if b"/slow" in head:
                arrived.set()
                await server.release.wait()
            writer.write(answer(b"ok"))

        arrived = asyncio.Event()
        async with lab(handler) as (downloader, server):
            task = asyncio.create_task(downloader.fetch("http://example.cn/slow"))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await downloader.fetch("http://example.cn/")).body

    assert asyncio.run(run()) == b"ok"


def test_cancelling_before_the_connection_stands_leaves_no_connection():
    async def run() -> tuple[int, bytes]:
        async with lab(serve(answer(b"ok"))) as (downloader, server):
            tasks = [asyncio.create_task(downloader.fetch(f"http://example.cn/{n}")) for n in range(5)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)
            return len(server.heads), (await downloader.fetch("http://example.cn/")).body

    assert asyncio.run(run()) == (0, b"ok")


def test_closing_ends_what_runs():
    async def run() -> FetchError:
        async def handler(head, writer):
            arrived.set()
            await server.release.wait()

        arrived = asyncio.Event()
        async with lab(handler) as (downloader, server):
            task = asyncio.create_task(downloader.fetch("http://example.cn/"))
            await arrived.wait()
            await downloader.__aexit__(None, None, None)
            with pytest.raises(FetchError) as caught:
                await task
            with pytest.raises(RuntimeError, match="not open"):
                await downloader.fetch("http://example.cn/")
            return caught.value

    assert asyncio.run(run()).error is ErrorClass.CUT_OFF


# ---- kept connections that died


@pytest.mark.parametrize(("kept", "expected"), [(0, 1), (1, 2), (2, 2), (7, 2)])
def test_a_dead_host_is_asked_once_and_once_more_if_only_a_kept_connection_died(kept, expected):
    async def run() -> tuple[ErrorClass, int]:
        async def handler(head, writer):
            if b"/last" in head:
                writer.close()
                return
            arrived.append(head)
            if len(arrived) == kept:
                everybody.set()
            await everybody.wait()
            writer.write(answer(b"ok"))

        arrived: list[bytes] = []
        everybody = asyncio.Event()
        async with lab(handler) as (downloader, server):
            await asyncio.gather(*(downloader.fetch(f"http://example.cn/{n}") for n in range(kept)))
            assert server.connections == kept
            with pytest.raises(FetchError) as caught:
                await downloader.fetch("http://example.cn/last")
            return caught.value.error, len(server.heads) - kept

    assert asyncio.run(run()) == (ErrorClass.CONNECT, expected)


def test_connection_closed_while_idle_costs_nobody_a_page():
    async def run() -> tuple[list[bytes], int, int]:
        async def handler(head, writer):
            writer.write(answer(b"ok"))
            writer.close()

        async with lab(handler) as (downloader, server):
            bodies = [(await downloader.fetch("http://example.cn/")).body for _ in range(5)]
            return bodies, len(server.heads), server.connections

    bodies, heads, connections = asyncio.run(run())
    assert bodies == [b"ok"] * 5
    assert heads == connections == 5


# ---- redirects


def redirect(to: str, status: str = "302 Found") -> bytes:
    return answer(b"moved", status, f"Location: {to}\r\n")


def test_redirects_are_followed_and_every_address_is_announced():
    async def run():
        asked: list[str] = []

        async def before(url: str) -> None:
            asked.append(url)

        steps = serve(
            redirect("/b?x=1#f"), redirect("//other.cn/c"), redirect("搜索", "301 M"), answer(b"end")
        )
        async with lab(steps) as (downloader, server):
            response = await downloader.fetch("http://example.cn/a", before_request=before)
            return response, asked, server.connections

    response, asked, connections = asyncio.run(run())
    assert asked == [
        "http://example.cn/a",
        "http://example.cn/b?x=1",
        "http://other.cn/c",
        "http://other.cn/%E6%90%9C%E7%B4%A2",
    ]
    assert (response.url, response.body) == (asked[-1], b"end")
    assert connections == 1


def test_headers_of_one_host_are_not_told_to_another():
    async def run() -> list[str]:
        async def signed_in(url: str) -> dict[str, str]:
            return {"Cookie": url[7:9]}

        steps = serve(redirect("/b"), redirect("//bb.cn/c"), answer(b"end"))
        async with lab(steps) as (downloader, server):
            await downloader.fetch(
                "http://aa.cn/a", headers={"If-None-Match": '"v"'}, before_request=signed_in
            )
            return server.heads

    heads = asyncio.run(run())
    assert ["If-None-Match" in head for head in heads] == [True, True, False]
    assert [head.split("Cookie: ")[1][:2] for head in heads] == ["aa", "aa", "bb"]


def test_redirect_loop_ends_at_the_first_repeat():
    async def run():
        async with lab(serve(redirect("/b"), redirect("/a"))) as (downloader, server):
            with pytest.raises(FetchError) as caught:
                await downloader.fetch("http://example.cn/a")
            return caught.value.error, len(server.heads)

    assert asyncio.run(run()) == (ErrorClass.REDIRECTS, 2)


def test_endless_redirects():
    async def run():
        async def handler(head, writer):
            writer.write(redirect(f"/{len(server.heads)}"))

        async with lab(handler) as (downloader, server):
            with pytest.raises(FetchError) as caught:
                await downloader.fetch("http://example.cn/a")
            return caught.value.error, len(server.heads)

    assert asyncio.run(run()) == (ErrorClass.REDIRECTS, 6)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("file:///etc/passwd", ErrorClass.SCHEME_REFUSED),
        ("http://169.254.169.254/latest/meta-data", ErrorClass.ADDRESS_REFUSED),
        ("http://user:secret@example.cn/", ErrorClass.ADDRESS_REFUSED),
    ],
)
def test_redirects_pass_the_guard(to, expected):
    assert failure(serve(redirect(to))).error is expected


def test_hook_ends_a_fetch_before_anything_is_sent():
    async def run():
        async def robots(url: str) -> None:
            raise FetchError(ErrorClass.ROBOTS, url)

        async with lab(serve(answer(b"x"))) as (downloader, server):
            with pytest.raises(FetchError) as caught:
                await downloader.fetch("http://example.cn/a", before_request=robots)
            return caught.value.error, server.heads

    assert asyncio.run(run()) == (ErrorClass.ROBOTS, [])


# ---- the guard on the real web


def unlabbed(url: str) -> tuple[ErrorClass, list[str]]:
    async def run():
        server = Server(serve(answer(b"secret")))
        async with server.running() as port, Downloader(user_agent="t", clock=lambda: NOW) as downloader:
            with pytest.raises(FetchError) as caught:
                await downloader.fetch(url.format(port=port))
            return caught.value.error, server.heads

    return asyncio.run(run())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.0.0.1."]
)
def test_without_lab_loopback_is_refused_however_written(host):
    assert unlabbed(f"http://{host}:{{port}}/") == (ErrorClass.ADDRESS_REFUSED, [])


def resolving(monkeypatch, host: str, port: int, ips: str) -> None:
    """Let libcurl know these addresses of a name, as if DNS had said so."""

    def handle() -> pycurl.Curl:
        curl = made()
        curl.setopt(pycurl.RESOLVE, [f"{host}:{port}:{ips}"])
        return curl

    made = pycurl.Curl
    monkeypatch.setattr(pycurl, "Curl", handle)


@pytest.mark.parametrize(
    "ips", ["127.0.0.1", "10.0.0.8,127.0.0.1", "[::1]", "[::ffff:7f00:1]", "169.254.169.254"]
)
def test_name_that_resolves_to_a_private_address_is_refused(monkeypatch, ips):
    async def run():
        server = Server(serve(answer(b"secret")))
        async with server.running() as port, Downloader(user_agent="t", clock=lambda: NOW) as downloader:
            resolving(monkeypatch, "rebinds.example", port, ips)
            with pytest.raises(FetchError) as caught:
                await downloader.fetch(f"http://rebinds.example:{port}/")
            return caught.value.error, server.connections

    assert asyncio.run(run()) == (ErrorClass.ADDRESS_REFUSED, 0)


@pytest.mark.parametrize(("path", "expected"), [("", b"within"), ("/away", ErrorClass.ADDRESS_REFUSED)])
def test_a_host_the_catalog_trusts_may_be_private_and_no_other(monkeypatch, path, expected):
    """Not even one that the trusted host itself leads to."""

    async def run():
        away = answer(status="302 Found", headers="Location: http://127.0.0.1/\r\n")
        server = Server(serve(away if path else answer(b"within")))
        async with (
            server.running() as port,
            Downloader(
                user_agent="t", clock=lambda: NOW, private=lambda url: "intranet.example" in url
            ) as downloader,
        ):
            resolving(monkeypatch, "intranet.example", port, "127.0.0.1")
            try:
                url = f"http://intranet.example:{port}/"
                return (await downloader.fetch(url, trusts=lambda url: "intranet.example" in url)).body
            except FetchError as error:
                return error.error

    assert asyncio.run(run()) == expected


def test_what_others_link_to_on_a_private_host_is_refused_even_over_a_connection_that_stands(monkeypatch):
    async def run():
        away = answer(status="302 Found", headers="Location: /admin\r\n")
        server = Server(serve(answer(b"within"), away))
        private = {"private": lambda url: "searx.example" in url}
        async with (
            server.running() as port,
            Downloader(user_agent="t", clock=lambda: NOW, **private) as downloader,
        ):
            resolving(monkeypatch, "searx.example", port, "127.0.0.1")
            origin = f"http://searx.example:{port}"
            search = lambda url: url.partition("?")[0] == f"{origin}/search"  # noqa: E731
            said = [(await downloader.fetch(f"{origin}/search?q=a", trusts=search)).body]
            for url, trusts in (("/admin", nothing), ("/search?q=b", nothing), ("/search?away", search)):
                with pytest.raises(FetchError) as caught:
                    await downloader.fetch(origin + url, trusts=trusts)
                said.append(caught.value.error)
            return said

    assert asyncio.run(run()) == [b"within", *[ErrorClass.ADDRESS_REFUSED] * 3]


def test_name_that_does_not_resolve():
    assert unlabbed("http://never-looked-up.onion:{port}/") == (ErrorClass.CONNECT, [])


# ---- proxies


def proxied(handler, url: str, **settings) -> tuple[Response | FetchError, list[str]]:
    async def run() -> tuple[Response | FetchError, list[str]]:
        server = Server(handler)
        async with (
            server.running() as port,
            Downloader(
                user_agent="t", clock=lambda: NOW, proxy=f"http://user:secret@127.0.0.1:{port}", **settings
            ) as downloader,
        ):
            try:
                return await downloader.fetch(url), server.heads
            except FetchError as error:
                return error, server.heads

    return asyncio.run(run())


def test_proxy_on_a_private_address_is_asked_for_the_whole_address():
    response, heads = proxied(serve(answer(b"x")), "http://example.cn/a%2fb?c")
    assert isinstance(response, Response)
    assert heads[0].startswith("GET http://example.cn/a%2fb?c HTTP/1.1\r\nHost: example.cn\r\n")
    assert "Proxy-Authorization: Basic" in heads[0]


def test_literal_private_addresses_are_refused_behind_a_proxy_too():
    error, heads = proxied(serve(answer(b"x")), "http://10.0.0.1/")
    assert isinstance(error, FetchError)
    assert (error.error, heads) == (ErrorClass.ADDRESS_REFUSED, [])


@pytest.mark.parametrize("status", ["407 Who", "403 No", "502 Dead"])
def test_what_a_proxy_refuses_is_no_answer_of_the_host(status):
    error, heads = proxied(serve(answer(b"", status)), "https://example.cn/")
    assert isinstance(error, FetchError)
    assert error.error is ErrorClass.CONNECT
    assert error.response is None
    assert "secret" not in str(error)
    assert heads[0].startswith("CONNECT example.cn:443 ")


@pytest.mark.parametrize("trusted", [True, False])
def test_certificates_are_checked(monkeypatch, tmp_path, trusted):
    certificate, context = self_signed("example.cn", tmp_path)

    async def handler(head, writer):
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await writer.start_tls(context)
        else:
            writer.write(answer(b"private"))

    if trusted:
        monkeypatch.setattr(certifi, "where", lambda: str(certificate))
    got, _ = proxied(handler, "https://example.cn/")
    if trusted:
        assert isinstance(got, Response)
        assert got.body == b"private"
    else:
        assert isinstance(got, FetchError)
        assert got.error is ErrorClass.CONNECT


def self_signed(host: str, folder: Path) -> tuple[Path, ssl.SSLContext]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
    private = folder / "key.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, private)
    return path, context


def test_proxies_of_the_environment_are_ignored(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert fetch(serve(answer(b"direct"))).body == b"direct"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "127.0.0.1:8080", "ftp://127.0.0.1"])
def test_proxies_that_would_leave_names_unguarded_are_refused(proxy):
    with pytest.raises(ValueError, match="socks5h"):
        Downloader(user_agent="t", clock=lambda: NOW, proxy=proxy)


def test_the_first_byte_is_timed_without_connecting_and_without_the_body():
    slow_s = 0.02

    async def slow_body(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(slow_s)
        whole = answer(b"x" * 20)
        writer.write(whole[:-10])
        await writer.drain()
        await asyncio.sleep(slow_s)
        writer.write(whole[-10:])

    async def run():
        async with lab(slow_body) as (downloader, _):
            return [await downloader.fetch("http://example.cn/") for _ in range(2)]

    for response in asyncio.run(run()):
        assert slow_s * 0.9 <= response.first_byte_s < response.elapsed_s
