"""Coroutines against threads: our downloader, requests in threads, and threads around our own engine.

Pages of 20 KB from a server that takes 50 ms, each contestant a process on one core, the server on another;
rounds take turns, the median of three counts. A server that answers after 50 ms lets N connections have at most
N / 0.05 s pages a second, whoever asks: figures tell the share of that (`of_possible`). Then 10,000 slow
connections of ours at once, and the experiments of Yang et al. 2014 (figures 3 to 5).
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from research.bench.coroutine_peers.slow import BODY_BYTES
from research.bench.coroutine_peers.window import Order
from research.tools.meter import BenchError, allow_open_files, cores
from research.tools.plots import lines, plots_option
from research.tools.processes import printed_by, serving
from splitter.errors import InputError

_PEERS = "research.bench.coroutine_peers"
_DELAY_S = 0.05
_FILES_BESIDE = 100
"""Open files that a process needs in addition to its connections."""
_CONTESTANTS = {
    "ours": "coroutines (ours)",
    "requests_threads": "threads (requests)",
    "own_threads": "threads (our engine)",
}
_SLEEPERS_APART_S = 0.8
_LINK_BITS_PER_S = 10e6
_PAPER_SHARES = {"paper: coroutines (95 %)": 0.95, "paper: threads (78 %)": 0.78}

Series = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """How much is measured: connections (`levels`, `slow`, `memory_levels`, `sleep_levels`, `link_connections`), rounds and seconds."""

    levels: tuple[int, ...] = (60, 300, 1000)
    rounds: int = 3
    window_s: float = 3.0
    slow: int = 10_000
    memory_levels: tuple[int, ...] = (10, 310, 620, 930, 1250)
    memory_delay_s: float = (
        2.0  # slow enough that every connection is open before the first is answered twice
    )
    sleep_s: float = 5.0
    sleep_levels: tuple[int, ...] = (10, 50, 100, 200, 300)
    link_connections: int = 60
    cycle_s: float = 15.0
    cycle_samples: int = 15


_SMALLEST = _Sizes(
    levels=(10,),
    rounds=1,
    window_s=0.3,
    slow=100,
    memory_levels=(5, 10),
    memory_delay_s=0.3,
    sleep_s=0.2,
    sleep_levels=(2,),
    link_connections=4,
    cycle_s=1.0,
    cycle_samples=2,
)


@plots_option
def run(_shared: Path, smallest: bool, plots: Path | None = None) -> dict[str, Any]:
    """Measure everything; about four minutes on an idle machine.

    Args:
        plots: folder for figure-3.png, figure-4.png and figure-5.png; None: no plots.

    Returns:
        ``ratios``: `vs_requests_threads_N` (pages a second), `memory_vs_own_threads_N` (peak memory) and
        `rss_mb_10000`; ``figures``: everything measured, by contestant and connections, and what the paper printed.

    Raises:
        InputError: too few open files are allowed.
        BenchError: a contestant failed.
    """
    sizes = _SMALLEST if smallest else _Sizes()
    hard, needed = allow_open_files(), sizes.slow + _FILES_BESIDE
    if hard < needed:
        raise InputError(
            f"{sizes.slow} connections need {needed} open files and this system allows {hard}: "
            "raise the hard limit (ulimit -Hn)"
        )
    levels = _side_by_side(sizes)
    slow = _measured("ours", ("hold", sizes.slow), sizes.slow)
    if slow["connections"] < sizes.slow or slow["pages"] < sizes.slow:
        raise BenchError(
            f"{slow['connections']} of {sizes.slow} connections were open, {slow['pages']} pages came"
        )
    ratios = {}
    for count in sizes.levels:
        ours, requests, own = (levels[f"{name}_{count}"] for name in _CONTESTANTS)
        ratios[f"vs_requests_threads_{count}"] = round(ours["pages_per_s"] / requests["pages_per_s"], 2)
        ratios[f"memory_vs_own_threads_{count}"] = round(ours["peak_mb"] / own["peak_mb"], 2)
    ratios[f"rss_mb_{sizes.slow}"] = round(slow["peak_mb"], 1)
    return {
        "bench": "coroutines",
        "ratios": ratios,
        "figures": {
            **levels,
            f"ours_{sizes.slow}_slow": {name: round(value, 1) for name, value in slow.items()},
            "figure_3": _memory(sizes, plots),
            "figure_4": _overhead(sizes, plots),
            "figure_5": _cycle(sizes, plots),
        },
    }


def _measured(
    module: str, pace: tuple[str, float], lanes: int, window_s: float = 0.0, samples: int = 1
) -> dict[str, Any]:
    """Run a contestant against a server of its own.

    Args:
        pace: mode and amount of `coroutine_peers.slow`.

    Returns:
        The figures that it printed, with ``connections`` (open at once, at most) and ``server_cpu_s`` as the server saw it.
    """
    first, others = cores()
    with serving(f"{_PEERS}.slow", pace[0], str(pace[1]), core=others) as (port, done):
        order = json.dumps(asdict(Order(port, lanes, window_s, samples, BODY_BYTES)))
        printed: dict[str, Any] = printed_by(f"{_PEERS}.{module}", order, core=first)
    return {**printed, **done}


def _side_by_side(sizes: _Sizes) -> dict[str, dict[str, Any]]:
    rounds: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for _ in range(sizes.rounds):
        for count in sizes.levels:
            for name in _CONTESTANTS:
                rounds[name, count].append(_measured(name, ("delay", _DELAY_S), count, sizes.window_s))
    levels = {}
    for (name, count), of_case in rounds.items():
        case = median_of(of_case)
        case["of_possible"] = round(case["pages_per_s"] * _DELAY_S / count, 3)
        levels[f"{name}_{count}"] = case
    return levels


def median_of(rounds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return rounds of one case as one: the median of each number, and pages a second of every round."""
    rounds = list(rounds)
    numbers = [name for name, value in rounds[0].items() if isinstance(value, int | float)]
    middle: dict[str, Any] = {
        name: round(statistics.median(one[name] for one in rounds), 3) for name in numbers
    }
    return {**middle, "rounds_pages_per_s": [round(one["pages_per_s"], 1) for one in rounds]}


