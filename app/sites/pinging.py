"""How soon sites answer from this machine, for `sites ping`: by the response time of HTTP requests (2010 paper).

Many sites don't answer a ping, all that matter answer HTTP. The first request is not counted: it looks up the name,
connects, and follows the redirects of a front page. Those after it ask the address it led to, over the connection
that is kept, for one byte of it. What counts is the time to the first byte of the answer: one round trip and the host's
own work, whether or not the host knows ranges. Requests are made by the crawl's own fetcher, within robots.txt and the
catalog's limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from app.run import wiring
from app.run.setting_fields import Settings
from splitter.catalog.model import Catalog
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.permits import LocalPermits, WaitTooLong
from tasks.scheduling.proximity.response_times import without_noise
from tasks.store.sql.database import Store
from tasks.store.sql.writer import Writer
from tasks.worker.counters import FEWEST_TIMED, Timing
from tasks.worker.fetcher import Fetcher
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

Ask = Callable[[str, Mapping[str, str]], Awaitable[Response]]
"""Requests a URL with these headers, where and when the host allows it: `Fetcher.page`."""

MEASUREMENTS = 5
"""Response times measured of a host, at most."""

REQUESTS = 9
"""Made to a host, at most: one more for each new connection or address, and those that are lost."""

LOST = 2
"""Requests without an answer, one after the other, that end it."""

LONGEST_S = 60.0

# Packed, one byte of a page would be no page.
_ONE_BYTE = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Ping:
    """How soon a host answers, or why that could not be measured.

    Attributes:
        url: the address measured, behind the redirects.
        rtt_ms: response time with the noise removed; None where it could not be measured.
        measured_ms: each response time, in order.
        why: it could not be measured; empty where it could.
    """

    url: str
    rtt_ms: float | None
    measured_ms: tuple[float, ...]
    why: str = ""


def ping(settings: Settings, catalog: Catalog, store: Store, sites: Sequence[str]) -> dict[str, Ping]:
    """Measure the front page of each site, all sites at once."""
    return asyncio.run(_ping(settings, catalog, store, sites))


async def _ping(settings: Settings, catalog: Catalog, store: Store, sites: Sequence[str]) -> dict[str, Ping]:
    writer = Writer(store)
    permits = LocalPermits(time.monotonic, settings.crawl().longest_wait_s)
    try:
        async with wiring.open_tools(
            settings, catalog, RobotsCache(writer), permits, SeenPages(None)
        ) as tools:
            fetcher = Fetcher(tools, Timing(time.monotonic), lambda _wait_s: None)
            pings = await asyncio.gather(*(_ping_one(f"http://{site}/", fetcher) for site in sites))
            return dict(zip(sites, pings, strict=True))
    finally:
        writer.close()


async def _ping_one(url: str, fetcher: Fetcher) -> Ping:
    try:
        return await httpping(url, fetcher.page)
    except (FetchError, WaitTooLong) as error:
        return Ping(url, None, (), str(error))


async def httpping(url: str, ask: Ask, longest_s: float = LONGEST_S) -> Ping:
    """Measure the response time of a host, in a bounded number of requests and of seconds.

    A 404 or another 4xx is an answer as good as a page. A refusal (403, 429, robots.txt ...) or a server error ends it
    at once: a host that refuses is not asked again.

    Args:
        url: an address of the host, its front page as a rule.
        ask: makes one request, with the politeness of the crawl.
        longest_s: for all of it, waits for permits included.

    Returns:
        The result of what was measured, if that is enough, even where an error cut it short.

    Raises:
        FetchError: too few measurements; with the class of the error: TIMEOUT where time ran out, REDIRECTS where
            each request was sent on to a new address.
        WaitTooLong: too few measurements, because the host can't be asked soon.
    """
    series = _Series(url, ask)
    ended_by: Exception | None = None
    try:
        async with asyncio.timeout(longest_s):
            await series.run()
    except TimeoutError:
        ended_by = FetchError(
            ErrorClass.TIMEOUT,
            f"{len(series.measured_ms)} of {FEWEST_TIMED} response times of {url} in {longest_s:g} s",
        )
    except (FetchError, WaitTooLong) as error:
        ended_by = error
    if ended_by is not None and len(series.measured_ms) < FEWEST_TIMED:
        raise ended_by
    return Ping(series.url, without_noise(series.measured_ms), tuple(series.measured_ms))


class _Series:
    """The requests of one ping; keeps what was measured when one of them ends it."""

    def __init__(self, url: str, ask: Ask) -> None:
        self.url = url
        self.measured_ms: list[float] = []
        self._ask = ask

    async def run(self) -> None:
        """Make requests until there are enough measurements, or an error is raised."""
        lost = 0
        warm = False
        for _ in range(REQUESTS):
            try:
                answer = await self._answer()
            except FetchError as error:
                lost += 1
                if not error.error.facts.is_lost or lost >= LOST:
                    raise
                # Its connection is gone: the next one connects anew.
                warm = False
                continue
            lost = 0
            # A request that was redirected measures two ways.
            if warm and answer.url == self.url and answer.first_byte_s > 0.0:
                self.measured_ms.append(answer.first_byte_s * 1000.0)
                if len(self.measured_ms) == MEASUREMENTS:
                    return
            self.url, warm = answer.url, True
        raise FetchError(
            ErrorClass.REDIRECTS,
            f"{len(self.measured_ms)} of {REQUESTS} requests for {self.url} were answered on the spot",
        )

    async def _answer(self) -> Response:
        try:
            return await self._ask(self.url, _ONE_BYTE)
        except FetchError as error:
            if error.error.facts.is_quick_answer and error.response is not None:
                return error.response
            raise
