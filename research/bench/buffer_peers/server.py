"""The page server of the buffer bench: no delay, answers of result pages made beforehand.

`python -m research.bench.buffer_peers.server --results N` prints its port and serves until its standard input is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote_plus

from app.run.process import run_coroutine
from app.run.version import ROOT
from research.bench.buffer_peers.web import SITES, found_for, hits
from research.tools.pages import result_page, review_page
from research.tools.pageserver import Connection, answered
from splitter.errors import ReviewloopError

_NEW = re.compile(rb"GET (?:http://[^/]+)?/n/(\d+)\.html ")
_SEARCH = re.compile(rb"GET (?:http://[^/]+)?/s\?q=(\S+) ")
_QUERY = re.compile(r"product(\d+) site:shop(\d+)\.example")
# A small page: what is measured is the way to Redis and the database, not reading.
_REVIEWS, _BYTES = 2, 3000


class Answers:
    """Answers to requests; those to the first `results` searches are made at once."""

    def __init__(self, results: int) -> None:
        self._results = [answered(result_page(number, hits(number))) for number in range(results)]
        self._robots = answered(b"User-agent: *\nAllow: /\n", "text/plain")
        self._lost = answered(b"there is no such page", "text/plain", "404 Not Found")

    def to(self, request: bytes) -> bytes:
        """The answer to a request's head."""
        if (match := _NEW.match(request)) is not None:
            number = int(match[1])
            return answered(review_page(number, found_for(number), records=_REVIEWS, size=_BYTES))
        if (match := _SEARCH.match(request)) is not None:
            asked = _QUERY.fullmatch(unquote_plus(match[1].decode("ascii")))
            number = int(asked[1]) * SITES + int(asked[2]) if asked is not None else -1
            if 0 <= number < len(self._results):
                return self._results[number]
        return self._robots if request.startswith(b"GET /robots.txt ") else self._lost


@contextmanager
def page_server(results: int) -> Iterator[int]:
    """The server in a process of its own; its port. Raises ReviewloopError."""
    command = [sys.executable, "-m", "research.bench.buffer_peers.server", "--results", str(results)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        port = process.stdout.readline()
        if not port:
            raise ReviewloopError("the page server did not start: its message is above")
        try:
            yield int(port)
        finally:
            process.stdin.close()
            process.wait(timeout=10)


async def _serve(results: int) -> None:
    answers = Answers(results)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answers), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Serve so many result pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--results", type=int, required=True)
    run_coroutine(_serve(parser.parse_args().results))


if __name__ == "__main__":
    main()
