"""Our own downloader: one coroutine a connection, all in one thread."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from app.run.process import run_coroutine
from research.bench.coroutine_peers import window
from tasks.fetching.downloader import Downloader
from tasks.worker.settings import CrawlSettings


async def crawl(order: window.Order) -> list[window.Moment]:
    """Fetch in ``order.lanes`` coroutines; the moments of the window.

    Raises:
        ExceptionGroup: what broke a lane.
        TimeoutError: some lane had no page in time.
    """
    done = [0] * order.lanes
    stop = asyncio.Event()

    async def lane(downloader: Downloader, number: int) -> None:
        while not stop.is_set():
            answer = await downloader.fetch(window.address(order, number, done[number]))
            window.check_size(len(answer.body), order)
            done[number] += 1

    async with (
        Downloader(
            user_agent=CrawlSettings().user_agent,
            clock=lambda: datetime.now(UTC),
            lab=("127.0.0.1", order.port),
        ) as downloader,
        asyncio.TaskGroup() as group,
    ):
        for number in range(order.lanes):
            group.create_task(lane(downloader, number))
        async with asyncio.timeout(window.START_WITHIN_S):
            while not all(done):
                await asyncio.sleep(window.SETTLE_S / 10)
        await asyncio.sleep(window.SETTLE_S)
        moments = [window.moment(done)]
        for _ in range(order.samples):
            await asyncio.sleep(order.window_s / order.samples)
            moments.append(window.moment(done))
        async with asyncio.timeout(window.START_WITHIN_S):
            while moments[-1].pages == moments[0].pages:
                await asyncio.sleep(window.SETTLE_S / 10)
                moments[-1] = window.moment(done)
        stop.set()
    return moments


if __name__ == "__main__":
    window.tell(run_coroutine(crawl(window.ordered())))
