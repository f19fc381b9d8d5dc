"""Parameters of this machine for the run-time model of the 2019 balance paper: read from the system, or measured."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

from tasks.scheduling.balance.parameters import NodeParameters

_BLOCK = bytes(1024 * 1024)
_MOST_BLOCKS = 32
_LONGEST_S = 0.5
_SYNC_EVERY = 4


def this_machine(folder: Path | None = None) -> NodeParameters:
    """Parameters of the machine this process runs on; None where they can't be read.

    Bandwidth is what the interface of the default route says of its link: virtual ones mostly say nothing.

    Args:
        folder: where a file of at most 32 MiB is written for at most about half a second and removed, to time the disk;
            None: the system's folder for such files.
    """
    return NodeParameters(
        cpu_cores=float(_cores()),
        cpu_ghz=cpu_ghz(_text("/proc/cpuinfo")),
        memory_gb=memory_gb(_text("/proc/meminfo"), _text("/sys/fs/cgroup/memory.max")),
        net_mbps=_net_mbps(),
        disk_mbps=_disk_mbps(folder),
    )


def cpu_ghz(cpuinfo: str) -> float | None:
    """The fastest clock in /proc/cpuinfo, in GHz."""
    clocks = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)]
    return max(clocks) / 1000 if clocks and max(clocks) > 0 else None


def memory_gb(meminfo: str, limit: str = "") -> float | None:
    """Memory in 10^9 bytes: MemTotal of /proc/meminfo, or a control group's limit (bytes, or "max") if less."""
    total = re.search(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    known = [int(total[1]) * 1024] if total else []
    if limit.strip().isdecimal():
        known.append(int(limit))
    return min(known) / 1e9 if known and min(known) > 0 else None


def default_interface(route: str) -> str | None:
    """The interface of the default route in /proc/net/route."""
    for line in route.splitlines()[1:]:
        cells = line.split()
        if len(cells) > 7 and cells[1] == cells[7] == "00000000":
            return cells[0]
    return None


def link_mbps(speed: str) -> float | None:
    """Speed of a link, as /sys/class/net/NAME/speed has it: Mb/s, -1 where it is not known."""
    text = speed.strip()
    return float(text) if text.isdecimal() and int(text) > 0 else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _net_mbps() -> float | None:
    name = default_interface(_text("/proc/net/route"))
    return None if name is None else link_mbps(_text(f"/sys/class/net/{name}/speed"))


def _disk_mbps(folder: Path | None) -> float | None:
    """Rate of writes that reach the disk, in 10^6 bits a second."""
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


def _text(path: str) -> str:
    """A file of the system; empty where it is not there or cannot be read."""
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
