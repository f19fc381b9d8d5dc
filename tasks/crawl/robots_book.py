"""The robots.txt of each host, fetched once a day and kept in the store; asked before every page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from tasks.crawl.model import FetchError, Response
from tasks.crawl.robots import RobotsRules
from tasks.store.hosts import Robots, load_robots, save_robots
from tasks.store.writer import Writer

KEEP = timedelta(hours=24)
KEEP_UNANSWERED = timedelta(seconds=5)

Fetch = Callable[[str], Awaitable[Response]]


class RobotsBook:
    """What robots.txt says: from memory, from the store, or fetched with the asking node's own downloader.

    One per process; for the coroutines of one event loop.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: dict[str, tuple[datetime, RobotsRules]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def rules(self, url: str, fetch: Fetch) -> RobotsRules:
        """The rules of the host of `url`.

        Args:
            fetch: fetches a URL, raising FetchError; for the robots.txt itself.
        """
        parts = urlsplit(url)
        host = parts.netloc.lower()
        kept = self._known.get(host)
        if kept is not None:
            return kept[1]
        async with self._locks.setdefault(host, asyncio.Lock()):
            kept = self._known.get(host)
            if kept is not None:
                return kept[1]
            now, stored = await self._writer.run(
                lambda conn, now: (now, load_robots(conn, [host], now - KEEP).get(host))
            )
            rules = RobotsRules.parse(stored.text, stored.status) if stored else None
            if stored is None or rules is None or self._too_old(stored, rules, now):
                stored = await self._fetch(f"{parts.scheme}://{parts.netloc}/robots.txt", host, now, fetch)
                rules = RobotsRules.parse(stored.text, stored.status)
            if rules.state.answered:
                self._known[host] = (now, rules)
            return rules

    def forget(self) -> None:
        """Drop what is in memory, so that the store is asked again (once a day)."""
        self._known.clear()

    @staticmethod
    def _too_old(stored: Robots, rules: RobotsRules, now: datetime) -> bool:
        return not rules.state.answered and now - stored.fetched_at > KEEP_UNANSWERED

    async def _fetch(self, url: str, host: str, now: datetime, fetch: Fetch) -> Robots:
        status: int | None
        try:
            response = await fetch(url)
            status, text = response.status, response.body.decode("utf-8", "replace")
        except FetchError as error:
            status, text = (error.response.status if error.response else None), ""
        robots = Robots(host, status, text, now)
        await self._writer.run(lambda conn, _now: save_robots(conn, robots))
        return robots
