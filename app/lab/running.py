"""Run a lab in a thread of a command, a test or a demo."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from app.lab.pages import DEFAULT_REVIEWS
from app.lab.profile import Profile
from app.lab.server import Lab
from app.run.process import event_loop_runner
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
    """Run a lab during the block (see `Lab` and `Lab.start` for the arguments).

    Its ``host``, ``port``, ``log``, ``sign_ins`` and ``web`` may be used from the caller's thread.

    Raises:
        InputError: The profile is wrong, the address is not loopback, or the port is taken.
    """
    lab = Lab(catalog, profile, seed=seed, log_path=log_path, reviews=reviews)
    with event_loop_runner() as runner:
        loop = runner.get_loop()
        thread = Thread(target=loop.run_forever, name="lab", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(lab.start(host, port), loop).result()
            yield lab
        finally:
            asyncio.run_coroutine_threadsafe(lab.stop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
