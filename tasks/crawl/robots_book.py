"""The robots.txt of each host, fetched once a day and kept in the store; asked before every request."""

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
KEEP_UNANSWERED = timedelta(seconds=30)

Fetch = Callable[[str], Awaitable[Response]]


class RobotsBook:
    """What robots.txt says, from memory, from the store, or fetched with the node's own downloader.

    One per process; safe for all coroutines of its event loop.
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
        async with self._locks.setdefault(host, asyncio.Lock()):
            now, stored = (
                await self._writer.run(lambda conn, now: (now, load_robots(conn, [host], now - KEEP)))
                if self._stale(host)
                else (None, {})
            )
            if now is None:
                return self._known[host][1]
            robots = stored.get(host)
            if robots is None or (robots.status is None and now - robots.fetched_at > KEEP_UNANSWERED):
                robots = await self._fetch(f"{parts.scheme}://{parts.netloc}/robots.txt", host, now, fetch)
            rules = _rules(robots)
            if robots.status is not None:
                self._known[host] = (now, rules)
            return rules

    def _stale(self, host: str) -> bool:
        return host not in self._known

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


def _rules(robots: Robots) -> RobotsRules:
    return RobotsRules.parse(robots.text, robots.status)
