"""Coroutines against threads: our downloader, requests in threads, and threads around our own engine.

Pages of 20 KB from a server that takes 50 ms, each contestant a process on one core, the server on another;
rounds take turns, the median of three counts. A server that answers after 50 ms lets N connections have at most
N / 0.05 s pages a second, whoever asks: figures tell the share of that (`of_possible`). Then 10,000 slow
connections of ours at once, and the experiments of Yang et al. 2014 (figures 3 to 5).
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from research.bench.coroutine_peers.contest import Pace, asked, measured, median_of
from research.bench.coroutine_peers.slowserver import BODY_BYTES
from research.tools import plots as drawing
from splitter.errors import InputError, ReviewloopError

_LEVELS = (60, 300, 1000)
_ROUNDS = 3
_WINDOW_S = 3.0
_DELAY_S = 0.05
_SLOW = 10_000
_FILES_BESIDE = 100  # open files a process needs beside its connections
_CONTESTANTS = {
    "ours": "coroutines (ours)",
    "requests_threads": "threads (requests)",
    "own_threads": "threads (our engine)",
}
_MEMORY_LEVELS = (10, 310, 620, 930, 1250)
_MEMORY_DELAY_S = 2.0  # slow enough that every connection is open before the first is answered twice
_SLEEP_S = 5.0
_SLEEP_LEVELS = (10, 50, 100, 200, 300)
_SLEEPERS_APART_S = 0.8
_LINK_BITS_PER_S = 10e6
_LINK_CONNECTIONS = 60
_CYCLE_S = 15.0
_CYCLE_SAMPLES = 15
_PAPER_SHARES = {"paper: coroutines (95 %)": 0.95, "paper: threads (78 %)": 0.78}


def run(shared: Path, *, plots: Path | None = None) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure everything; about four minutes on an idle machine.

    Args:
        shared: not used.
        plots: folder for figure-3.png, figure-4.png and figure-5.png; None: no plots.

    Returns:
        ``ratios``: `vs_requests_threads_N` (pages a second), `memory_vs_own_threads_N` (peak memory) and
        `rss_mb_10000`; ``figures``: everything measured, by contestant and connections, and what the paper
        printed beside what came out here.

    Raises:
        InputError: too few open files are allowed, or plots can't be drawn.
        ReviewloopError: a contestant failed.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < _SLOW + _FILES_BESIDE:
        raise InputError(
            f"{_SLOW} connections need {_SLOW + _FILES_BESIDE} open files and this system allows {hard}: "
            "raise the hard limit (ulimit -Hn)"
        )
    if plots is not None:
        drawing.check_there()
    levels = _side_by_side()
    slow = _slow_connections()
    figures: dict[str, Any] = {**levels, f"ours_{_SLOW}_slow": slow}
    for name, part in (("figure_3", _memory), ("figure_4", _overhead), ("figure_5", _cycle)):
        figures[name] = part(plots)
    return {
        "bench": "coroutines",
        "ratios": {**_ratios(levels), f"rss_mb_{_SLOW}": slow["peak_mb"]},
        "figures": figures,
    }


def _ratios(levels: dict[str, dict[str, Any]]) -> dict[str, float]:
    ratios = {}
    for count in _LEVELS:
        ours, requests, own = (levels[f"{name}_{count}"] for name in _CONTESTANTS)
        ratios[f"vs_requests_threads_{count}"] = round(ours["pages_per_s"] / requests["pages_per_s"], 2)
        ratios[f"memory_vs_own_threads_{count}"] = round(ours["peak_mb"] / own["peak_mb"], 2)
    return ratios


def _side_by_side() -> dict[str, dict[str, Any]]:
    rounds: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for _ in range(_ROUNDS):
        for count in _LEVELS:
            for name in _CONTESTANTS:
                rounds[name, count].append(measured(name, Pace("delay", _DELAY_S), count, _WINDOW_S))
    levels = {}
    for (name, count), of_case in rounds.items():
        case = median_of(of_case)
        case["of_possible"] = round(case["pages_per_s"] * _DELAY_S / count, 3)
        levels[f"{name}_{count}"] = case
    return levels


def _slow_connections() -> dict[str, float]:
    """Ours with all its connections open before the first answer."""
    told = measured("held", Pace("hold", _SLOW), _SLOW)
    if told["connections"] < _SLOW or told["pages"] < _SLOW:
        raise ReviewloopError(
            f"{told['connections']} of {_SLOW} connections were open, {told['pages']} pages came"
        )
    return {name: round(value, 1) for name, value in told.items()}


def _memory(plots: Path | None) -> dict[str, Any]:
    """Figure 3: peak memory against connections. The contestants run at once: they wait nearly all the time."""
    pace = Pace("delay", _MEMORY_DELAY_S)
    series: dict[str, list[tuple[float, float]]] = {label: [] for label in _CONTESTANTS.values()}
    with ThreadPoolExecutor(len(_CONTESTANTS)) as pool:
        for count in _MEMORY_LEVELS:
            runs = {
                label: pool.submit(measured, name, pace, count, _MEMORY_DELAY_S)
                for name, label in _CONTESTANTS.items()
            }
            for label, told in runs.items():
                series[label].append((told.result()["connections"], round(told.result()["peak_mb"], 1)))
    if plots is not None:
        drawing.lines(
            plots / "figure-3.png",
            "Memory against connections (figure 3 of Yang et al. 2014)",
            "connections open at once",
            "peak resident memory of the process, MB",
            series,
            "20 KB pages from a server that takes 2 s.\nThe paper: coroutines lower than threads, growing slower.",
        )
    return {
        "mb_by_connections": series,
        "kb_per_connection": {label: kb_per_connection(points) for label, points in series.items()},
        "paper": "coroutines lower than threads, growing slower",
    }


def _overhead(plots: Path | None) -> dict[str, Any]:
    """Figure 4: real time / ideal time of lanes that sleep, the least of three rounds: a busy machine only adds.

    Runs overlap, each beginning and ending while the others only sleep; each kind has a core of its own.
    """
    kinds = ("coroutines", "threads")
    cases = [(kind, count) for _ in range(_ROUNDS) for count in _SLEEP_LEVELS for kind in kinds]
    runs: dict[tuple[str, int], list[Future[Any]]] = defaultdict(list)
    with ThreadPoolExecutor(len(cases)) as pool:
        for kind, count in cases:
            runs[kind, count].append(pool.submit(asked, "sleeping", kind, str(count), str(_SLEEP_S)))
            if kind == kinds[-1]:
                time.sleep(_SLEEPERS_APART_S)
    series: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for (kind, count), of_case in runs.items():
        series[kind].append((count, min(one.result() for one in of_case)))
    if plots is not None:
        drawing.lines(
            plots / "figure-4.png",
            "What keeping downloads apart costs (figure 4 of Yang et al. 2014)",
            "downloads at once",
            "time beyond the ideal 5 s, ms",
            {kind: [(x, (y - _SLEEP_S) * 1000) for x, y in points] for kind, points in series.items()},
            "Each download is a sleep of 5 s. The paper draws real / ideal time: from 100 on, threads grow faster.\n"
            "Here that quotient stays so near 1 that only the time above 5 s can be seen.",
        )
    ratios = {kind: [(x, round(y / _SLEEP_S, 5)) for x, y in points] for kind, points in series.items()}
    return {"real_to_ideal": ratios, "paper": "from 100 at once on, threads grow faster than coroutines"}


def _cycle(plots: Path | None) -> dict[str, Any]:
    """Figure 5: data in a cycle over one slow link. The two run at once, each with a link of its own."""
    pace = Pace("link", _LINK_BITS_PER_S)
    names = ("ours", "requests_threads")
    with ThreadPoolExecutor(len(names)) as pool:
        runs = [
            pool.submit(measured, name, pace, _LINK_CONNECTIONS, _CYCLE_S, _CYCLE_SAMPLES) for name in names
        ]
        told = {name: one.result() for name, one in zip(names, runs, strict=True)}
    possible_mb = _LINK_BITS_PER_S / 8 * _CYCLE_S / 1e6
    series = {
        _CONTESTANTS[name]: [(0.0, 0.0), *((at_s, megabytes(pages)) for at_s, pages in one["pages_at"])]
        for name, one in told.items()
    }
    if plots is not None:
        given = {"limit of the link (10 Mb/s)": 1.0, **_PAPER_SHARES}
        drawing.lines(
            plots / "figure-5.png",
            "Data in a cycle on a 10 Mb/s link (figure 5 of Yang et al. 2014)",
            f"seconds of a cycle ({_CYCLE_S:g} s here, 30 minutes in the paper)",
            "pages received, MB",
            {**series, **{name: [(0, 0), (_CYCLE_S, share * possible_mb)] for name, share in given.items()}},
            f"{_LINK_CONNECTIONS} connections, pages of 20 KB. The link is the limit: nobody can be faster than it.",
        )
    shares = {
        f"{name}_share_of_link": round(megabytes(one["pages_per_s"]) * 8e6 / _LINK_BITS_PER_S, 3)
        for name, one in told.items()
    }
    cpu = {f"{name}_cpu_us_per_page": round(one["cpu_us_per_page"], 1) for name, one in told.items()}
    return {**shares, **cpu, "paper_coroutines_share_of_link": 0.95, "paper_threads_share_of_link": 0.78}


def kb_per_connection(points: Sequence[tuple[float, float]]) -> float:
    """Kilobytes (10^3) one more connection takes, from the first to the last point (connections, MB)."""
    (few, low_mb), (many, high_mb) = points[0], points[-1]
    return round((high_mb - low_mb) * 1000 / (many - few), 1)


def megabytes(pages: float) -> float:
    """Megabytes (10^6) in so many bodies."""
    return pages * BODY_BYTES / 1e6
