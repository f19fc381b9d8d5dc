"""Our downloader with thousands of connections open at once, each waiting for a slow answer.

`python -m research.bench.coroutine_peers.held ORDER` fetches one page in each lane and prints `{"pages", "took_s",
"peak_mb"}`; window and samples of the order mean nothing here.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime

from app.run.process import run_coroutine
from research.bench.coroutine_peers import window
from research.bench.coroutine_peers.machine import open_files, peak_mb
from tasks.fetching.downloader import Downloader, FetchLimits
from tasks.worker.settings import CrawlSettings

# The first answer comes after the last connection, which must not look like a silent server.
_PATIENCE_S = 60.0


async def crawl(order: window.Order) -> int:
    """One page in each of ``order.lanes`` coroutines, all at once; how many came whole.

    Raises:
        ExceptionGroup: what broke a lane.
    """
    pages = 0

    async def lane(downloader: Downloader, number: int) -> None:
        nonlocal pages
        answer = await downloader.fetch(window.address(order, number, 0), timeout_s=_PATIENCE_S)
        window.check_size(len(answer.body), order)
        pages += 1

    async with (
        Downloader(
            user_agent=CrawlSettings().user_agent,
            clock=lambda: datetime.now(UTC),
            lab=("127.0.0.1", order.port),
            limits=FetchLimits(idle_s=_PATIENCE_S),
        ) as downloader,
        asyncio.TaskGroup() as group,
    ):
        for number in range(order.lanes):
            group.create_task(lane(downloader, number))
    return pages


def main() -> None:
    """Fetch, and print what it took."""
    order = window.ordered()
    open_files()
    begin = time.perf_counter()
    pages = run_coroutine(crawl(order))
    took_s = time.perf_counter() - begin
    print(json.dumps({"pages": pages, "took_s": took_s, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
