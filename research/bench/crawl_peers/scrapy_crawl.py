"""Scrapy, set up for speed as its documentation recommends (topics/optimize, topics/settings, topics/asyncio).

An item is a page. Variant `selectolax` reads pages with selectolax, which is faster than parsel, and downloads by Twisted.
Variants `aiohttp` and `turbohtml` use Scrapy's experimental aiohttp download handler without Twisted's reactor; `turbohtml` also
reads with turbohtml.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

from research.bench.crawl_peers.contest import AT_ONCE, Call, Figures, Rows, Watch, stored_in, take_part
from research.bench.crawl_peers.readers import READERS

_UNUSED = {
    "DOWNLOADER_MIDDLEWARES": (
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    ),
    "SPIDER_MIDDLEWARES": (
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware",
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware",
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware",
        "scrapy.spidermiddlewares.depth.DepthMiddleware",
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware",
    ),
    "EXTENSIONS": (
        "scrapy.extensions.corestats.CoreStats",
        "scrapy.extensions.logcount.LogCount",
        "scrapy.extensions.logstats.LogStats",
        "scrapy.extensions.memdebug.MemoryDebugger",
        "scrapy.extensions.closespider.CloseSpider",
        "scrapy.extensions.feedexport.FeedExporter",
        "scrapy.extensions.spiderstate.SpiderState",
    ),
}
"""Components that the crawl does without: "disable unused components" (topics/optimize)."""

SPEED: dict[str, Any] = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_REQUESTS": AT_ONCE,
    "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
    "DOWNLOAD_DELAY": 0,
    "LOG_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "COMPRESSION_ENABLED": False,
    "REFERER_ENABLED": False,
    "DOWNLOADER_STATS": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
    "STATS_DUMP": False,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    **{setting: dict.fromkeys(components) for setting, components in _UNUSED.items()},
}
_AIOHTTP: dict[str, Any] = {
    "TWISTED_REACTOR_ENABLED": False,
    "DOWNLOAD_HANDLERS": {"http": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"},
}


class Pipeline:
    """Stores items, committed in batches (see `Rows`).

    Attributes:
        rows: set before the crawl.
    """

    rows: Rows

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Store a page."""
        self.rows.store(item["url"], item["page"])
        return item


class ReviewSpider(scrapy.Spider):
    """Crawls the pages once; Scrapy's own filter drops repeats."""

    name = "reviews"

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call
        self._read = READERS["turbohtml" if call.variant == "turbohtml" else "selectolax"]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Yield the requests to begin with."""
        for url in self._call.urls():
            yield scrapy.Request(url, callback=self.parse_page)

    def parse_page(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield one item a page."""
        yield {"url": response.url, "page": self._read(response.body)}


def crawl(call: Call) -> Figures:
    """Crawl the pages once."""
    settings = {**SPEED, "ITEM_PIPELINES": {Pipeline: 100}}
    if call.variant != "selectolax":
        settings |= _AIOHTTP
    watch = Watch()
    process = AsyncCrawlerProcess(settings)
    # Scrapy's level is its handler's: without this, a record is made of every page and item, and dropped.
    logging.disable(logging.INFO)
    with stored_in(call.database) as rows:
        Pipeline.rows = rows
        process.crawl(ReviewSpider, call=call)
        process.start()
    return watch.figures(rows.pages, rows.first_page_at)


if __name__ == "__main__":
    take_part(crawl)
