"""What a contestant is told and what it tells: pages, processor time, context switches in a window, and memory.

The window opens when every lane (a coroutine or a thread with one connection) has had a page and half a second
has passed, so that connecting and importing is in no figure but memory.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from research.tools.meter import peak_mb

SETTLE_S = 0.5
START_WITHIN_S = 60.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Order:
    """What a contestant shall do.

    Attributes:
        port: of the server, on 127.0.0.1.
        lanes: connections at once.
        window_s: how long it is measured.
        samples: how often pages are counted within the window, evenly.
        body_bytes: of a page; another size is an error.
    """

    port: int
    lanes: int
    window_s: float
    samples: int
    body_bytes: int

    def address(self, lane: int, number: int) -> str:
        """Return the address that a lane asks for next."""
        return f"http://127.0.0.1:{self.port}/item/{lane}-{number}.html"

    def check(self, body_bytes: int) -> None:
        """Raise RuntimeError for a page that is not the server's."""
        if body_bytes != self.body_bytes:
            raise RuntimeError(f"a page of {body_bytes} bytes came, the server sends {self.body_bytes}")


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything counted so far, at one moment (``at_s``: of a monotonic clock)."""

    at_s: float
    pages: int
    cpu_s: float
    voluntary: int
    involuntary: int


def told(moments: Sequence[Moment], peak: float) -> dict[str, Any]:
    """Return the figures of a window from the moments it was looked at: first its opening, last its end.

    Returns:
        ``pages_per_s``: pages whole within the window; ``cpu_us_per_page``: processor time of the process, user and
        system; ``voluntary_per_page`` and ``involuntary_per_page``: context switches because there was nothing to do
        (or a lock was taken), and because another process ran; ``peak_mb``: peak of resident memory, connecting
        included; ``pages_at``: (seconds into the window, pages since it opened), one a sample.

    Raises:
        RuntimeError: there was no page within the window.
    """
    first, last = moments[0], moments[-1]
    pages = last.pages - first.pages
    if pages <= 0:
        raise RuntimeError("not one page came within the window")
    return {
        "pages_per_s": pages / (last.at_s - first.at_s),
        "cpu_us_per_page": (last.cpu_s - first.cpu_s) / pages * 1e6,
        "voluntary_per_page": (last.voluntary - first.voluntary) / pages,
        "involuntary_per_page": (last.involuntary - first.involuntary) / pages,
        "peak_mb": peak,
        "pages_at": [(one.at_s - first.at_s, one.pages - first.pages) for one in moments[1:]],
    }


def moment(done: Sequence[int]) -> Moment:
    """Return what was used and done up to now; ``done`` counts pages by lane."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Moment(
        time.perf_counter(), sum(done), used.ru_utime + used.ru_stime, used.ru_nvcsw, used.ru_nivcsw
    )


def ordered() -> Order:
    """Return what this process shall do: its first argument, as JSON."""
    return Order(**json.loads(sys.argv[1]))


def tell(moments: Sequence[Moment]) -> None:
    """Print the figures of the window as JSON and end the process, without waiting for its threads."""
    print(json.dumps(told(moments, peak_mb())), flush=True)
    os._exit(0)


def in_threads(order: Order, fetcher: Callable[[], Callable[[str], int]]) -> list[Moment]:
    """Fetch in ``order.lanes`` threads.

    Args:
        fetcher: called once in each thread; returns what fetches an address and returns the size of its body.

    Returns:
        The moments of the window.

    Raises:
        RuntimeError: pages did not come, or not whole.
    """
    done = [0] * order.lanes
    broken: list[BaseException] = []
    all_made = threading.Event()  # making a thread among hundreds that want the interpreter takes ages

    def lane(number: int) -> None:
        try:
            fetch = fetcher()
            all_made.wait()
            while True:
                order.check(fetch(order.address(number, done[number])))
                done[number] += 1
        except Exception as error:
            broken.append(error)

    for number in range(order.lanes):
        threading.Thread(target=lane, args=(number,), daemon=True).start()
    all_made.set()
    return watched(order, done, broken)


def watched(order: Order, done: Sequence[int], broken: Sequence[BaseException]) -> list[Moment]:
    """Wait for a page of each lane, then return the moments of the window.

    Args:
        done: pages by lane, counted by others meanwhile.
        broken: what broke a lane.

    Raises:
        RuntimeError: pages did not come, or not whole.
    """
    give_up_at = time.perf_counter() + START_WITHIN_S
    while not all(done) and not broken and time.perf_counter() < give_up_at:
        time.sleep(_LOOK_S)
    time.sleep(SETTLE_S)
    moments = [moment(done)]
    for _ in range(order.samples):
        time.sleep(order.window_s / order.samples)
        moments.append(moment(done))
    # On a slow machine the window would end without a page.
    while moments[-1].pages == moments[0].pages and not broken and time.perf_counter() < give_up_at:
        time.sleep(_LOOK_S)
        moments[-1] = moment(done)
    if broken:
        raise RuntimeError("a lane broke") from broken[0]
    return moments
