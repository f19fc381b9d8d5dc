"""Servers and pages made to do harm: each ends in its typed outcome, none crashes, hangs or eats the memory.

python -m pytest tests/reading/test_hostile_pages.py          the suite
PYTHONPATH=. python tests/reading/test_hostile_pages.py        its outcomes as a table
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import brotli
import pytest
import zstandard
from patience import PATIENCE_S
from scripted_server import NOW, answer, lab, small

from splitter.catalog.rules import PageRules, ResultRules
from tasks.domain.address import authority_of, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import PageRead, Response
from tasks.fetching.downloader import FetchLimits
from tasks.fetching.guard import check_authority
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.results import read_results

URL = "http://example.cn/a"
PAGE = PageRules(review="div.r", body=".b", title=".t", page_title="title")
RESULTS = ResultRules(hit="div.hit", link="a@href", title="a", abstract="p")
REVIEW = b"<div class=r><b class=t>t</b><p class=b>body</p></div>"

Pieces = Callable[[], AsyncIterator[bytes]]


async def one(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def endless(first: bytes, piece: bytes, pause_s: float = 0.0) -> AsyncIterator[bytes]:
    yield first
    while True:
        yield piece
        await asyncio.sleep(pause_s)


async def rising(first: bytes, template: str) -> AsyncIterator[bytes]:
    yield first
    for number in itertools.count():
        yield template.format(number).encode()


async def fetched(pieces: Pieces, limits: FetchLimits, timeout_s: float) -> Response:
    async def handler(_head: bytes, writer: asyncio.StreamWriter) -> None:
        async for piece in pieces():
            writer.write(piece)
            await writer.drain()
        writer.close()

    async with lab(handler, limits=limits) as (downloader, _):
        return await downloader.fetch(URL, timeout_s=timeout_s)


def read(response: Response) -> PageRead:
    text = decode(response.body, response.headers).text
    return read_page(text, response.url, PAGE, now=NOW)


def outcome(pieces: Pieces, *, limits: FetchLimits | None = None, timeout_s: float = PATIENCE_S) -> str:
    """What comes of a page: ``page`` with the number of its reviews, or the class of the error."""
    try:
        page = read(asyncio.run(fetched(pieces, limits or small(), timeout_s)))
    except FetchError as error:
        return error.error.value
    return f"page {len(page.reviews)}"


def packed(coding: str, sent: bytes) -> bytes:
    return answer(sent, headers=f"Content-Encoding: {coding}\r\n")


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def zstd_with_window(log: int) -> bytes:
    """A small frame that asks its reader for a window of 2^log bytes."""
    # Magic, a descriptor without size and checksum, the window, then one last raw block of 4 bytes.
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3]) + (1 | 4 << 3).to_bytes(3, "little") + b"body"


ZEROS = bytes(10_000_000)
GZIP_BOMB = gzip.compress(ZEROS)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

BOMBS = {
    "gzip bomb": packed("gzip", GZIP_BOMB),
    "zlib bomb": packed("deflate", zlib.compress(ZEROS)),
    "raw deflate bomb": packed("deflate", raw_deflate(ZEROS)),
    "brotli bomb": packed("br", brotli.compress(ZEROS, quality=1)),
    "zstd bomb": packed("zstd", zstandard.compress(ZEROS)),
    "zstd bomb in 40 frames": packed("zstd", zstandard.compress(ZEROS[:250_000]) * 40),
    "gzip bomb in 10 members": packed("gzip", gzip.compress(ZEROS[:1_000_000]) * 10),
    "50 empty gzip members": packed("gzip", gzip.compress(b"") * 50),
    "50 empty zstd frames": packed("zstd", zstandard.compress(b"") * 50),
}
BROKEN_CODINGS = {
    "gzip in gzip": (packed("gzip, gzip", gzip.compress(GZIP_BOMB)), ErrorClass.BAD_CONTENT),
    "gzip in brotli": (packed("gzip, br", brotli.compress(GZIP_BOMB, quality=1)), ErrorClass.BAD_CONTENT),
    "zstd with a window of 128 MiB": (packed("zstd", zstd_with_window(27)), ErrorClass.BAD_CONTENT),
    "brotli that is none": (packed("br", b"<html>no brotli</html>"), ErrorClass.BAD_CONTENT),
    "zstd that is none": (packed("zstd", b"<html>no zstd</html>"), ErrorClass.BAD_CONTENT),
    "brotli without its end": (packed("br", brotli.compress(REVIEW * 50)[:-3]), ErrorClass.CUT_OFF),
    "zstd without its end": (packed("zstd", zstandard.compress(REVIEW * 50)[:-3]), ErrorClass.CUT_OFF),
}
LENGTHS = {
    "length too long": (answer(REVIEW, length=len(REVIEW) + 9), ErrorClass.CUT_OFF),
    "length over the limit": (answer(REVIEW, length=50_001), ErrorClass.TOO_LARGE),
    "length of 400 digits": (OK + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n", ErrorClass.TOO_LARGE),
    "length below 0": (answer(REVIEW, length=-5), ErrorClass.BAD_CONTENT),
    "length that is no number": (OK + b"Content-Length: five\r\n\r\n" + REVIEW, ErrorClass.BAD_CONTENT),
    "two lengths": (
        answer(REVIEW, headers="Content-Length: 5\r\n"),
        ErrorClass.BAD_CONTENT,
    ),
    "chunk of no size": (CHUNKED + b"banana\r\nhello\r\n0\r\n\r\n", ErrorClass.CUT_OFF),
    "chunk of 2^64 bytes": (CHUNKED + b"10000000000000000\r\nhello\r\n0\r\n\r\n", ErrorClass.CUT_OFF),
}
HEADS = {
    "header flood": OK + b"X: a\r\n" * 5000 + b"\r\n",
    "header of a megabyte": OK + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "1000 interim answers": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000 + answer(REVIEW),
}
ENDLESS = {
    "endless body": (lambda: endless(OK + b"\r\n", bytes(4096)), ErrorClass.TOO_LARGE),
    "endless chunks": (lambda: endless(CHUNKED, b"1000\r\n" + bytes(4096) + b"\r\n"), ErrorClass.TOO_LARGE),
    "endless chunk extension": (lambda: endless(CHUNKED + b"5;", b"a" * 4096), ErrorClass.TOO_LARGE),
    "endless headers": (lambda: rising(OK, "X-{}: a\r\n"), ErrorClass.TOO_LARGE),
    "endless header": (lambda: endless(OK + b"X: ", b"a" * 4096), ErrorClass.TOO_LARGE),
    "endless interim answers": (
        lambda: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ErrorClass.TOO_LARGE,
    ),
    "endless trailers": (lambda: endless(CHUNKED + b"0\r\n", b"X: a\r\n"), ErrorClass.TOO_LARGE),
    "endless 403": (lambda: endless(b"HTTP/1.1 403 No\r\n\r\n", bytes(4096)), ErrorClass.FORBIDDEN),
}
DRIPS = {
    "slow drip of a head": lambda: endless(OK, b"", 0.01),
    "slow drip of a header": lambda: endless(OK + b"X: ", b"a", 0.01),
    "slow drip of a body": lambda: endless(answer(length=40_000), b".", 0.01),
    "slow drip of chunks": lambda: endless(CHUNKED, b"1\r\na\r\n", 0.01),
}
MARKUP = {
    "tags nested 100,000 deep": (b"<div>" * 100_000 + REVIEW, ErrorClass.TOO_LARGE.value),
    "100,000 attributes": (
        b"<p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">" + REVIEW,
        ErrorClass.TOO_LARGE.value,
    ),
    "formatting left open": (b"<b><i x=1><u>" * 3000 + b"<p>x" * 3000 + REVIEW, ErrorClass.TOO_LARGE.value),
    "NUL bytes": (b"\0<div\0>" + b"\0" * 5000 + REVIEW, "page 1"),
    "nothing but NUL bytes": (b"\0" * 40_000, ErrorClass.BAD_RULE.value),
    "broken UTF-8": (b"<meta charset=utf-8>\xe5\x85 \xff\xfe\xc0\xaf\xed\xa0\x80" + REVIEW, "page 1"),
    "an encoding nobody has": (b"<meta charset=x-no-such><p>\xe5\x85\x89</p>" + REVIEW, "page 1"),
    "an encoding that is no page's": (b"<meta charset=unicode_escape>\\x41" + REVIEW, "page 1"),
    "script that writes records": (
        b"<script>document.write('" + REVIEW + b"')</script>",
        ErrorClass.BAD_RULE.value,
    ),
    "script that never ends": (REVIEW + b"<script>" + b"<div class=r>" * 900, "page 1"),
    "comment that never ends": (REVIEW + b"<!--" + b"-" * 40_000, "page 1"),
    "tag that never ends": (REVIEW + b"<div " + b"a='" * 10_000, "page 1"),
    "entities without end": (b"&" * 20_000 + b"&#x110000;&#0;&#xD800;&amp" * 500 + REVIEW, "page 1"),
    "entity bomb": (
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        + REVIEW
        + b"&b;" * 5000,
        "page 1",
    ),
    "a picture called text": (b"\x89PNG\r\n" + REVIEW, ErrorClass.BAD_CONTENT.value),
    "empty": (b"", ErrorClass.BAD_RULE.value),
}


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_bombs(name):
    assert outcome(lambda: one(BOMBS[name])) == ErrorClass.TOO_LARGE


@pytest.mark.parametrize("name", BROKEN_CODINGS)
def test_codings_that_make_no_sense(name):
    sent, expected = BROKEN_CODINGS[name]
    assert outcome(lambda: one(sent)) == expected


@pytest.mark.parametrize("name", LENGTHS)
def test_wrong_lengths(name):
    sent, expected = LENGTHS[name]
    assert outcome(lambda: one(sent)) == expected


def test_length_too_short_ends_the_page_there_and_the_rest_is_nobodys_answer():
    async def run() -> list[bytes]:
        async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
            body = b"first" if b"/a" in head else b"second"
            writer.write(answer(body + answer(b"smuggled"), length=len(body)))

        async with lab(handler) as (downloader, _):
            return [(await downloader.fetch(f"http://example.cn/{path}")).body for path in "ab"]

    assert asyncio.run(run()) == [b"first", b"second"]


@pytest.mark.parametrize("name", HEADS)
def test_header_floods(name):
    assert outcome(lambda: one(HEADS[name])) == ErrorClass.TOO_LARGE


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends(name):
    pieces, expected = ENDLESS[name]
    assert outcome(pieces) == expected


@pytest.mark.parametrize("name", DRIPS)
def test_slow_drips_end_with_their_time(name):
    assert outcome(DRIPS[name], timeout_s=0.1) == ErrorClass.TIMEOUT


@pytest.mark.parametrize("name", MARKUP)
def test_markup_that_does_harm(name):
    body, expected = MARKUP[name]
    assert outcome(lambda: one(answer(body)), limits=FetchLimits()) == expected


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("/a", ErrorClass.REDIRECTS),
        ("/{}", ErrorClass.REDIRECTS),
        ("//example.cn/{}?" + "x" * 7000, ErrorClass.REDIRECTS),
        ("/" + "x" * 9000, ErrorClass.ADDRESS_REFUSED),
        ("http://[::1", ErrorClass.ADDRESS_REFUSED),
        ("http://10.0.0.1/", ErrorClass.ADDRESS_REFUSED),
        ("http://0x7f.1.1/", ErrorClass.ADDRESS_REFUSED),
        ("//example.cn@10.0.0.1/", ErrorClass.ADDRESS_REFUSED),
        ("javascript:alert(1)", ErrorClass.SCHEME_REFUSED),
        ("file:///etc/passwd", ErrorClass.SCHEME_REFUSED),
        ("gopher://example.cn:6379/_FLUSHALL", ErrorClass.SCHEME_REFUSED),
    ],
)
def test_redirects_that_lead_nowhere_good(to, expected):
    numbers = itertools.count()

    async def run() -> None:
        async def handler(_head: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"", "302 Found", f"Location: {to.format(next(numbers))}\r\n"))

        async with lab(handler) as (downloader, _):
            await downloader.fetch(URL)

    with pytest.raises(FetchError) as caught:
        asyncio.run(run())
    assert caught.value.error is expected
    assert next(numbers) <= 6


HITS = {
    "http://10.1.2.3/": ErrorClass.ADDRESS_REFUSED,
    "http://169.254.169.254/latest/meta-data": ErrorClass.ADDRESS_REFUSED,
    "http://2130706433/": ErrorClass.ADDRESS_REFUSED,
    "http://0177.0.0.1/": ErrorClass.ADDRESS_REFUSED,
    "http://0x7f.0.0.1/": ErrorClass.ADDRESS_REFUSED,
    "http://[::ffff:192.168.0.1]/": ErrorClass.ADDRESS_REFUSED,
    "http://[::1]:8080/": ErrorClass.ADDRESS_REFUSED,
    "https://bank.cn@127.0.0.1/": None,
    "http://bank.cn\\@127.0.0.1/": "http://bank.cn/@127.0.0.1/",
    "javascript:alert(1)": None,
    "data:text/html,<p>": None,
    "ftp://example.cn/": None,
    "file:///etc/passwd": None,
    "//example.cn/y": "http://example.cn/y",
}


@pytest.mark.parametrize("reference", HITS)
def test_hits_that_lead_nowhere_good(reference):
    expected = HITS[reference]
    html = f'<div class=hit><a href="{reference}">x</a></div><div class=hit><a href="/good">y</a></div>'
    hits = [hit.url for hit in read_results(html, "http://search.cn/s", RESULTS).hits]
    assert hits[-1] == "http://search.cn/good"
    if expected is None:
        assert len(hits) == 1
    elif isinstance(expected, ErrorClass):
        with pytest.raises(FetchError) as caught:
            check_authority(authority_of(sendable(hits[0])), allow_loopback=False)
        assert caught.value.error is expected
    else:
        assert hits[0] == expected


LONG_LINE = REVIEW + b"x" * 50_000_000
ZEROS_200_MB = partial(bytes, 200_000_000)
BIG = {
    "single line of 50 MB": (lambda: answer(LONG_LINE), ErrorClass.TOO_LARGE.value),
    "single line of 50 MB, length not told": (lambda: OK + b"\r\n" + LONG_LINE, ErrorClass.TOO_LARGE.value),
    "single line at the limit": (lambda: answer(LONG_LINE[:4_900_000]), "page 1"),
    "gzip bomb of 200 MB": (
        lambda: packed("gzip", gzip.compress(ZEROS_200_MB(), 1)),
        ErrorClass.TOO_LARGE.value,
    ),
    "brotli bomb of 200 MB": (
        lambda: packed("br", brotli.compress(ZEROS_200_MB(), quality=1)),
        ErrorClass.TOO_LARGE.value,
    ),
    "zstd bomb of 200 MB": (
        lambda: packed("zstd", zstandard.compress(ZEROS_200_MB())),
        ErrorClass.TOO_LARGE.value,
    ),
}
# The largest body, the largest page it may inflate to, and what reading one takes; measured: 20 to 60 MB.
MOST_GROWTH_MB = 100
CHILD = """
import asyncio, sys
from datetime import UTC, datetime
from splitter.catalog.rules import PageRules
from tasks.reading.decode import decode
from tasks.fetching.downloader import Downloader
from tasks.reading.extract import read_page
from tasks.domain.failures import FetchError