def _memory(sizes: _Sizes, plots: Path | None) -> dict[str, Any]:
    """Measure figure 3: peak memory against connections. The contestants run at once: they wait nearly all the time."""
    delay_s = sizes.memory_delay_s
    series: Series = {label: [] for label in _CONTESTANTS.values()}
    with ThreadPoolExecutor(len(_CONTESTANTS)) as pool:
        for count in sizes.memory_levels:
            runs = {
                label: pool.submit(_measured, name, ("delay", delay_s), count, delay_s)
                for name, label in _CONTESTANTS.items()
            }
            for label, one in runs.items():
                series[label].append((one.result()["connections"], round(one.result()["peak_mb"], 1)))
    if plots is not None:
        lines(
            plots / "figure-3.png",
            "Memory against connections (figure 3 of Yang et al. 2014)",
            ("connections open at once", "peak resident memory of the process, MB"),
            series,
            "20 KB pages from a server that takes 2 s.\nThe paper: coroutines lower than threads, growing slower.",
        )
    return {
        "mb_by_connections": series,
        "kb_per_connection": {label: kb_per_connection(points) for label, points in series.items()},
        "paper": "coroutines lower than threads, growing slower",
    }


def _overhead(sizes: _Sizes, plots: Path | None) -> dict[str, Any]:
    """Measure figure 4: real time / ideal time of lanes that sleep, the least of three rounds: a busy machine only adds.

    Runs overlap, each beginning and ending while the others only sleep; each kind has a core of its own.
    """
    kinds = dict(zip(("coroutines", "threads"), cores(), strict=True))
    cases = [(kind, count) for _ in range(sizes.rounds) for count in sizes.sleep_levels for kind in kinds]
    runs: dict[tuple[str, int], list[Future[Any]]] = defaultdict(list)
    with ThreadPoolExecutor(len(cases)) as pool:
        for kind, count in cases:
            order = (f"{_PEERS}.sleeping", kind, str(count), str(sizes.sleep_s))
            runs[kind, count].append(pool.submit(printed_by, *order, core=kinds[kind]))
            if kind == "threads":
                time.sleep(_SLEEPERS_APART_S)
    series: Series = {kind: [] for kind in kinds}
    for (kind, count), of_case in runs.items():
        series[kind].append((count, min(one.result() for one in of_case)))
    if plots is not None:
        lines(
            plots / "figure-4.png",
            "What keeping downloads apart costs (figure 4 of Yang et al. 2014)",
            ("downloads at once", f"time beyond the ideal {sizes.sleep_s:g} s, ms"),
            {kind: [(x, (y - sizes.sleep_s) * 1000) for x, y in points] for kind, points in series.items()},
            "Each download is a sleep. The paper draws real / ideal time: from 100 on, threads grow faster.\n"
            "Here that quotient stays so near 1 that only the time above it can be seen.",
        )
    ratios = {kind: [(x, round(y / sizes.sleep_s, 5)) for x, y in points] for kind, points in series.items()}
    return {"real_to_ideal": ratios, "paper": "from 100 at once on, threads grow faster than coroutines"}


