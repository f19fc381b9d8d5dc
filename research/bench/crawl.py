"""The whole pipeline side by side: pages a second and memory on one core, each contestant in a process of its own.

Every contestant crawls the same 17 KB pages with 28 records from a page server on the other cores and stores pages
and reviews into a SQLite file (WAL). Contestants take turns, three rounds; what they stored is compared field by
field, and a difference is an error. Faster contestants crawl more of the pages, so that every turn lasts some seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from research.bench.peers.agreement import Agreement, BenchError, page_digests
from research.tools.addresses import PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE
from splitter.errors import InputError

ROUNDS = 3
_SERVED = 12_000
_SLOWEST_SERVER_PER_S = 10_000
_NEEDS_TWO_CORES = True
_LONGEST_S = 130.0  # of one turn
_BUDGET_S = 560.0  # no round is begun that would end later
_PACKAGES = {"scrapy": ("scrapy", "parsel"), "crawlee": ("crawlee", "parsel"), "requests_bs4": ("gevent",)}
"""What a peer's contestants need."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A process that takes part.

    Attributes:
        peer: whom it stands for in `ratios`; of several, the fastest counts.
        module: in `research.bench.peers`.
        pages: crawled in one turn, at most as many as are served; of ours whole products, or
            the first sites of one.
        stores: False: nothing is stored, so that nothing is compared.
    """

    peer: str
    module: str
    variant: str
    pages: int
    stores: bool = True

    @property
    def name(self) -> str:
        """Its name in `figures`."""
        return f"{self.peer}.{self.variant}" if self.variant else self.peer


OURS = Contestant("ours", "ours", "", 4 * PAGES_OF_A_PRODUCT)
SERVER = Contestant("pageserver", "limit", "fetch", _SERVED, stores=False)
CONTESTANTS = (
    OURS,
    Contestant("scrapy", "scrapy_crawl", "record", 1200),
    Contestant("scrapy", "scrapy_crawl", "page", 1600),
    Contestant("scrapy", "scrapy_crawl", "selectolax", 2400),
    Contestant("scrapy", "scrapy_crawl", "aiohttp", 2400),
    Contestant("crawlee", "crawlee_crawl", "", 2400),
    Contestant("requests_bs4", "gevent_requests", "lxml", 800),
    Contestant("requests_bs4", "gevent_requests", "html.parser", 600),
    Contestant("limit", "limit", "css", _SERVED, stores=False),
    Contestant("limit", "limit", "reader", _SERVED, stores=False),
    SERVER,
)
OURS_SMALLEST = replace(OURS, pages=PAGES_OF_A_SITE)
SERVED_SMALLEST = 300
SMALLEST = (
    OURS_SMALLEST,
    *(
        replace(one, pages=100 if one.stores else SERVED_SMALLEST)
        for one in CONTESTANTS
        if one.variant in ("selectolax", "lxml", "css", "fetch") or one.peer == "crawlee"
    ),
)
RATIOS = {
    "vs_scrapy": "scrapy",
    "vs_crawlee": "crawlee",
    "vs_requests_bs4": "requests_bs4",
    "of_limit": "limit",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One crawl of one contestant.

    Attributes:
        seconds: of the crawl, from its first step to the last commit.
        cpu_s: of its process meanwhile.
        rss_mb: most memory of its process.
        first_page_s: from the start of the process to the first page stored.
    """

    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float
    first_page_s: float

    @property
    def pages_per_s(self) -> float:
        """Pages stored (of the limit: read) in a second of the crawl."""
        return self.pages / self.seconds

    @property
    def pages_per_cpu_s(self) -> float:
        """The same in a second of its CPU time: what others take from the core does not show in it."""
        return self.pages / self.cpu_s


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure every contestant.

    Returns:
        ``ratios``: median over the rounds of our pages a second over the best of that peer's in the same round;
        ``figures``: by contestant pages a second, CPU milliseconds a page, share of the core it had, resident memory
        and seconds to the first page, each as median, least and most, and the pages of a turn; ``by_cpu_time`` the
        ratios as they are in pages a CPU second. Where the two differ, the machine was not free, or one waited.

    Raises:
        InputError: there is only one core.
        BenchError: a contestant failed, stored something else than the others, or the page server was too slow.
    """
    core, others = _cores()
    contestants = [one for one in CONTESTANTS if _installed(one)]
    turns: dict[str, list[Turn]] = {one.name: [] for one in contestants}
    agreement = Agreement()
    began_s = time.monotonic()
    with _page_server(others) as port:
        for done in range(ROUNDS):
            if done and (time.monotonic() - began_s) * (done + 1) / done > _BUDGET_S:
                break
            for one in contestants:
                turns[one.name].append(_turn(one, port, core, agreement))
    _need_fast_server(turns[SERVER.name])
    told: dict[str, Any] = {name: figures(of_one) for name, of_one in turns.items()}
    told |= {
        "by_cpu_time": ratios(turns, lambda turn: turn.pages_per_cpu_s),
        "rounds": len(turns[OURS.name]),
    }
    return {"bench": "crawl", "ratios": ratios(turns, lambda turn: turn.pages_per_s), "figures": told}


def ratios(turns: Mapping[str, Sequence[Turn]], rate: Callable[[Turn], float]) -> dict[str, float | None]:
    """Our rate over that of each peer's fastest variant in the same round; the median of the rounds.

    None for a peer that is not installed.
    """
    found: dict[str, float | None] = {}
    for name, peer in RATIOS.items():
        variants = [turns[one.name] for one in CONTESTANTS if one.peer == peer and one.name in turns]
        if not variants:
            found[name] = None
            continue
        rounds = zip(turns[OURS.name], *variants, strict=True)
        found[name] = round(statistics.median(rate(o) / max(map(rate, peers)) for o, *peers in rounds), 3)
    return found


def figures(turns: Sequence[Turn]) -> dict[str, Any]:
    """Median, least and most of what was measured of one contestant."""
    return {
        "pages": turns[0].pages,
        "pages_per_s": _spread([turn.pages_per_s for turn in turns]),
        "cpu_ms_per_page": _spread([1000 * turn.cpu_s / turn.pages for turn in turns]),
        "core_share": _spread([turn.cpu_s / turn.seconds for turn in turns]),
        "rss_mb": _spread([turn.rss_mb for turn in turns]),
        "first_page_s": _spread([turn.first_page_s for turn in turns]),
    }


def _spread(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def _cores() -> tuple[set[int], set[int]]:
    """The contestants' core, and the page server's."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others and not _NEEDS_TWO_CORES:
        others = [first]
    if not others:
        raise InputError("the crawl bench needs two cores: one for the contestants, one for the page server")
    return {first}, set(others)


