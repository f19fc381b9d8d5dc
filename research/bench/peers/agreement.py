"""Whether contestants brought home the same: a digest of every page with its reviews, compared page by page."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from research.tools.addresses import number_of
from splitter.errors import ReviewloopError

# The peers' tables have the names and columns of the project's own, as far as they are asked for here.
_ROWS = """
SELECT pages.url, pages.title, reviews.key, reviews.title, body, author, date_text, rating
FROM pages LEFT JOIN reviews ON reviews.page_id = pages.id ORDER BY pages.id, reviews.key
"""


class BenchError(ReviewloopError):
    """A measurement that would compare what is not comparable, or a contestant that failed."""


def page_digests(database: Path) -> dict[int, bytes]:
    """Digest of title and reviews (six fields each, by key) of every page stored, by the page's number.

    Raises:
        BenchError: a page is stored twice.
    """
    connection = sqlite3.connect(database)
    try:
        digests: dict[int, bytes] = {}
        for url, rows in groupby(connection.execute(_ROWS), key=lambda row: row[0]):
            number = number_of(url)
            if number in digests:
                raise BenchError(f"page {number} is stored twice, the second time as {url}")
            digests[number] = blake2b(repr([row[1:] for row in rows]).encode(), digest_size=16).digest()
        return digests
    finally:
        connection.close()


class Agreement:
    """Holds what was stored first of each page against what every other contestant stored of it."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[bytes, str]] = {}

    def check(self, name: str, digests: dict[int, bytes], pages: int) -> None:
        """Take a contestant's pages; there must be exactly those numbered 0 to `pages` - 1.

        Raises:
            BenchError: some are missing or too many, or one differs from what another contestant stored.
        """
        if wrong := set(range(pages)).symmetric_difference(digests):
            raise BenchError(
                f"{name} stored {len(digests)} pages instead of {pages}; the first wrong one is {min(wrong)}"
            )
        for number, digest in digests.items():
            first, whose = self._first.setdefault(number, (digest, name))
            if first != digest:
                raise BenchError(f"{name} and {whose} stored different fields of page {number}")