def _cycle(sizes: _Sizes, plots: Path | None) -> dict[str, Any]:
    """Measure figure 5: data in a cycle over one slow link. The two run at once, each with a link of its own."""
    names, link = ("ours", "requests_threads"), ("link", _LINK_BITS_PER_S)
    with ThreadPoolExecutor(len(names)) as pool:
        how = (sizes.link_connections, sizes.cycle_s, sizes.cycle_samples)
        told = dict(zip(names, pool.map(lambda name: _measured(name, link, *how), names), strict=True))
    if plots is not None:
        possible_mb = _LINK_BITS_PER_S / 8 * sizes.cycle_s / 1e6
        given = {"limit of the link (10 Mb/s)": 1.0, **_PAPER_SHARES}
        series: Series = {
            _CONTESTANTS[name]: [(0.0, 0.0), *((at_s, megabytes(pages)) for at_s, pages in one["pages_at"])]
            for name, one in told.items()
        }
        series |= {name: [(0, 0), (sizes.cycle_s, share * possible_mb)] for name, share in given.items()}
        lines(
            plots / "figure-5.png",
            "Data in a cycle on a 10 Mb/s link (figure 5 of Yang et al. 2014)",
            (f"seconds of a cycle ({sizes.cycle_s:g} s here, 30 minutes in the paper)", "pages received, MB"),
            series,
            f"{sizes.link_connections} connections, pages of 20 KB. The link is the limit: nobody can be faster.",
        )
    figures = {"paper_coroutines_share_of_link": 0.95, "paper_threads_share_of_link": 0.78}
    for name, one in told.items():
        figures[f"{name}_share_of_link"] = round(megabytes(one["pages_per_s"]) * 8e6 / _LINK_BITS_PER_S, 3)
        figures[f"{name}_cpu_us_per_page"] = round(one["cpu_us_per_page"], 1)
    return figures


def kb_per_connection(points: Sequence[tuple[float, float]]) -> float:
    """Return kilobytes (10^3) that one more connection takes, from the first to the last point (connections, MB)."""
    (few, low_mb), (many, high_mb) = points[0], points[-1]
    return round((high_mb - low_mb) * 1000 / (many - few), 1)


def megabytes(pages: float) -> float:
    """Return the megabytes (10^6) of `pages` bodies."""
    return pages * BODY_BYTES / 1e6
