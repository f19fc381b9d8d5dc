"""The whole pipeline side by side: CPU time and memory of a page on one core, each contestant in a process of its own.

Every contestant crawls the same pages of 17 KB with 28 records, as many as the others, from a page server on the other cores and
stores pages and reviews into a SQLite file (WAL). Contestants take turns, three rounds; what they stored is compared field by
field, and a difference is an error. Each also crawls a quarter of the pages, so that its start can be told from a page's cost.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.run.version import ROOT
from research.bench.crawl_peers.contest import Agreement, Call, Figures, children_cpu_s, page_digests
from research.bench.crawl_peers.web import PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE
from research.tools.meter import BenchError, cores
from research.tools.processes import printed_by, serving
from splitter.errors import InputError

ROUNDS = 3
PAGES = 2 * PAGES_OF_A_PRODUCT
"""Pages that every contestant crawls."""

FEW = PAGES // 4
"""Pages of the second, smaller crawl."""

SMALLEST = PAGES_OF_A_SITE
_LONGEST_TURN_S = 600.0
_BUDGET_S = 3000.0
"""No round is begun that would end later."""
_PACKAGES = {
    "scrapy": ("scrapy", "turbohtml"),
    "crawlee": ("crawlee", "parsel", "turbohtml"),
    "requests_bs4": ("gevent",),
}
"""Packages that a peer's contestants need."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A process that takes part.

    Attributes:
        module: in `research.bench.crawl_peers`.
        stores: False: nothing is stored, so nothing is compared.
        has_few: whether it crawls `FEW` pages, too.
        needs: packages besides those of its peer.
    """

    peer: str
    module: str
    variant: str = ""
    stores: bool = True
    has_few: bool = True
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in `figures`."""
        return f"{self.peer}.{self.variant}" if self.variant else self.peer

    @property
    def is_installed(self) -> bool:
        """Return True if all packages that it needs are installed."""
        return all(map(find_spec, (*_PACKAGES.get(self.peer, ()), *self.needs)))


OURS = Contestant("ours", "ours")
# It finds the records by itself, with other keys, so it is not compared field by field.
WITHOUT_RULES = Contestant("ours", "ours", "without_rules", stores=False, has_few=False)
WITHOUT_JUDGING = Contestant("ours", "ours", "without_judging")
SCRAPY = (
    Contestant("scrapy", "scrapy_crawl", "selectolax"),
    Contestant("scrapy", "scrapy_crawl", "aiohttp"),
    Contestant("scrapy", "scrapy_crawl", "turbohtml"),
)
CRAWLEE = (
    Contestant("crawlee", "crawlee_crawl"),
    Contestant("crawlee", "crawlee_crawl", "selectolax"),
    Contestant("crawlee", "crawlee_crawl", "turbohtml"),
)
REQUESTS_BS4 = Contestant("requests_bs4", "gevent_requests")
LIMIT = Contestant("limit", "limit", "selectolax", stores=False)
LIMIT_TURBOHTML = Contestant("limit", "limit", "turbohtml", stores=False, needs=("turbohtml",))
SERVER = Contestant("pageserver", "limit", "fetch", stores=False, has_few=False)
CONTESTANTS = (
    OURS,
    WITHOUT_RULES,
    WITHOUT_JUDGING,
    *SCRAPY,
    *CRAWLEE,
    REQUESTS_BS4,
    LIMIT,
    LIMIT_TURBOHTML,
    SERVER,
)
RATIOS: Mapping[str, tuple[Contestant, Sequence[Contestant]]] = {
    "vs_scrapy": (OURS, SCRAPY),
    "vs_scrapy_without_judging": (WITHOUT_JUDGING, SCRAPY),
    "vs_crawlee": (OURS, CRAWLEE),
    "vs_crawlee_without_judging": (WITHOUT_JUDGING, CRAWLEE),
    "vs_requests_bs4": (OURS, (REQUESTS_BS4,)),
    "of_limit": (OURS, (LIMIT,)),
    "of_limit_turbohtml": (OURS, (LIMIT_TURBOHTML,)),
    "of_limit_without_rules": (WITHOUT_RULES, (LIMIT,)),
}
"""Each ratio's contestant, and those of which the fastest counts."""

_TIMED_ROUNDS, _TIMED_SMALLEST = 10, 1
Costs = Mapping[str, Sequence[float]]
"""Seconds a page in each round, by contestant."""


