"""Pages made to do harm: how long each is read, what comes of it, how long it holds the event loop and other pages.

Each goes the way of a node's answers (`tasks.worker.page_reader`), while a task on the same loop looks at the clock
every millisecond: the longest time between two looks is the longest hold. On a machine that is not free other processes
hold the loop, too: the most CPU time of the loop's thread between two looks leaves them out. The first answer that is
read apart also starts the process that reads it; that is warmed up first.

A good page waits behind eight copies of the page that takes longest, all of another host.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from app.run.process import event_loop_runner
from app.run.version import ROOT
from splitter.catalog.rules import PageRules
from splitter.errors import InputError
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.fetching.robots import RobotsRules
from tasks.reading.page_jobs import PageJob
from tasks.worker.page_reader import PageReader

_LOOK_S = 0.001
_SOME = 4
_BAD = 8
_GOOD = (
    "<article><h1>评论</h1><p>"
    + "这家店的牛奶味道很好，包装也很结实，送货非常快，下次还会再来买。" * 8
    + "</p></article>"
)


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Read every page; with `smallest`, some.

    Returns:
        ``ratios``: the longest hold of the event loop, on the clock and by CPU time, the longest page, and the wait of a good
        page behind eight bad ones; ``figures``: by page.
    """
    with event_loop_runner() as runner:  # as a node does
        told = runner.run(read_all(_SOME if smallest else None))
        behind = runner.run(wait_behind(max(told, key=lambda name: told[name]["seconds"])))
    return {
        "bench": "hostile",
        "ratios": {
            "longest_hold_ms": max(one["hold_ms"] for one in told.values()),
            "longest_hold_cpu_ms": max(one["hold_cpu_ms"] for one in told.values()),
            "longest_s": max(one["seconds"] for one in told.values()),
            "good_page_behind_s": behind,
        },
        "figures": told,
    }


def hostile_pages() -> list[Any]:
    """Return the hostile pages of the tests, which read the same list; an installed package doesn't have them.

    Raises:
        InputError: this is no source tree.
    """
    path = ROOT / "tests" / "worker" / "hostile_pages.py"
    spec = spec_from_file_location(path.stem, path)
    if not path.exists() or spec is None or spec.loader is None:
        raise InputError(f"the bench 'hostile' needs the source tree: {path} is missing")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    pages: list[Any] = module.hostile_pages()
    return pages


async def read_all(most: int | None) -> dict[str, dict[str, Any]]:
    """By name of the page: seconds, longest hold of the loop (ms), and what came of it; of the last so many."""
    told = {}
    with closing(PageReader()) as reader:
        pages = hostile_pages()
        pages = pages[-most:] if most else pages  # those at the beginning take longest
        for page in pages[:1] + pages:  # the first: once to warm up
            told[page.name] = await read_one(reader, page)
    return told


async def wait_behind(bad: str) -> float:
    """Return the seconds until a good page is read that came after eight bad ones of another host."""
    page = next(one for one in hostile_pages() if one.name == bad)
    rules, now = PageRules(main_text=True), datetime(2026, 1, 1, tzinfo=UTC)
    good = Response(url="http://good.example/", status=200, headers={}, body=_GOOD.encode(), elapsed_s=0.0)
    with closing(PageReader()) as reader:
        await reader.read(PageJob.from_response(good, now, rules=rules, hint=""))  # to warm up
        waiting = [asyncio.create_task(page.read_by(reader)) for _ in range(_BAD)]
        await asyncio.sleep(0)  # now they wait for the reader
        began = time.perf_counter()
        await reader.read(PageJob.from_response(good, now, rules=rules, hint=""))
        seconds = time.perf_counter() - began
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return round(seconds, 3)


async def read_one(reader: PageReader, page: Any) -> dict[str, Any]:
    """Seconds, longest hold of the loop (ms), and what came of one page."""
    watch = asyncio.create_task(longest_hold())
    await asyncio.sleep(_LOOK_S)
    began = time.perf_counter()
    outcome = "read"
    try:
        read = await page.read_by(reader)
        outcome = _outcome(read)
    except FetchError as error:
        outcome = error.error.value
    seconds = time.perf_counter() - began
    await asyncio.sleep(_LOOK_S)
    watch.cancel()
    hold_s, hold_cpu_s = await watch
    return {
        "seconds": round(seconds, 3),
        "hold_ms": round(1000 * hold_s, 1),
        "hold_cpu_ms": round(1000 * hold_cpu_s, 1),
        "outcome": outcome,
    }


def _outcome(read: Any) -> str:
    if isinstance(read, RobotsRules):
        return read.state.value
    if isinstance(read, tuple):
        return f"page of {len(read[0].reviews)}"
    return f"{len(read.hits)} hits" if hasattr(read, "hits") else "read"


async def longest_hold() -> tuple[float, float]:
    """Seconds between two looks, and CPU seconds of this thread: the most of each."""
    longest = longest_cpu = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            before, cpu_before = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_LOOK_S)
            longest = max(longest, time.perf_counter() - before - _LOOK_S)
            longest_cpu = max(longest_cpu, time.thread_time() - cpu_before)
    return longest, longest_cpu
