"""A lab for a bench: in a process of its own, so that it takes no time of the crawl's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

from app.lab.running import running_lab
from app.run.settings import load_settings
from research.tools.forked import forkserver
from splitter.errors import ReviewloopError


@contextmanager
def lab_process(
    profile: str, *, sites: str | None = None, seed: int = 1, log: Path | None = None
) -> Iterator[tuple[str, int]]:
    """Host and port of a lab on a free port, which stops when the context ends.

    Args:
        profile: a built-in one, or a file.
        sites: catalog, built-in or a file; None: the project's own.
        seed: of its pages and faults.
        log: file for its requests.

    Raises:
        ReviewloopError: it did not start.
    """
    context = forkserver()
    ours, its = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(its, profile, sites, seed, log), daemon=True)
    process.start()
    its.close()
    try:
        try:
            address: tuple[str, int] = ours.recv()
        except EOFError:
            raise ReviewloopError("the lab did not start: its message is above") from None
        yield address
    finally:
        process.terminate()
        process.join()


def _serve(ready: Connection, profile: str, sites: str | None, seed: int, log: Path | None) -> None:
    catalog = load_settings(sites=sites).catalog()
    with running_lab(catalog, profile, seed=seed, log_path=log) as lab:
        ready.send((lab.host, lab.port))
        # Whoever started this process ends it: a daemon is terminated with its parent.
        Event().wait()
