"""The robots.txt of each host: fetched once a day, kept in the store, looked up before every request for a page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import Connection

from tasks.domain.address import authority_of
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.fetching.robots import RobotsRules
from tasks.store.hosts import Robots, load_robots, save_robots
from tasks.store.writer import BatchOperation, Writer

log = logging.getLogger("reviewloop.robots")

KEEP = timedelta(hours=24)
KEEP_UNANSWERED = timedelta(seconds=5)

Fetch = Callable[[str], Awaitable[Response]]


class RobotsBook:
    """Rules of hosts: from memory, from the store, or fetched with the downloader of the node that needs them.

    One per process; for the coroutines of one event loop.

    Args:
        clock: monotonic seconds, for the age of what is in memory.
    """

    def __init__(self, writer: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._known: dict[str, tuple[float, RobotsRules]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def rules(self, url: str, fetch: Fetch) -> RobotsRules:
        """The rules of the host of `url`.

        Args:
            fetch: fetches a URL, raising FetchError; for the robots.txt itself.
        """
        host = authority_of(url) or urlsplit(url).netloc.lower()
        if (kept := self._kept(host)) is not None:
            return kept
        try:
            async with self._locks.setdefault(host, asyncio.Lock()):
                return self._kept(host) or await self._look_up(url, host, fetch)
        finally:
            self._locks.pop(host, None)

    def _kept(self, host: str) -> RobotsRules | None:
        kept = self._known.get(host)
        return kept[1] if kept is not None and self._clock() < kept[0] else None

    async def _look_up(self, url: str, host: str, fetch: Fetch) -> RobotsRules:
        now, stored = await self._writer.soon(_LOAD, host)
        rules = RobotsRules.parse(stored.text, stored.status) if stored else None
        # An answer is kept as long as the store keeps it; what is none is asked again soon.
        if not (stored and rules and (rules.state.answered or now - stored.fetched_at <= KEEP_UNANSWERED)):
            stored = await self._fetch(f"{urlsplit(url).scheme}://{host}/robots.txt", host, now, fetch)
            rules = RobotsRules.parse(stored.text, stored.status)
        if rules.state.answered:
            self._known[host] = (self._clock() + KEEP.total_seconds(), rules)
        return rules

    async def _fetch(self, url: str, host: str, now: datetime, fetch: Fetch) -> Robots:
        status: int | None
        try:
            response = await fetch(url)
            status, text = response.status, response.body.decode("utf-8", "replace")
        except FetchError as error:
            status, text = (error.response.status if error.response else None), ""
        robots = Robots(host, status, text, now)
        # Nobody waits for it: at worst the file is fetched once more.
        self._writer.later(_SAVE, robots).add_done_callback(_saved)
        return robots


def _load(conn: Connection, now: datetime, hosts: Sequence[str]) -> list[tuple[datetime, Robots | None]]:
    stored = load_robots(conn, hosts, now - KEEP)
    return [(now, stored.get(host)) for host in hosts]


def _save(conn: Connection, _now: datetime, files: Sequence[Robots]) -> list[None]:
    for file in files:
        save_robots(conn, file)
    return [None] * len(files)


_SAVE: BatchOperation[Robots, None] = BatchOperation(7, _save)
_LOAD: BatchOperation[str, tuple[datetime, Robots | None]] = BatchOperation(8, _load)


def _saved(saving: asyncio.Future[None]) -> None:
    if not saving.cancelled() and (error := saving.exception()) is not None:
        log.warning("a robots.txt was not kept: %s", error)
