"""A lab in a thread, beside the command, test or demo that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from app.lab.corpus import DEFAULT_REVIEWS
from app.lab.profile import Profile
from app.lab.server import Lab
from app.run import event_loops
from splitter.catalog.model import Catalog


@contextmanager
def running_lab(
    catalog: Catalog,
    profile: Profile | str = "calm",
    *,
    seed: int = 1,
    log_path: Path | None = None,
    reviews: Path | None = DEFAULT_REVIEWS,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[Lab]:
    """A lab for as long as the block runs (see `Lab` and `Lab.start` for the arguments).

    Its ``host``, ``port``, ``log`` and ``web`` may be used from the caller's thread.

    Raises:
        InputError: as `Lab` and `Lab.start`.
    """
    ready: Future[tuple[Lab, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        stop = asyncio.Event()
        lab = Lab(catalog, profile, seed=seed, log_path=log_path, reviews=reviews)
        try:
            await lab.start(host, port)
            ready.set_result((lab, asyncio.get_running_loop(), stop))
            await stop.wait()
        finally:
            await lab.stop()

    def run() -> None:
        try:
            with event_loops.runner() as runner:
                runner.run(live())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = Thread(target=run, name="lab", daemon=True)
    thread.start()
    lab, loop, stop = ready.result()
    try:
        yield lab
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
