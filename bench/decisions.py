"""What one round of allocation costs, in memory: 1,000 waiting subtasks on more and more nodes and sites."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from random import Random
from typing import Any

from tasks.model import NodeView, PairStats, SubtaskView
from tasks.strategies import ALLOCATION
from tasks.strategies.decision import AllocationSettings

_WAITING = 1000
_ROUNDS = 15
_CASES = ((4, 5), (10, 35), (10, 300), (30, 203))  # nodes, sites


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure every allocation strategy in every case.

    Returns:
        ``ratios``: median time of a round of `feedback` against `random`; ``figures``: milliseconds a round, as median,
        least and most of 15 rounds.
    """
    figures: dict[str, list[float]] = {}
    ratios: dict[str, float] = {}
    for nodes, sites in _CASES:
        case = f"{nodes}_nodes_{sites}_sites"
        for strategy in ALLOCATION:
            figures[f"{strategy}_{case}_ms"] = _rounds(strategy, nodes, sites)
        feedback, chance = (figures[f"{name}_{case}_ms"][0] for name in ("feedback", "random"))
        ratios[f"feedback_vs_random.{case}"] = round(feedback / chance, 2)
    return {"bench": "decisions", "ratios": ratios, "figures": figures}


def _rounds(strategy: str, node_count: int, site_count: int) -> list[float]:
    rng = Random(1)
    sites = [f"site{n}.cn" for n in range(site_count)]
    nodes = [NodeView(f"n{n}", frozenset({"meta"}), 4, 4) for n in range(node_count)]
    stats = {
        (site, node.name): PairStats(
            site, node.name, 9, 1, 0, 90, 90, rng.uniform(30, 90), rng.uniform(20, 200)
        )
        for site in sites
        for node in nodes
    }
    waiting = []
    for number in range(_WAITING):
        site = rng.choice(sites)
        waiting.append(SubtaskView(number, site, "meta", ("engine", site), rng.randint(1, 50), 0))
    took_ms = []
    for seed in range(_ROUNDS):
        begin = time.perf_counter()
        ALLOCATION[strategy](waiting, nodes, {}, stats, AllocationSettings(), Random(seed))
        took_ms.append((time.perf_counter() - begin) * 1000)
    return [round(value, 1) for value in (statistics.median(took_ms), min(took_ms), max(took_ms))]
