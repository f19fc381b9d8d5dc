"""The page server of the crawl benches: whole answers kept in memory, so that it never is what limits.

`python -m research.tools.pageserver` prints one line of JSON with its port and serves until its standard input is closed.
Review pages lie at `review_path(number)` of every host; a result page of product p, site s and page k (see
`answer_of_search`) lists `HITS` of them (see `research.tools.addresses`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from typing import Protocol, cast
from urllib.parse import unquote_plus

from app.run.process import run_coroutine
from research.tools.addresses import HITS, PAGES_OF_A_TASK, SITES, found_for, review_path, site
from research.tools.pages import result_page, review_page

_REVIEW = re.compile(rb"GET /p/(\d+)\.html ")
_SEARCH = re.compile(rb"GET /s\?q=(\S+)&page=(\d+) ")
_QUERY = re.compile(r"product(\d+) site:shop(\d+)\.example")


def answer_of_search(product: int, site_number: int, page: int) -> bytes:
    """The result page (from 1) of a product on a site, whose hits lead to that site."""
    place = (product * SITES + site_number) * PAGES_OF_A_TASK + page - 1
    numbers = range(place * HITS, (place + 1) * HITS)
    return result_page(page, [f"http://{site(site_number)}{review_path(n)}" for n in numbers])


class Answers:
    """Every answer, made before the first request but for result pages: they are few."""

    def __init__(self, pages: int) -> None:
        self._pages = [answered(review_page(number, found_for(number))) for number in range(pages)]
        self._robots = answered(b"User-agent: *\nAllow: /\n", "text/plain")
        self._lost = answered(b"there is no such page", "text/plain", "404 Not Found")

    def to(self, request: bytes) -> bytes:
        """The answer to a request's head."""
        if (match := _REVIEW.match(request)) is not None:
            number = int(match[1])
            return self._pages[number] if number < len(self._pages) else self._lost
        if request.startswith(b"GET /robots.txt "):
            return self._robots
        if (match := _SEARCH.match(request)) is not None:
            asked = _QUERY.fullmatch(unquote_plus(match[1].decode("ascii")))
            if asked is not None:
                return answered(answer_of_search(int(asked[1]), int(asked[2]), int(match[2])))
        return self._lost


def answered(body: bytes, kind: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    """A whole answer, head and body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


class Answering(Protocol):
    """What knows the answers; see `Connection`."""

    def to(self, request: bytes) -> bytes:
        """The answer to a request's head."""


class Connection(asyncio.Protocol):
    """A kept connection on which requests are answered in their order."""

    def __init__(self, answers: Answering) -> None:
        self._answers = answers
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connected."""
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        assert self._transport is not None
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(self._answers.to(request))


async def _serve(pages: int) -> None:
    answers = Answers(pages)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers), "127.0.0.1", 0, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Serve so many review pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--pages", type=int, required=True)
    run_coroutine(_serve(parser.parse_args().pages))


if __name__ == "__main__":
    main()
