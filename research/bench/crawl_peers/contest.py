"""Common parts of the contestants of `bench crawl`: the call, the figures, the stored rows, and their comparison.

A contestant is a process of its own: it crawls the review pages 0 to N - 1 of the page server once, stores pages
and reviews into a SQLite file and prints `Figures` as JSON.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from research.bench.crawl_peers.readers import Page
from research.tools.meter import BenchError, peak_mb

AT_ONCE = 64
"""Requests in flight: the same for every contestant that takes such a number."""

_COMMIT_EVERY = 100
_SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE pages (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, title TEXT NOT NULL);
CREATE TABLE reviews (
    page_id INTEGER NOT NULL REFERENCES pages (id), key TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL,
    author TEXT NOT NULL, date_text TEXT NOT NULL, rating REAL, PRIMARY KEY (page_id, key)) WITHOUT ROWID;
"""
# The peers' tables have the names and columns of the project's own, as far as they are read here.
_ROWS = """
SELECT pages.url, pages.title, reviews.key, reviews.title, body, author, date_text, rating
FROM pages LEFT JOIN reviews ON reviews.page_id = pages.id ORDER BY pages.id, reviews.key
"""


def review_path(number: int) -> str:
    """Return the path of a review page."""
    return f"/p/{number}.html"


def number_of(url: str) -> int:
    """Return the number of the review page at an address."""
    return int(url.rpartition("/")[2].removesuffix(".html"))


@dataclass(frozen=True, slots=True)
class Call:
    """How a contestant is called.

    Attributes:
        port: of the page server on 127.0.0.1.
        pages: how many to crawl, from number 0 on.
        database: path of a SQLite file, which it makes.
        variant: which way of using the same tool.
    """

    port: int
    pages: int
    database: str
    variant: str

    def urls(self) -> list[str]:
        """Return the addresses of the pages to crawl."""
        return [f"http://127.0.0.1:{self.port}{review_path(number)}" for number in range(self.pages)]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that a contestant measured.

    Attributes:
        pages: stored (of the limit: read).
        seconds: from the first step of the crawl to the last commit; the start of the process is not in it.
        cpu_s: of this process and its children in these seconds, all threads, user and system.
        rss_mb: peak of its resident memory, without its children.
        first_page_at: Unix time of the first page stored.
        parts: CPU seconds by part of the product (`research.tools.cpu_parts`), one-time loads included; of ours only.
        raw_writing_s: CPU seconds of writing the same rows by sqlite3 alone; of ours only.
        process_cpu_s: CPU seconds of the process and its children from their start to their end, user and system, as the process
            that started it measures them.
    """

    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float
    first_page_at: float
    parts: Mapping[str, float] = field(default_factory=dict)
    raw_writing_s: float = 0.0
    process_cpu_s: float = 0.0


class Watch:
    """Measures one crawl from its making to `figures`."""

    def __init__(self) -> None:
        self._began_s, self._began_cpu_s = time.perf_counter(), cpu_s()

    def figures(self, pages: int, first_page_at: float) -> Figures:
        """Return what was measured up to now."""
        seconds = time.perf_counter() - self._began_s
        return Figures(pages, seconds, cpu_s() - self._began_cpu_s, peak_mb(), first_page_at)


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + children_cpu_s()


def children_cpu_s() -> float:
    """Return the CPU seconds of the children that have ended, and of theirs."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def take_part(crawl: Callable[[Call], Figures]) -> None:
    """Crawl as the command line asks, and print the figures."""
    print(json.dumps(asdict(crawl(Call(**json.loads(sys.argv[1]))))))


class Rows:
    """The pages and reviews that a peer stores, committed `_COMMIT_EVERY` pages at a time.

    Attributes:
        pages: stored so far.
        first_page_at: Unix time of the first one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pages = 0
        self.first_page_at = 0.0

    def store(self, url: str, page: Page) -> None:
        """Store a page with its reviews."""
        title, records = page
        if self.pages % _COMMIT_EVERY == 0:
            self._connection.commit()
            self.first_page_at = self.first_page_at or time.time()
        self.pages += 1
        page_id = self._connection.execute(
            "INSERT INTO pages (url, title) VALUES (?, ?)", (url, title)
        ).lastrowid
        rows = [(page_id, *record) for record in records]
        self._connection.executemany("INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


@contextmanager
def stored_in(database: str) -> Iterator[Rows]:
    """Yield the rows of a new database, committed at the end."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(_SCHEMA)
        yield Rows(connection)
        connection.commit()


def page_digests(database: Path) -> dict[int, bytes]:
    """Return a digest of title and reviews (six fields each, by key) of every page stored, by the page's number.

    Raises:
        BenchError: a page is stored twice.
    """
    digests: dict[int, bytes] = {}
    with closing(sqlite3.connect(database)) as connection:
        for url, rows in groupby(connection.execute(_ROWS), key=lambda row: row[0]):
            number = number_of(url)
            if number in digests:
                raise BenchError(f"page {number} is stored twice, the second time as {url}")
            digests[number] = blake2b(repr([row[1:] for row in rows]).encode(), digest_size=16).digest()
    return digests


class Agreement:
    """Compares the fields that the contestants stored of each page."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[bytes, str]] = {}

    def check(self, name: str, digests: dict[int, bytes], pages: int) -> None:
        """Take a contestant's pages; there must be exactly those numbered 0 to `pages` - 1.

        Raises:
            BenchError: some are missing or too many, or one differs from another contestant's.
        """
        if wrong := set(range(pages)).symmetric_difference(digests):
            raise BenchError(
                f"{name} stored {len(digests)} pages instead of {pages}; the first wrong one is {min(wrong)}"
            )
        for number, digest in digests.items():
            first, whose = self._first.setdefault(number, (digest, name))
            if first != digest:
                raise BenchError(f"{name} and {whose} stored different fields of page {number}")
