"""Lanes whose download is a sleep: what keeping so many at once costs by itself (the paper's figure 4).

`python -m research.bench.coroutine_peers.sleeping coroutines|threads LANES SLEEP_S` prints the seconds from the first
lane's making to the last one's end.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time

from app.run.process import run_coroutine


async def coroutines(lanes: int, sleep_s: float) -> float:
    """Seconds that ``lanes`` coroutines take for one sleep each."""
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(asyncio.sleep(sleep_s))
    return time.perf_counter() - begin


def threads(lanes: int, sleep_s: float) -> float:
    """Seconds that ``lanes`` threads take for one sleep each."""
    begin = time.perf_counter()
    sleepers = [threading.Thread(target=time.sleep, args=(sleep_s,)) for _ in range(lanes)]
    for sleeper in sleepers:
        sleeper.start()
    for sleeper in sleepers:
        sleeper.join()
    return time.perf_counter() - begin


def main(kind: str, lanes: int, sleep_s: float) -> None:
    """Sleep and print the seconds it took."""
    print(run_coroutine(coroutines(lanes, sleep_s)) if kind == "coroutines" else threads(lanes, sleep_s))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
