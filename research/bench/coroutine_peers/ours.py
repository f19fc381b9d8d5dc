"""Our own downloader: one coroutine a connection, all in one thread.

Without a window each lane fetches one page, and all are answered at once when the last one has asked: then it prints
`{"pages", "took_s", "peak_mb"}`.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime

from app.run.process import run_coroutine
from research.bench.coroutine_peers import window
from research.tools.meter import allow_open_files, peak_mb
from tasks.fetching.downloader import Downloader, FetchLimits
from tasks.worker.settings import CrawlSettings

# The first answer comes after the last connection, which must not look like a silent server.
_PATIENCE_S = 60.0


def _downloader(order: window.Order) -> Downloader:
    return Downloader(
        user_agent=CrawlSettings().user_agent,
        clock=lambda: datetime.now(UTC),
        lab=("127.0.0.1", order.port),
        limits=None if order.window_s else FetchLimits(idle_s=_PATIENCE_S),
    )


async def crawl(order: window.Order) -> list[window.Moment]:
    """Fetch in ``order.lanes`` coroutines, and return the moments of the window. Raises RuntimeError."""
    done = [0] * order.lanes
    broken: list[BaseException] = []
    stop = asyncio.Event()

    async def lane(downloader: Downloader, number: int) -> None:
        try:
            while not stop.is_set():
                answer = await downloader.fetch(order.address(number, done[number]))
                order.check(len(answer.body))
                done[number] += 1
        except Exception as error:
            broken.append(error)

    async with _downloader(order) as downloader, asyncio.TaskGroup() as group:
        for number in range(order.lanes):
            group.create_task(lane(downloader, number))
        # In a thread, which only sleeps: the loop is the contestant's.
        moments = await asyncio.to_thread(window.watched, order, done, broken)
        stop.set()
    return moments


async def crawl_once(order: window.Order) -> int:
    """Fetch one page in each of ``order.lanes`` coroutines, all at once; returns how many came whole."""
    async with _downloader(order) as downloader:
        addresses = (order.address(number, 0) for number in range(order.lanes))
        answers = await asyncio.gather(*(downloader.fetch(one, timeout_s=_PATIENCE_S) for one in addresses))
    return sum(len(answer.body) == order.body_bytes for answer in answers)


if __name__ == "__main__":
    the_order = window.ordered()
    allow_open_files()
    if the_order.window_s:
        window.tell(run_coroutine(crawl(the_order)))
    else:
        begin = time.perf_counter()
        whole = run_coroutine(crawl_once(the_order))
        took_s = time.perf_counter() - begin
        print(json.dumps({"pages": whole, "took_s": took_s, "peak_mb": peak_mb()}))
