"""scrapy-redis on the same work: its queue and its duplicate filter in Redis, behind the same delay proxy.

Set up for speed as the docs of Scrapy tell, with the queue that costs the fewest round trips (`LifoQueue`: a new
page is crawled before the next result page, as ours does) and selectolax to read. What it crawls it counts and does
not store; ours stores in PostgreSQL, which is as far away.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import psutil
import redis
import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy_redis.dupefilter import RFPDupeFilter  # type: ignore[import-untyped]
from scrapy_redis.queue import LifoQueue  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from research.bench.buffer_peers.web import POOL_OF_A_SITE, SITES, known_url, result_url
from research.bench.crawl_peers.readers import with_selectolax
from research.bench.crawl_peers.scrapy_crawl import SPEED
from research.tools.processes import printed_by

AT_ONCE = 64
_LONGEST_BESIDE_S = 60.0
_LINK = "div.result h3.t a"


@dataclass(frozen=True, slots=True)
class Order:
    """What the process is told.

    Attributes:
        redis_url: behind the delay proxy.
        near_redis_url: the same without delay: for what is there before the bench begins.
        seconds: to crawl, from the start of the process on.
    """

    redis_url: str
    near_redis_url: str
    page_port: int
    seconds: float
    results: int


class ResultSpider(scrapy.Spider):
    """Takes result pages from the shared queue and puts their new hits into it."""

    name = "results"

    def __init__(self, order: Order, **named: Any) -> None:
        super().__init__(**named)
        self._order = order
        self.results = self.pages = self.records = 0

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Nothing: all is in the queue."""
        asyncio.get_running_loop().call_later(self._order.seconds - _age_s(), self._end)
        nothing: tuple[scrapy.Request, ...] = ()
        for request in nothing:
            yield request

    def request(self, url: str, callback: Any) -> scrapy.Request:
        """A request that goes to the page server, whatever its host."""
        return scrapy.Request(
            url, callback=callback, meta={"proxy": f"http://127.0.0.1:{self._order.page_port}"}
        )

    def read_results(self, response: Response) -> Iterator[scrapy.Request]:
        """A result page: all its hits are asked about."""
        tree = LexborHTMLParser(response.body)
        for link in tree.css(_LINK):
            yield self.request(link.attributes["href"] or "", self.read_page)
        self.results += 1

    def read_page(self, response: Response) -> None:
        """A new page."""
        self.records += len(with_selectolax(response.body)[1])
        self.pages += 1

    def _end(self) -> None:
        # Not closed in order: what is in the queue is thrown away with it.
        print(json.dumps({"results": self.results, "pages": self.pages, "seconds": _age_s()}), flush=True)
        os._exit(0)


def crawled(order: Order) -> dict[str, Any]:
    """Run the contestant, and return result pages, new pages and seconds. Raises BenchError."""
    fill(order)
    timeout_s = order.seconds + _LONGEST_BESIDE_S
    told: dict[str, Any] = printed_by(__name__, json.dumps(asdict(order)), timeout_s=timeout_s)
    return told


def fill(order: Order) -> None:
    """The result pages into the queue, the known pages into the duplicate filter: nothing of it is measured."""
    spider = ResultSpider(order)
    with redis.Redis.from_url(order.near_redis_url) as near:
        near.flushall()
        seen = RFPDupeFilter(near, f"{spider.name}:dupefilter")
        known = [known_url(n, place) for n in range(SITES) for place in range(POOL_OF_A_SITE)]
        near.sadd(seen.key, *(seen.request_fingerprint(scrapy.Request(url)) for url in known))
        with near.pipeline(transaction=False) as pipeline:
            queue = LifoQueue(pipeline, spider, f"{spider.name}:requests")
            for number in reversed(range(order.results)):
                queue.push(spider.request(result_url(number), spider.read_results))
            pipeline.execute()


def _age_s() -> float:
    """Seconds since this process was started."""
    return time.time() - psutil.Process().create_time()


def crawl(order: Order) -> None:
    """Crawl until the time is over."""
    process = AsyncCrawlerProcess(
        {
            **SPEED,
            "CONCURRENT_REQUESTS": AT_ONCE,
            "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.LifoQueue",
            "SCHEDULER_PERSIST": True,
            "REDIS_URL": order.redis_url,
        }
    )
    process.crawl(ResultSpider, order=order)
    process.start()


if __name__ == "__main__":
    crawl(Order(**json.loads(sys.argv[1])))
