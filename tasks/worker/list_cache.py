"""Contents of the lists of sites: read once an hour for all products, not once for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tasks.domain.pages import Hit
from tasks.reading.judge.product_match import matchable_text

KEEP_S = 3600.0
MOST_KEPT = 200_000
"""Maximum number of addresses in memory, about 100 MB. The lists read longest ago are dropped first."""


@dataclass(frozen=True, slots=True)
class ListEntries:
    """The entries of a list, with the lists it names.

    Attributes:
        hits: each with its text as keywords are matched with it.
        more: there is a next page of it.
    """

    hits: tuple[tuple[Hit, str], ...]
    more: bool


def matchable(hit: Hit, path: str) -> str:
    """Return the text of a listed address: title, abstract, and the percent-decoded address."""
    return matchable_text(hit.title, [(hit.abstract, path)])


class ListCache:
    """Lists by their addresses. One per process; for the coroutines of one event loop.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, ListEntries]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get_list(
        self, url: str, read: Callable[[], Awaitable[ListEntries]], wait_s: float
    ) -> ListEntries:
        """Return a list from memory, or read it. If another attempt reads it, wait for that.

        Args:
            read: reads the list. Its errors are passed on, and nothing is cached.
            wait_s: the longest wait for another attempt.

        Raises:
            TimeoutError: another attempt still reads it.
        """
        if (kept := self._fresh(url)) is not None:
            return kept
        lock = self._locks.setdefault(url, asyncio.Lock())
        async with asyncio.timeout(wait_s):
            await lock.acquire()
        try:
            if (kept := self._fresh(url)) is None:
                kept = await read()
                self._keep(url, kept)
            return kept
        finally:
            lock.release()
            if not lock.locked():
                self._locks.pop(url, None)

    def _fresh(self, url: str) -> ListEntries | None:
        kept = self._kept.get(url)
        return kept[1] if kept is not None and self._clock() < kept[0] else None

    def _keep(self, url: str, listed: ListEntries) -> None:
        self._kept.pop(url, None)
        self._kept[url] = (self._clock() + KEEP_S, listed)
        size = sum(len(one.hits) for _, one in self._kept.values())
        while size > MOST_KEPT and len(self._kept) > 1:
            _, oldest = self._kept.pop(next(iter(self._kept)))
            size -= len(oldest.hits)
