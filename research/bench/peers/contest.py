"""What every contestant of `bench crawl` shares: how it is called, what it is measured by, what it stores.

A contestant is a process of its own: it crawls the review pages 0 to N - 1 of the page server once, stores pages
and reviews into a SQLite file and prints one line of JSON, `Figures`.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from research.tools.addresses import review_path

AT_ONCE = 64
"""Requests in flight: the same for every contestant that takes such a number."""

Record = tuple[str, str, str, str, str, float]
"""A review's six fields: id, title, body, author, date as written, rating."""

Page = tuple[str, list[Record]]
"""A page's title and its records."""

_COMMIT_EVERY = 50
_HIGHEST_MEMORY = re.compile(r"VmHWM:\s+(\d+) kB")
_SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE pages (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, title TEXT NOT NULL);
CREATE TABLE reviews (
    page_id INTEGER NOT NULL REFERENCES pages (id), key TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL,
    author TEXT NOT NULL, date_text TEXT NOT NULL, rating REAL, PRIMARY KEY (page_id, key)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Call:
    """How a contestant is called.

    Attributes:
        port: of the page server on 127.0.0.1.
        pages: how many to crawl, from number 0 on.
        database: SQLite file to be made.
        variant: which way of using the same tool.
        profile: file for a profile; empty: none.
    """

    port: int
    pages: int
    database: Path
    variant: str
    profile: str

    def urls(self) -> list[str]:
        """Addresses of the pages to crawl."""
        return [f"http://127.0.0.1:{self.port}{review_path(number)}" for number in range(self.pages)]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a contestant measured of itself.

    Attributes:
        pages: stored (of the limit: read).
        seconds: from the first step of the crawl to the last commit; the start of the process is not in it.
        cpu_s: of this process in these seconds, all threads, user and system.
        rss_mb: most memory it ever had resident.
        first_page_at: Unix time of the first page stored.
    """

    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float
    first_page_at: float


def called(arguments: Sequence[str] | None = None, *, variants: Sequence[str] = ("",)) -> Call:
    """Read the command line; the first variant is the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--variant", choices=variants, default=variants[0])
    parser.add_argument("--profile", default="")
    return Call(**vars(parser.parse_args(arguments)))


class Watch:
    """Measures one crawl from its making to `figures`."""

    def __init__(self) -> None:
        self._began_s, self._began_cpu_s = time.perf_counter(), time.process_time()

    def figures(self, pages: int, first_page_at: float) -> Figures:
        """Everything measured up to now."""
        return Figures(
            pages,
            time.perf_counter() - self._began_s,
            time.process_time() - self._began_cpu_s,
            _highest_memory_mb(),
            first_page_at,
        )


def tell(figures: Figures) -> None:
    """Print the result of the process."""
    json.dump(asdict(figures), sys.stdout)
    print()


class Rows:
    """Where peers store: pages and their reviews, committed `_COMMIT_EVERY` pages at a time.

    Attributes:
        pages: stored so far.
        first_page_at: Unix time of the first one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.pages = 0
        self.first_page_at = 0.0

    def page(self, url: str, title: str, records: Sequence[Record]) -> None:
        """Store a page with its reviews."""
        page_id = self.place(url, title)
        self._connection.executemany(
            "INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)", [(page_id, *record) for record in records]
        )

    def place(self, url: str, title: str) -> int:
        """Store a page; its reviews come one by one with `review`."""
        if self.pages % _COMMIT_EVERY == 0:
            self._connection.commit()
            self.first_page_at = self.first_page_at or time.time()
        self.pages += 1
        cursor = self._connection.execute("INSERT INTO pages (url, title) VALUES (?, ?)", (url, title))
        return int(cursor.lastrowid or 0)

    def review(self, page_id: int, record: Record) -> None:
        """Store one review of a page."""
        self._connection.execute("INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)", (page_id, *record))


@contextmanager
def stored_in(database: Path) -> Iterator[Rows]:
    """Rows of a new database, committed at the end."""
    connection = sqlite3.connect(database)
    try:
        connection.executescript(_SCHEMA)
        yield Rows(connection)
        connection.commit()
    finally:
        connection.close()


def _highest_memory_mb() -> float:
    # Not getrusage: its maximum may be that of the process this one was started from.
    match = _HIGHEST_MEMORY.search(Path("/proc/self/status").read_text("ascii"))
    return int(match[1]) / 1024 if match else 0.0
