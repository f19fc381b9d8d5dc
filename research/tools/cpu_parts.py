"""CPU time of a process by what it went into: each thread has a part, by its name; functions that are timed have their own."""

from __future__ import annotations

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_LOOK_EVERY_S = 0.05


class CpuParts:
    """CPU seconds by part.

    Args:
        threads: the part of each thread, by the beginning of its name; others are left out.
        cpu_s: CPU seconds of the calling thread.
    """

    def __init__(self, threads: Mapping[str, str], cpu_s: Callable[[], float] = time.thread_time) -> None:
        self._threads = threads
        self._cpu_s = cpu_s
        self._used: dict[str, float] = defaultdict(float)
        self._before: dict[threading.Thread, float] = {}
        self._of_thread = threading.local()
        self._over = threading.Event()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its CPU time counted for a part, less that of timed functions that it calls."""

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            above_s = getattr(self._of_thread, "inner_s", 0.0)
            self._of_thread.inner_s = 0.0
            begun_s = self._cpu_s()
            try:
                return function(*given, **named)
            finally:
                took_s = self._cpu_s() - begun_s
                own_s = took_s - self._of_thread.inner_s
                self._of_thread.inner_s = above_s + took_s
                self._used[part] += own_s
                if (of_thread := self._part_of(threading.current_thread())) is not None:
                    self._used[of_thread] -= own_s

        return call

    @contextmanager
    def measured(self) -> Iterator[dict[str, float]]:
        """Measure until the end of the block; yields CPU seconds by part, filled at the end."""
        told: dict[str, float] = {}
        self._add_up(count=False)
        watching = threading.Thread(target=self._watch, name="cpu-parts", daemon=True)
        watching.start()
        try:
            yield told
        finally:
            self._over.set()
            watching.join()
            told.update(self._used)

    def _watch(self) -> None:
        """Look at the threads again and again; one that ends between two looks loses what it used in between."""
        ended = False
        while not ended:
            ended = self._over.wait(_LOOK_EVERY_S)
            self._add_up(count=True)

    def _add_up(self, *, count: bool) -> None:
        for thread in threading.enumerate():
            if thread.ident is None or (part := self._part_of(thread)) is None:
                continue
            now_s = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            if count:
                self._used[part] += now_s - self._before.get(thread, 0.0)
            self._before[thread] = now_s

    def _part_of(self, thread: threading.Thread) -> str | None:
        return next((part for name, part in self._threads.items() if thread.name.startswith(name)), None)
