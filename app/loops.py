"""Event loops: uvloop's where it is installed (half as many pages again a second), asyncio's own elsewhere.

A crawl makes very many short-lived objects and hardly a cycle among them, so the garbage collector looks for cycles
seldom, and not at all at what was there before (measured: 7 % less CPU a page stored, docs/benchmarks.md).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_GARBAGE = (50_000, 10, 10)


def runner() -> asyncio.Runner:
    """A runner over the fastest loop there is."""
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` over the fastest loop there is."""
    with runner() as running:
        return running.run(main)
