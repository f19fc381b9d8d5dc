"""Event loops: uvloop's where it is installed (half as many pages again a second), asyncio's own elsewhere."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.run import garbage

T = TypeVar("T")


def runner() -> asyncio.Runner:
    """A runner over the fastest loop there is."""
    gc.freeze()  # what was loaded stays
    garbage.collect_seldom()
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` over the fastest loop there is."""
    with runner() as running:
        return running.run(main)
