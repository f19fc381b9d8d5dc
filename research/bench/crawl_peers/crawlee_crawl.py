"""Crawlee's ParselCrawler, set up for speed as its documentation tells (guides: scaling crawlers, storage clients,
HTTP clients): concurrency at its height from the start, storage in memory, no sessions, no statistics told."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient

from app.run.process import run_coroutine
from research.bench.crawl_peers.contest import AT_ONCE, Call, Figures, Rows, Watch, stored_in, take_part
from research.bench.crawl_peers.readers import with_parsel


def crawl(call: Call) -> Figures:
    """Crawl the pages once; Crawlee's request queue drops repeats."""
    logging.disable(logging.WARNING)
    watch = Watch()
    with stored_in(call.database) as rows:
        run_coroutine(_run(call, rows))
    return watch.figures(rows.pages, rows.first_page_at)


async def _run(call: Call, rows: Rows) -> None:
    crawler = ParselCrawler(
        configuration=Configuration(storage_dir=str(Path(call.database).parent)),
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
    async def handle(context: ParselCrawlingContext) -> None:
        rows.store(context.request.url, with_parsel(context.selector))

    await crawler.run(call.urls())


if __name__ == "__main__":
    take_part(crawl)
