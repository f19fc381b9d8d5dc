"""CPU time of a process by what it went into, sampled.

Many times a second, the CPU time that each thread has used since the last sample counts for the part that the thread is
in: that of the innermost function of its stack whose module belongs to one.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

_EVERY_S = 0.005
REST = "rest"


@contextmanager
def cpu_by_part(parts: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Sample until the end of the block.

    Args:
        parts: the part of each module or package, by dotted name; of several, the longest name counts.

    Yields:
        CPU seconds by part, with `REST` for threads that are in none; filled at the end.
    """
    used: dict[str, float] = defaultdict(float)
    told: dict[str, float] = {}
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(parts, used, over), name="cpu-parts", daemon=True)
    sampler.start()
    try:
        yield told
    finally:
        over.set()
        sampler.join()
        told.update(used)


def _sample(parts: Mapping[str, str], used: dict[str, float], over: threading.Event) -> None:
    before: dict[int, float] = {}
    while not over.wait(_EVERY_S):
        frames = sys._current_frames()
        for thread in threading.enumerate():
            if thread.ident not in frames or thread is threading.current_thread():
                continue
            now_s = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            used[part_of(frames[thread.ident], parts)] += now_s - before.get(thread.ident, now_s)
            before[thread.ident] = now_s


def part_of(frame: FrameType | None, parts: Mapping[str, str]) -> str:
    """Return the part that a thread is in, by its innermost function of one."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        while module:
            if module in parts:
                return parts[module]
            module = module.rpartition(".")[0]
        frame = frame.f_back
    return REST
