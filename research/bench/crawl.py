"""The whole pipeline side by side: pages a second and memory on one core, each contestant in a process of its own.

Every contestant crawls the same 17 KB pages with 28 records from a page server on the other cores and stores pages
and reviews into a SQLite file (WAL). Contestants take turns, three rounds; what they stored is compared field by
field, and a difference is an error. Faster contestants crawl more of the pages, so that every turn lasts some seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from research.bench.crawl_peers.contest import Agreement, Call, Figures, page_digests
from research.bench.crawl_peers.web import PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE
from research.tools.meter import BenchError, cores
from research.tools.processes import printed_by, serving
from splitter.errors import InputError

ROUNDS = 3
_SERVED, _SERVED_SMALLEST = 12_000, 300
_SLOWEST_SERVER_PER_S = 10_000
_BUDGET_S = 560.0
"""No round is begun that would end later."""
_PACKAGES = {"scrapy": ("scrapy",), "crawlee": ("crawlee", "parsel"), "requests_bs4": ("gevent",)}
"""Packages that a peer's contestants need."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A process that takes part.

    Attributes:
        peer: its name in `ratios`; of several contestants of a peer, the fastest counts.
        module: in `research.bench.crawl_peers`.
        pages: crawled in one turn, and with `--smallest`; of ours whole products, or the first sites of one.
        stores: False: nothing is stored, so nothing is compared.
    """

    peer: str
    module: str
    variant: str
    pages: int
    smallest: int = 100
    stores: bool = True

    @property
    def name(self) -> str:
        """Its name in `figures`."""
        return f"{self.peer}.{self.variant}" if self.variant else self.peer


OURS = Contestant("ours", "ours", "", 4 * PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE)
# It finds the records by itself, with other keys, so it is not compared field by field.
WITHOUT_RULES = Contestant(
    "ours", "ours", "without_rules", 2 * PAGES_OF_A_SITE, PAGES_OF_A_SITE, stores=False
)
SERVER = Contestant("pageserver", "limit", "fetch", _SERVED, _SERVED_SMALLEST, stores=False)
CONTESTANTS = (
    OURS,
    WITHOUT_RULES,
    Contestant("scrapy", "scrapy_crawl", "selectolax", 2400),
    Contestant("scrapy", "scrapy_crawl", "aiohttp", 2400),
    Contestant("crawlee", "crawlee_crawl", "", 2400),
    Contestant("requests_bs4", "gevent_requests", "", 800),
    Contestant("limit", "limit", "css", _SERVED, _SERVED_SMALLEST, stores=False),
    SERVER,
)
RATIOS = {
    "vs_scrapy": (OURS, "scrapy"),
    "vs_crawlee": (OURS, "crawlee"),
    "vs_requests_bs4": (OURS, "requests_bs4"),
    "of_limit": (OURS, "limit"),
    "of_limit_without_rules": (WITHOUT_RULES, "limit"),
}
_TIMED_ROUNDS, _TIMED_SMALLEST = 10, 1
Turns = Mapping[str, Sequence[Figures]]
"""Figures of each round, by contestant."""


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure every contestant.

    Returns:
        ``ratios``: median over the rounds of our pages a second over the best of that peer's in the same round; None for a peer
        that is not installed; ``writing_vs_raw_sqlite``: CPU time of writing over that of sqlite3 alone for the same rows. ``figures``: by contestant pages a second, CPU milliseconds a page, share of the core it had,
        resident memory and seconds to the first page, each as median, least and most, and the pages of a turn;
        ``by_cpu_time`` the ratios in pages a CPU second. If these two differ, the machine was not free, or one waited.
        ``cpu_ms_by_part``: of ours, CPU milliseconds a page (`research.bench.crawl_peers.ours.PARTS`), and `raw_sqlite`.
        ``page_time``: CPU milliseconds of reading one page (`page_times`).

    Raises:
        InputError: there is only one core.
        BenchError: a contestant failed, stored something else than the others, or the page server was too slow.
    """
    core, others = cores()
    if core == others and not smallest:
        raise InputError("the crawl bench needs two cores: one for the contestants, one for the page server")
    contestants = [one for one in CONTESTANTS if all(map(find_spec, _PACKAGES.get(one.peer, ())))]
    missing = sorted({one.peer for one in CONTESTANTS} - {one.peer for one in contestants})
    turns: dict[str, list[Figures]] = {one.name: [] for one in contestants}
    agreement = Agreement()
    begin_s = time.monotonic()
    served = _SERVED_SMALLEST if smallest else _SERVED
    with serving("research.bench.crawl_peers.web", str(served), core=others) as (port, _):
        for done in range(1 if smallest else ROUNDS):
            if done and (time.monotonic() - begin_s) * (done + 1) / done > _BUDGET_S:
                break
            for one in contestants:
                pages = one.smallest if smallest else one.pages
                turns[one.name].append(_turn(one, pages, port, core, agreement))
    slowest = min(_per_s(turn) for turn in turns[SERVER.name])
    if slowest < _SLOWEST_SERVER_PER_S and not smallest:
        raise BenchError(
            f"the page server gave {slowest:.0f} pages/s: below {_SLOWEST_SERVER_PER_S} it limits; free its core"
        )
    figures: dict[str, Any] = {name: _figures(of_one) for name, of_one in turns.items()}
    rounds = str(_TIMED_SMALLEST if smallest else _TIMED_ROUNDS)
    figures |= {"page_time": printed_by("research.bench.crawl_peers.page_time", rounds, core=core)}
    figures |= {"by_cpu_time": ratios(turns, _per_cpu_s), "rounds": len(turns[OURS.name])}
    figures |= {"not_installed": missing} if missing else {}
    writing = [turn.parts["writing"] / turn.raw_writing_s for turn in turns[OURS.name]]
    written = {"writing_vs_raw_sqlite": round(statistics.median(writing), 3)}
    return {"bench": "crawl", "ratios": ratios(turns, _per_s) | written, "figures": figures}


