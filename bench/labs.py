"""A lab for a bench: in a process of its own, so that it takes no time of the crawl's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lab_process(*options: str) -> Iterator[tuple[str, int]]:
    """Host and port of a lab on a free port, which stops when the context ends.

    Args:
        options: of `reviewloop lab`, besides its port.
    """
    command = [sys.executable, "-m", "app", "lab", "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            yield ready["host"], ready["port"]
        finally:
            process.terminate()
