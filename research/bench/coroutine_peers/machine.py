"""What the bench's processes ask of the machine: a core, open files, their own peak of memory."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def pin_to(place: int) -> None:
    """Keep this process on one of the cores it may use: 0 the first of them, -1 the last; nowhere but on Linux."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[place]})


def open_files() -> int:
    """Allow this process as many open files as its hard limit lets it; returns that."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def peak_mb() -> float:
    """The most resident memory this process ever had, in MB (10^6 bytes).

    On Linux from the address space itself: getrusage's figure outlives exec, so it would begin with the size of
    the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(one for one in status.read_text("ascii").splitlines() if one.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
