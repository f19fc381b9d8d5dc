"""Crawlee, set up for speed as its documentation recommends (guides: scaling crawlers, storage clients, HTTP clients, HTTP crawlers).

Concurrency is at its height from the start, storage in memory, without sessions and without statistics in the log. The variant is the
parser: without one it is the ParselCrawler, the others hand the bytes of an HttpCrawler to `READERS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, ParselCrawler
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient

from app.run.process import run_coroutine
from research.bench.crawl_peers.contest import AT_ONCE, Call, Figures, Rows, Watch, stored_in, take_part
from research.bench.crawl_peers.readers import READERS, Page, with_parsel


def crawl(call: Call) -> Figures:
    """Crawl the pages once; Crawlee's request queue drops repeats."""
    logging.disable(logging.WARNING)
    watch = Watch()
    with stored_in(call.database) as rows:
        run_coroutine(_run(call, rows))
    return watch.figures(rows.pages, rows.first_page_at)


async def _run(call: Call, rows: Rows) -> None:
    kind = HttpCrawler if call.variant else ParselCrawler
    read: Callable[[Any], Page] = READERS[call.variant] if call.variant else with_parsel
    crawler = kind(
        configuration=Configuration(
            storage_dir=str(Path(call.database).parent),
            system_info_interval=timedelta(seconds=10),
            persist_state_interval=timedelta(hours=1),
        ),
        storage_client=MemoryStorageClient(),
        http_client=ImpitHttpClient(persist_cookies_per_session=False, browser=None),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=AT_ONCE, max_concurrency=AT_ONCE, desired_concurrency=AT_ONCE
        ),
        use_session_pool=False,
        retry_on_blocked=False,
        max_request_retries=0,
        configure_logging=False,
        status_message_logging_interval=timedelta(hours=1),
    )

    @crawler.router.default_handler
    async def handle(context: Any) -> None:
        rows.store(context.request.url, read(context.parsed_content))

    await crawler.run(call.urls())


if __name__ == "__main__":
    take_part(crawl)