@dataclass(slots=True)
class Turns:
    """Figures of each round, by contestant: of all pages, and of `FEW`."""

    all: dict[str, list[Figures]] = field(default_factory=dict)
    few: dict[str, list[Figures]] = field(default_factory=dict)


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure every contestant.

    Returns:
        ``ratios``: pages a CPU second of ours over those of the peer's fastest variant in the same round, median of the rounds; None
        for a peer that is not installed. The CPU time is that of the whole process tree from its start to its end, user and system.
        ``*_marginal``: the same without the start, by the slope between the two sizes (None with `smallest`);
        ``vs_requests_bs4_few`` is of the smaller size, and what the guard in CI measures again. ``writing_vs_raw_sqlite``: CPU time
        of writing over that of sqlite3 alone for the same rows in commits of 100 pages. ``figures``: those of `_figures` by
        contestant; ``vs`` and ``vs_marginal``: ours over each other contestant; ``by_clock``: the ratios in pages a second;
        ``page_time``: CPU milliseconds of reading one page (`page_times`).

    Raises:
        InputError: there is only one core.
        BenchError: a contestant failed or stored something else than the others.
    """
    core, others = cores()
    if core == others and not smallest:
        raise InputError("the crawl bench needs two cores: one for the contestants, one for the page server")
    contestants = [one for one in CONTESTANTS if one.is_installed]
    turns = Turns()
    begin_s = time.monotonic()
    with course(core, others, SMALLEST if smallest else PAGES) as take_turn:
        for done in range(1 if smallest else ROUNDS):
            if done and (time.monotonic() - begin_s) * (done + 1) / done > _BUDGET_S:
                break
            for one in contestants:
                turns.all.setdefault(one.name, []).append(take_turn(one, SMALLEST if smallest else PAGES))
                if one.has_few and not smallest:
                    turns.few.setdefault(one.name, []).append(take_turn(one, FEW))
    figures = _all_figures(turns)
    rounds = str(_TIMED_SMALLEST if smallest else _TIMED_ROUNDS)
    figures |= {"page_time": printed_by("research.bench.crawl_peers.page_time", rounds, core=core)}
    missing = [one.name for one in CONTESTANTS if one not in contestants]
    figures |= {"not_installed": missing} if missing else {}
    return {"bench": "crawl", "ratios": _all_ratios(turns), "figures": figures}


@contextmanager
def course(core: set[int], others: set[int], pages: int) -> Iterator[Callable[[Contestant, int], Figures]]:
    """Serve pages on the other cores; yields the function that lets a contestant crawl the first of them on its core."""
    agreement = Agreement()
    for layer in ("app", "tasks", "splitter", "research"):
        compileall.compile_dir(ROOT / layer, quiet=2)
    with serving("research.bench.crawl_peers.web", str(pages), core=others) as (port, _):
        yield lambda one, count: _turn(one, count, port, core, agreement)


def _turn(one: Contestant, pages: int, port: int, core: set[int], agreement: Agreement) -> Figures:
    """Run a contestant. Its `first_page_at` counts from the start of its process."""
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder:
        database = Path(folder) / "crawled.db"
        call = json.dumps(asdict(Call(port, pages, os.fspath(database), one.variant)))
        began, began_cpu_s = time.time(), children_cpu_s()
        module = f"research.bench.crawl_peers.{one.module}"
        found = Figures(**printed_by(module, call, core=core, timeout_s=_LONGEST_TURN_S))
        process_cpu_s = children_cpu_s() - began_cpu_s
        if found.pages != pages:
            raise BenchError(f"{one.name} crawled {found.pages} pages instead of {pages}")
        if one.stores:
            agreement.check(one.name, page_digests(database), pages)
        raw_s = 0.0
        if one == OURS:
            copy = os.fspath(database.with_name("raw.db"))
            raw_s = printed_by("research.bench.crawl_peers.raw_writing", os.fspath(database), copy, core=core)
    return replace(
        found,
        first_page_at=found.first_page_at - began,
        process_cpu_s=process_cpu_s,
        raw_writing_s=raw_s,
    )


def with_start(turns: Mapping[str, Sequence[Figures]]) -> Costs:
    """Return CPU seconds a page, the start of the process included."""
    return {name: [turn.process_cpu_s / turn.pages for turn in rounds] for name, rounds in turns.items()}


def without_start(turns: Turns) -> Costs:
    """Return CPU seconds of one more page: the slope between the two sizes, in each round."""
    return {
        name: [_slope(all_, few) for all_, few in zip(turns.all[name], rounds, strict=True)]
        for name, rounds in turns.few.items()
    }


def _slope(all_: Figures, few: Figures) -> float:
    return (all_.process_cpu_s - few.process_cpu_s) / (all_.pages - few.pages)


def ratios(costs: Costs) -> dict[str, float | None]:
    """Return each ratio of `RATIOS`: the cost of the fastest other contestant of a round over ours; the median of the rounds."""
    found: dict[str, float | None] = {}
    for name, (mine, rivals) in RATIOS.items():
        theirs = [costs[one.name] for one in rivals if one.name in costs]
        there = theirs and mine.name in costs
        found[name] = _ratio(costs[mine.name], theirs) if there else None
    return found


def _ratio(mine: Sequence[float], theirs: Sequence[Sequence[float]]) -> float:
    rounds = zip(mine, *theirs, strict=True)
    return float(round(statistics.median(min(others) / own for own, *others in rounds), 3))


def _all_ratios(turns: Turns) -> dict[str, float | None]:
    found = ratios(with_start(turns.all))
    marginal = ratios(without_start(turns))
    found |= {f"{name}_marginal": marginal[name] for name in ("vs_scrapy", "vs_crawlee", "of_limit")}
    found["vs_requests_bs4_few"] = ratios(with_start(turns.few))["vs_requests_bs4"]
    writing = [turn.parts["writing"] / turn.raw_writing_s for turn in turns.all[OURS.name]]
    return found | {"writing_vs_raw_sqlite": round(statistics.median(writing), 3)}


def _all_figures(turns: Turns) -> dict[str, Any]:
    costs, slopes = with_start(turns.all), without_start(turns)
    figures: dict[str, Any] = {
        name: _figures(rounds, turns.few.get(name, ())) for name, rounds in turns.all.items()
    }
    clock = {name: [turn.seconds / turn.pages for turn in rounds] for name, rounds in turns.all.items()}
    return figures | {
        "vs": _of_each(costs),
        "vs_marginal": _of_each(slopes),
        "by_clock": ratios(clock),
        "rounds": len(turns.all[OURS.name]),
    }


def _of_each(costs: Costs) -> dict[str, float]:
    others = {one.name for one in CONTESTANTS} - {OURS.name}
    return {name: _ratio(costs[OURS.name], [costs[name]]) for name in sorted(others & costs.keys())}


def _figures(turns: Sequence[Figures], few: Sequence[Figures]) -> dict[str, Any]:
    """Return a contestant's figures, each as median, least and most of the rounds.

    Returns:
        CPU milliseconds a page: with the start of the process, without it (``marginal_``) and from the first step of the crawl on
        (``crawl_``: Python and imports left out); CPU seconds of the start; pages a second from the first step on; share of the core
        it had; resident memory; seconds to the first page; of ours CPU milliseconds a page by part
        (`research.bench.crawl_peers.ours.THREADS`) from the first step on, and without the start.
    """
    slopes = [_slope(*pair) for pair in zip(turns, few, strict=True)] if few else []
    columns = {
        "cpu_ms_per_page": [1000 * turn.process_cpu_s / turn.pages for turn in turns],
        "marginal_cpu_ms_per_page": [1000 * slope for slope in slopes],
        "crawl_cpu_ms_per_page": [1000 * turn.cpu_s / turn.pages for turn in turns],
        "start_cpu_s": [
            turn.process_cpu_s - turn.pages * slope for turn, slope in zip(turns, slopes, strict=False)
        ],
        "pages_per_s": [turn.pages / turn.seconds for turn in turns],
        "core_share": [turn.cpu_s / turn.seconds for turn in turns],
        "rss_mb": [turn.rss_mb for turn in turns],
        "first_page_s": [turn.first_page_at for turn in turns],
    }
    figures = {
        "pages": turns[0].pages,
        **{name: _spread(values) for name, values in columns.items() if values},
    }
    if turns[0].parts:
        figures["cpu_ms_by_part"] = _by_part(turns)
    if turns[0].parts and few:
        figures["marginal_cpu_ms_by_part"] = _by_part(turns, few)
    return figures


def _by_part(turns: Sequence[Figures], few: Sequence[Figures] = ()) -> dict[str, float]:
    """Return CPU milliseconds a page by part, of the slope if `few` are given; medians of the rounds."""
    found: dict[str, float] = {}
    less = few or [Figures(0, 0.0, 0.0, 0.0, 0.0)] * len(turns)
    for part in sorted({part for turn in turns for part in _parts(turn)}):
        rounds = [
            (_parts(turn).get(part, 0.0) - _parts(small).get(part, 0.0)) / (turn.pages - small.pages)
            for turn, small in zip(turns, less, strict=True)
        ]
        found[part] = round(1000 * statistics.median(rounds), 3)
    return found


def _parts(turn: Figures) -> dict[str, float]:
    """Return CPU seconds by part; `rest` is what no part has, `raw_sqlite` the same rows by sqlite3 alone."""
    rest = turn.cpu_s - sum(turn.parts.values())
    return {**turn.parts, "rest": rest, "raw_sqlite": turn.raw_writing_s}


def _spread(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in (statistics.median(values), min(values), max(values))]
