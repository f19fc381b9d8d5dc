"""Read or measure the parameters of this machine for the run-time model of the 2019 balance paper."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from app.run.nodes import system_addresses
from tasks.scheduling.balance.parameters import NodeParameters

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_BLOCK = bytes(1024 * 1024)
_MOST_BLOCKS = 32
_LONGEST_S = 0.5
_SYNC_EVERY = 4


def this_machine(folder: Path | None = None) -> NodeParameters:
    """Return the parameters of this machine; `None` for those that can't be read.

    The bandwidth is that of the network link of the default route. Most virtual links report none.

    Args:
        folder: folder for a temporary file of at most 32 MiB. It is written for about half a second to time the disk.
            Default: the system's folder for temporary files.
    """
    clock = psutil.cpu_freq()
    limit = psutil.virtual_memory().total
    with suppress(OSError, ValueError):  # no control group, or "max"
        limit = min(limit, int(_CGROUP_LIMIT.read_text("ascii")))
    return NodeParameters(
        cpu_cores=float(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        ),
        cpu_ghz=(max(clock.max, clock.current) / 1000 or None) if clock else None,
        memory_gb=limit / 1e9,
        net_mbps=_link_mbps(),
        disk_mbps=_disk_mbps(folder),
    )


def _link_mbps() -> float | None:
    outwards = system_addresses(lab=False)
    for name, addresses in psutil.net_if_addrs().items():
        if outwards & {one.address for one in addresses}:
            return psutil.net_if_stats()[name].speed or None
    return None


def _disk_mbps(folder: Path | None) -> float | None:
    """Return how fast data is written through to the disk, in 10^6 bits per second; `None` if it can't be timed."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            begin, blocks, spent_s = time.perf_counter(), 0, 0.0
            while blocks < _MOST_BLOCKS and spent_s < _LONGEST_S:
                for _ in range(_SYNC_EVERY):
                    file.write(_BLOCK)
                os.fsync(file.fileno())
                blocks += _SYNC_EVERY
                spent_s = time.perf_counter() - begin
    except OSError:
        return None
    return blocks * len(_BLOCK) * 8 / 1e6 / spent_s
