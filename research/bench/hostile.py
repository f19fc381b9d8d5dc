"""Pages made to do harm: how long each is read, what comes of it, and how long it holds the event loop.

Each goes the way of a node's answers (`tasks.worker.page_reader`), while a task on the same loop looks at the clock
every millisecond: the longest time between two looks is the longest hold. On a machine that is not free other processes
hold the loop, too: the most CPU time of the loop's thread between two looks leaves them out. The first answer that is
read apart also starts the process that reads it; that is warmed up first.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import closing, suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from app.run.process import event_loop_runner
from app.run.version import ROOT
from splitter.errors import InputError
from tasks.domain.failures import FetchError
from tasks.fetching.robots import RobotsRules
from tasks.worker.page_reader import PageReader

_LOOK_S = 0.001
_SOME = 4


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Read every page; with `smallest`, some.

    Returns:
        ``ratios``: the longest hold of the event loop, on the clock and by CPU time, and the longest page; ``figures``: by page.
    """
    with event_loop_runner() as runner:  # as a node does
        told = runner.run(read_all(_SOME if smallest else None))
    return {
        "bench": "hostile",
        "ratios": {
            "longest_hold_ms": max(one["hold_ms"] for one in told.values()),
            "longest_hold_cpu_ms": max(one["hold_cpu_ms"] for one in told.values()),
            "longest_s": max(one["seconds"] for one in told.values()),
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
