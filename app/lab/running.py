"""Two ways to run a lab: in the foreground until a signal, or in a thread beside a test or demo."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from app import loops
from app.lab.corpus import DEFAULT_REVIEWS
from app.lab.profile import Profile
from app.lab.server import Lab
from splitter.catalog.model import Catalog


def serve(
    catalog: Catalog,
    profile: Profile | str,
    host: str,
    port: int,
    log_path: Path | None,
    seed: int,
    ready: Callable[[Lab], None],
) -> None:
    """Serve until SIGINT or SIGTERM; ``ready`` is called once, when the port is open.

    Raises:
        InputError: the profile is wrong, not a loopback address, or the port is taken.
    """

    async def until_signal() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        lab = Lab(catalog, profile, seed=seed, log_path=log_path)
        try:
            await lab.start(host, port)
            ready(lab)
            await stop.wait()
        finally:
            await lab.stop()

    with loops.runner() as runner:
        runner.run(until_signal())


@contextmanager
def running_lab(
    catalog: Catalog,
    profile: Profile | str = "calm",
    *,
    seed: int = 1,
    log_path: Path | None = None,
    reviews: Path = DEFAULT_REVIEWS,
) -> Iterator[Lab]:
    """A lab on a free port of 127.0.0.1 for as long as the block runs (see `Lab` for the arguments).

    Its ``host``, ``port``, ``log`` and ``web`` may be used from the caller's thread.

    Raises:
        InputError: as `Lab` and `Lab.start`.
    """
    ready: Future[tuple[Lab, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        stop = asyncio.Event()
        async with Lab(catalog, profile, seed=seed, log_path=log_path, reviews=reviews) as lab:
            ready.set_result((lab, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            with loops.runner() as runner:
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
