"""The robots.txt of each host: fetched once a day, kept in the store, looked up before every request for a page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from tasks.domain.address import authority_of
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.fetching.robots import RobotsRules
from tasks.store.queue.hosts import Robots, load_robots, save_robots
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation, Writer

log = logging.getLogger("reviewloop.robots")

KEEP = timedelta(hours=24)
KEEP_UNANSWERED_S = 2.0
"""Seconds that a missing answer is cached: less than a host's first rest, so the probe after it asks again."""


Fetch = Callable[[str], Awaitable[Response]]


class RobotsCache:
    """Rules of hosts: from memory, from the store, or fetched with the downloader of the node that needs them.

    One per process; for the coroutines of one event loop.

    Args:
        clock: monotonic seconds, for the age of cached files.
    """

    def __init__(self, writer: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._known: dict[str, tuple[float, RobotsRules]] = {}
        self._unanswered: dict[tuple[str, str], tuple[float, RobotsRules]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def rules(self, url: str, fetch: Fetch, address: str = "") -> RobotsRules:
        """Return the rules of the host of `url`.

        An answer holds for all addresses and is kept. If there is none, only the address that asked waits a little
        before it asks again: another one may be answered.

        Args:
            fetch: fetches a URL, raising FetchError; for the robots.txt itself. Its other errors are passed on.
            address: source address of the node that asks.
        """
        host = authority_of(url) or urlsplit(url).netloc.lower()
        if (kept := self._get_cached(host, address)) is not None:
            return kept
        try:
            async with self._locks.setdefault(host, asyncio.Lock()):
                return self._get_cached(host, address) or await self._look_up(url, host, fetch, address)
        finally:
            self._locks.pop(host, None)

    def _get_cached(self, host: str, address: str) -> RobotsRules | None:
        for kept in (self._known.get(host), self._unanswered.get((host, address))):
            if kept is not None and self._clock() < kept[0]:
                return kept[1]
        return None

    async def _look_up(self, url: str, host: str, fetch: Fetch, address: str) -> RobotsRules:
        now, stored = await self._writer.soon(_LOAD, host)
        rules = await RobotsRules.read(stored.text, stored.status) if stored else None
        if rules is None or not rules.state.answered:
            stored = await self._fetch(f"{urlsplit(url).scheme}://{host}/robots.txt", host, now, fetch)
            rules = await RobotsRules.read(stored.text, stored.status)
        if rules.state.answered:
            self._known[host] = (self._clock() + KEEP.total_seconds(), rules)
            self._unanswered.pop((host, address), None)
        else:
            self._unanswered[host, address] = (self._clock() + KEEP_UNANSWERED_S, rules)
        return rules

    async def _fetch(self, url: str, host: str, now: datetime, fetch: Fetch) -> Robots:
        status: int | None
        try:
            response = await fetch(url)
            status, text = response.status, response.body.decode("utf-8", "replace")
        except FetchError as error:
            status, text = (error.response.status if error.response else None), ""
        robots = Robots(host, status, text, now)
        # The write is not awaited: at worst the file is fetched once more.
        self._writer.later(_SAVE, robots).add_done_callback(_finish_save)
        return robots


def _load(tx: Transaction, hosts: Sequence[str]) -> list[tuple[datetime, Robots | None]]:
    stored = load_robots(tx, hosts, tx.now - KEEP)
    return [(tx.now, stored.get(host)) for host in hosts]


def _save(tx: Transaction, files: Sequence[Robots]) -> list[None]:
    for file in files:
        save_robots(tx, file)
    return [None] * len(files)


_SAVE: BatchOperation[Robots, None] = BatchOperation(7, _save)
_LOAD: BatchOperation[str, tuple[datetime, Robots | None]] = BatchOperation(8, _load)


def _finish_save(saving: asyncio.Future[None]) -> None:
    if not saving.cancelled() and (error := saving.exception()) is not None:
        log.warning("a robots.txt was not kept: %s", error)
