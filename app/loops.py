"""Event loops: uvloop's where it is installed (half as many pages again a second), asyncio's own elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def runner() -> asyncio.Runner:
    """A runner over the fastest loop there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` over the fastest loop there is."""
    with runner() as running:
        return running.run(main)
