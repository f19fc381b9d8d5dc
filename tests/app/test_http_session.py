"""A page that a person asks for is fetched as the crawl fetches it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from patience import PATIENCE_S

from app.sites.http_session import AskFailed, ask
from app.views.words import describe, switch_language
from tasks.domain.failures import FetchError
from tasks.fetching.downloader import Downloader
from tasks.fetching.responses import transfer_error
from tasks.worker.settings import CrawlSettings


@contextmanager
def serving(answers: dict[str, bytes]) -> Iterator[tuple[str, int]]:
    """Answer each connection by the path that is asked for, and close it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    path = connection.recv(65536).split(b" ")[1].decode("latin-1")
                    connection.sendall(answers.get(path, http(b"", "404 None")))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def http(body: bytes, status: str = "200 OK", head: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status.encode(), len(body), head, body)


def moved(location: bytes) -> bytes:
    return http(b"", "302 Found", b"Location: " + location + b"\r\n")


def crawled(url: str, lab: tuple[str, int]) -> str:
    """Return the address and the body that the crawl's downloader gets, or its error."""

    async def run() -> str:
        async with Downloader(user_agent="x", clock=lambda: datetime.now(UTC), lab=lab) as downloader:
            response = await downloader.fetch(url)
            return f"{response.url} {response.body!r}"

    try:
        return asyncio.run(run())
    except FetchError as error:
        return str(error)


def asked(url: str, lab: tuple[str, int]) -> str:
    try:
        answer = ask(url, CrawlSettings(lab=lab, request_timeout_s=PATIENCE_S))
    except AskFailed as error:
        return str(error)
    return f"{answer.url} {answer.body!r}"


CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
ANSWERS = {
    "utf-8": moved("/搜索?q=奶".encode()),
    "gbk": moved("/搜索?q=奶".encode("gbk")),
    "latin-1": moved(b"/caf\xe9"),
    "cut off": CUT,
    "chunks cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "no chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\nhello",
    "no gzip": http(b"plain", head=b"Content-Encoding: gzip\r\n"),
    "lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
    "in a circle": moved(b"/first"),
    "elsewhere": moved(b"ftp://a.cn/"),
    "no host": moved(b"http://example..com/"),
}
LED_TO = {
    "utf-8": "/%E6%90%9C%E7%B4%A2?q=%E5%A5%B6",
    "gbk": "/%CB%D1%CB%F7?q=%C4%CC",
    "latin-1": "/caf%E9",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_read_as_the_crawl_reads_it(kind):
    pages = {path: http(b"there") for path in LED_TO.values()}
    with serving({"/first": ANSWERS[kind], **pages}) as lab:
        seen = asked("http://a.cn/first", lab)
        assert seen == crawled("http://a.cn/first", lab)
    if kind in LED_TO:
        assert seen == f"http://a.cn{LED_TO[kind]} b'there'"
    else:
        assert "there" not in seen


def test_redirects_and_answers_of_any_status_are_shown():
    with serving({"/first": moved(b"/second"), "/second": http(b"sorry", "403 No")}) as lab:
        answer = ask("http://a.cn/first", CrawlSettings(lab=lab, request_timeout_s=PATIENCE_S))
    assert (answer.status, answer.body, answer.url) == (403, b"sorry", "http://a.cn/second")
    assert answer.redirects == ("http://a.cn/first",)


@pytest.mark.parametrize(
    "leads_to",
    ["http://127.0.0.1:{port}/second", "/second", "http://10.0.0.1/", "http://localhost:{port}/second"],
)
def test_only_the_address_that_a_person_names_may_be_private(leads_to):
    answers = {"/first": http(b"there"), "/second": http(b"there")}
    with serving(answers) as (host, port):
        answers["/moved"] = moved(leads_to.format(port=port).encode())
        settings = CrawlSettings(request_timeout_s=PATIENCE_S)
        assert ask(f"http://{host}:{port}/first", settings, trusts=lambda _url: True).body == b"there"
        with pytest.raises(AskFailed, match="no public address"):
            ask(f"http://{host}:{port}/moved", settings, trusts=lambda _url: True)
        with pytest.raises(AskFailed, match="no public address"):
            ask(f"http://{host}:{port}/first", settings)


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        (6, "Could not resolve host: x.cn", "x.cn 不是已知的主机名"),
        (7, "Failed to connect to x.cn port 443 after 2 ms: Couldn't connect to server", "连不上服务器"),
        (7, "connect to 10.0.0.1 port 80 failed: Connection refused", "连接被拒绝"),
        (28, "Connection timed out after 10001 milliseconds", "连接超时"),
        (28, "Operation timed out after 30001 milliseconds with 0 bytes received", "操作超时"),
        (28, "Resolving timed out after 4000 milliseconds", "查询域名超时"),
        (60, "SSL certificate problem: self-signed certificate", "证书是自签名的"),
        (56, "Recv failure: Connection reset by peer", "连接被对方重置"),
    ],
)
def test_an_error_of_libcurl_is_explained_in_chinese(code, message, said):
    error = transfer_error(code, message, "x.cn", 30.0, begun=True)
    with switch_language("zh"):
        assert said in describe(error)