NOW = datetime.now(UTC)
PAGE = PageRules(review="div.r", body=".b", title=".t", page_title="title")

def peak_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

async def ask(path):
    async with Downloader(user_agent="t", clock=lambda: NOW, lab=("127.0.0.1", int(sys.argv[1]))) as downloader:
        return await downloader.fetch("http://example.cn/" + path)

def outcome(path):
    try:
        response = asyncio.run(ask(path))
        text = decode(response.body, response.headers).text
        return f"page {len(read_page(text, response.url, PAGE, now=NOW).reviews)}"
    except FetchError as error:
        return error.error.value

outcome("small")
before = peak_kb()
print(outcome("big"), (peak_kb() - before) // 1024, sep=";")
"""


def outcome_apart(sent: bytes) -> tuple[str, int]:
    """What comes of an answer in a process of its own, and by how many MB its memory grew at the most."""

    async def run() -> tuple[str, int]:
        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                writer.write(sent if b"/big" in head else answer(REVIEW))
                await writer.drain()
            writer.close()

        async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", CHILD, str(port)),
                stdout=asyncio.subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            )
            said, _ = await child.communicate()
        word, grown_mb = said.decode().strip().split(";")
        return word, int(grown_mb)

    return asyncio.run(run())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", BIG)
def test_memory_is_bounded(name):
    sent, expected = BIG[name]
    word, grown_mb = outcome_apart(sent())
    assert word == expected
    assert grown_mb < MOST_GROWTH_MB


def main() -> None:
    """Print every case with its outcome."""
    cases: dict[str, Callable[[], str]] = {}
    for name, sent in {**BOMBS, **HEADS}.items():
        cases[name] = partial(outcome, partial(one, sent))
    for name, (sent, _) in {**BROKEN_CODINGS, **LENGTHS}.items():
        cases[name] = partial(outcome, partial(one, sent))
    for name, (pieces, _) in ENDLESS.items():
        cases[name] = partial(outcome, pieces)
    for name, pieces in DRIPS.items():
        cases[name] = partial(outcome, pieces, timeout_s=0.1)
    for name, (body, _) in MARKUP.items():
        cases[name] = partial(outcome, partial(one, answer(body)), limits=FetchLimits())
    for name, run in cases.items():
        print(f"{name:40} {run()}")
    for name, (sent, _) in BIG.items():
        word, grown_mb = outcome_apart(sent())
        print(f"{name:40} {word}, memory +{grown_mb} MB")


if __name__ == "__main__":
    main()