def _per_s(turn: Figures) -> float:
    return turn.pages / turn.seconds


_CPU_TICK_S = 0.01
"""Resolution of the CPU time of a process on Linux: a run of milliseconds may seem to take none."""


def _per_cpu_s(turn: Figures) -> float:
    """Return pages a second of CPU time: what other processes take from the core does not show in it."""
    return turn.pages / max(turn.cpu_s, _CPU_TICK_S)


def ratios(turns: Turns, rate: Callable[[Figures], float]) -> dict[str, float | None]:
    """Return our rate over that of each peer's fastest variant in the same round; the median of the rounds."""
    found: dict[str, float | None] = {}
    for name, (mine, peer) in RATIOS.items():
        variants = [turns[one.name] for one in CONTESTANTS if one.peer == peer and one.name in turns]
        if not variants:
            found[name] = None
            continue
        rounds = zip(turns[mine.name], *variants, strict=True)
        found[name] = round(statistics.median(rate(o) / max(map(rate, peers)) for o, *peers in rounds), 3)
    return found


def _figures(turns: Sequence[Figures]) -> dict[str, Any]:
    columns = {
        "pages_per_s": map(_per_s, turns),
        "cpu_ms_per_page": (1000 / _per_cpu_s(turn) for turn in turns),
        "core_share": (turn.cpu_s / turn.seconds for turn in turns),
        "rss_mb": (turn.rss_mb for turn in turns),
        "first_page_s": (turn.first_page_at for turn in turns),
    }
    figures = {"pages": turns[0].pages, **{name: _spread(list(values)) for name, values in columns.items()}}
    return figures | ({"cpu_ms_by_part": _by_part(turns)} if turns[0].parts else {})


def _by_part(turns: Sequence[Figures]) -> dict[str, float]:
    """Return CPU milliseconds a page by part, and of writing the same rows by sqlite3 alone; medians over the rounds."""
    names = {name for turn in turns for name in turn.parts}
    of_parts = {name: [turn.parts.get(name, 0.0) / turn.pages for turn in turns] for name in sorted(names)}
    of_parts["rest"] = [(turn.cpu_s - sum(turn.parts.values())) / turn.pages for turn in turns]
    of_parts["raw_sqlite"] = [turn.raw_writing_s / turn.pages for turn in turns]
    return {name: round(1000 * statistics.median(values), 3) for name, values in of_parts.items()}


def _spread(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]


def _turn(one: Contestant, pages: int, port: int, core: set[int], agreement: Agreement) -> Figures:
    """Run a contestant. Its `first_page_at` counts from the start of its process."""
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder:
        database = Path(folder) / "crawled.db"
        call = json.dumps(asdict(Call(port, pages, os.fspath(database), one.variant)))
        began = time.time()
        told = printed_by(f"research.bench.crawl_peers.{one.module}", call, core=core)
        if told["pages"] != pages:
            raise BenchError(f"{one.name} crawled {told['pages']} pages instead of {pages}")
        if one.stores:
            agreement.check(one.name, page_digests(database), pages)
    return Figures(**{**told, "first_page_at": told["first_page_at"] - began})
