"""How soon sites answer from this machine, for `sites ping`: asked with the crawl's own manners."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from app import wiring
from app.config import Settings
from splitter.catalog.model import Catalog
from tasks.domain.crawl import FetchError
from tasks.fetching.httpping import httpping
from tasks.fetching.permits import LocalSendTimes, WaitTooLong
from tasks.store.database import Store
from tasks.store.writer import Writer
from tasks.worker.fetcher import Fetcher
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages
from tasks.worker.timing import Timing


@dataclass(frozen=True, slots=True)
class Pinged:
    """A site, and how soon it answers.

    Attributes:
        url: the address measured.
        rtt_ms: response time with the noise removed; None where there was too little to measure.
        measured_ms: each response time.
        why: what stood in the way; empty where nothing did.
    """

    site: str
    url: str
    rtt_ms: float | None
    measured_ms: tuple[float, ...]
    why: str


def ping(settings: Settings, catalog: Catalog, store: Store, sites: Sequence[str]) -> list[Pinged]:
    """Ask the front page of each site, all sites at once, within robots.txt and the catalog's limits."""
    return asyncio.run(_ping(settings, catalog, store, sites))


async def _ping(settings: Settings, catalog: Catalog, store: Store, sites: Sequence[str]) -> list[Pinged]:
    writer = Writer(store)
    send_times = LocalSendTimes(time.monotonic, settings.crawl().longest_wait_s)
    try:
        async with wiring.deps(
            settings, catalog, RobotsBook(writer), send_times, SeenPages(None), address=None
        ) as tools:
            fetcher = Fetcher(tools, Timing(time.monotonic), lambda _wait_s: None)
            return list(await asyncio.gather(*(_ping_one(site, fetcher) for site in sites)))
    finally:
        writer.close()


async def _ping_one(site: str, fetcher: Fetcher) -> Pinged:
    url = f"http://{site}/"
    try:
        told = await httpping(url, fetcher.page)
    except (FetchError, WaitTooLong) as error:
        return Pinged(site, url, None, (), str(error))
    return Pinged(site, told.url, told.rtt_ms, told.measured_ms, "")