def _installed(one: Contestant) -> bool:
    return all(find_spec(name) is not None for name in _PACKAGES.get(one.peer, ()))


def _need_fast_server(turns: Sequence[Turn]) -> None:
    slowest = min(turn.pages_per_s for turn in turns)
    if slowest < _SLOWEST_SERVER_PER_S:
        raise BenchError(
            f"the page server gave {slowest:.0f} pages/s: below {_SLOWEST_SERVER_PER_S} it limits; free its core"
        )


@contextmanager
def _page_server(cores: set[int]) -> Iterator[int]:
    command = [sys.executable, "-m", "research.tools.pageserver", "--pages", str(_SERVED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        os.sched_setaffinity(server.pid, cores)
        assert server.stdout is not None
        # The server ends when its standard input is closed, which leaving this block does.
        yield int(json.loads(server.stdout.readline())["port"])


def _turn(one: Contestant, port: int, core: set[int], agreement: Agreement) -> Turn:
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder:
        database = Path(folder) / "crawled.db"
        command = [sys.executable, "-m", f"research.bench.peers.{one.module}", "--port", str(port)]
        command += ["--pages", str(one.pages), "--database", str(database), "--variant", one.variant]
        told, began = _told(one, command, core)
        if told["pages"] != one.pages:
            raise BenchError(f"{one.name} crawled {told['pages']} pages instead of {one.pages}")
        if one.stores:
            agreement.check(one.name, page_digests(database), one.pages)
    return Turn(told["pages"], told["seconds"], told["cpu_s"], told["rss_mb"], told["first_page_at"] - began)


def _told(one: Contestant, command: Sequence[str], core: set[int]) -> tuple[dict[str, Any], float]:
    """What a contestant told of itself, and the Unix time it was started at."""
    began = time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.sched_setaffinity(process.pid, core)
        try:
            out, complaints = process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError(f"{one.name} was not done after {_LONGEST_S:.0f} s") from None
    if process.returncode != 0:
        raise BenchError(f"{one.name} failed: {complaints.strip()[-500:]}")
    return json.loads(out), began
