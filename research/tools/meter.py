"""Resources of a process: cores, open files, memory, CPU seconds.

Contestants of the benches import this module, so it imports nothing of the product.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from splitter.errors import ReviewloopError


class BenchError(ReviewloopError):
    """A process of a bench failed, or a measurement would compare what is not comparable."""


def cores() -> tuple[set[int], set[int]]:
    """Return the first core this process may use, and the others; the first one twice if it is the only one."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def allow_open_files() -> int:
    """Allow this process as many open files as its hard limit, and return that."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def peak_mb() -> float:
    """Return the peak of this process's resident memory, in MB (10^6 bytes).

    getrusage is not asked: its figure outlives exec, so it would begin with the size of the parent process.
    """
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, with those of their ended children."""
    import psutil

    used = 0.0
    root = psutil.Process(pid)
    for one in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            used += sum(one.cpu_times()[:4])
    return used
