"""Scrapy, set up for speed as its documentation tells (topics/broad-crawls, topics/settings, topics/asyncio).

Variants: `record` yields an item per record, `page` one item a page, `selectolax` one item a page read with selectolax
instead of parsel; `aiohttp` the same over Scrapy's experimental aiohttp download handler, without Twisted's reactor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response, TextResponse

from research.bench.peers.by_parsel import with_parsel
from research.bench.peers.by_selectolax import with_selectolax
from research.bench.peers.contest import AT_ONCE, Call, Figures, Rows, Watch, called, stored_in, tell

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
}
_AIOHTTP: dict[str, Any] = {
    "TWISTED_REACTOR_ENABLED": False,
    "DOWNLOAD_HANDLERS": {"http": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"},
}


class Pipeline:
    """Stores items, committed in batches (see `Rows`).

    Attributes:
        rows: where to; set before the crawl.
    """

    rows: Rows

    def __init__(self) -> None:
        self._page_ids: dict[str, int] = {}

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Store a page, or one review of a page."""
        if "records" in item:
            self.rows.page(item["url"], item["title"], item["records"])
            return item
        url = item["url"]
        page_id = self._page_ids.get(url)
        if page_id is None:
            page_id = self._page_ids[url] = self.rows.place(url, item["title"])
        self.rows.review(page_id, item["record"])
        return item


class ReviewSpider(scrapy.Spider):
    """Crawls the pages once; Scrapy's own filter drops repeats."""

    name = "reviews"

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call
        self.parse_page: Callable[[Any], Iterator[dict[str, Any]]] = {
            "record": self._records,
            "page": self._page,
        }.get(call.variant, self._selectolax)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The requests to begin with."""
        for url in self._call.urls():
            yield scrapy.Request(url, callback=self.parse_page)

    def _records(self, response: TextResponse) -> Iterator[dict[str, Any]]:
        title, records = with_parsel(response.selector)
        for record in records:
            yield {"url": response.url, "title": title, "record": record}

    def _page(self, response: TextResponse) -> Iterator[dict[str, Any]]:
        title, records = with_parsel(response.selector)
        yield {"url": response.url, "title": title, "records": records}

    def _selectolax(self, response: Response) -> Iterator[dict[str, Any]]:
        title, records = with_selectolax(response.body)
        yield {"url": response.url, "title": title, "records": records}


def crawl(call: Call) -> Figures:
    """Crawl the pages once."""
    settings = {**SPEED, "ITEM_PIPELINES": {Pipeline: 100}}
    if call.variant == "aiohttp":
        settings |= _AIOHTTP
    process = AsyncCrawlerProcess(settings)
    watch = Watch()
    with stored_in(call.database) as rows:
        Pipeline.rows = rows
        process.crawl(ReviewSpider, call=call)
        process.start()
    return watch.figures(rows.pages, rows.first_page_at)


def main() -> None:
    """Run as called from the command line."""
    tell(crawl(called(variants=("record", "page", "selectolax", "aiohttp"))))


if __name__ == "__main__":
    main()
