"""The simulator's size: 1,000 nodes and 1,000,000 subtasks on one core, strategy by strategy.

Each run is a process of its own, one after the other, so that its peak memory is its own; CPU seconds are those of the
run, without reading the scenario. Nodes of ten regions, sites of ten regions, each with its own near one; every
subtask is a task of a few pages, and all wait from the beginning.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from research.simulator.outcome import Options
from research.simulator.scenario_file import parse_scenario
from research.simulator.simulate import simulate

NODES, SITES, SUBTASKS = 1_000, 200, 1_000_000
_REGIONS = 10
STRATEGIES = ("random", "feedback")


def scenario(nodes: int = NODES, sites: int = SITES, subtasks: int = SUBTASKS) -> str:
    """YAML of a scenario of that size; numbers of nodes and sites are divisible by ten."""
    regions = range(_REGIONS)
    return "\n".join(
        (
            "until_done: true",
            "nodes:",
            *(f"  - {{name: n{r}-, count: {nodes // _REGIONS}, slots: 4}}" for r in regions),
            "sites:",
            *(f"  - {{name: s{r}-, count: {sites // _REGIONS}, overhead_s: 1.0}}" for r in regions),
            "pairs:",
            '  - {node: "*", site: "*", seconds_per_page: 1.0, completion: 0.9, fail: 0.01, hang: 0.001}',
            *(f"  - {{node: n{r}-, site: s{r}-, seconds_per_page: 0.4, completion: 0.97}}" for r in regions),
            f"work: {{products: {subtasks // sites}, hits: {{dist: lognormal, mean: 10, sigma: 0.5}}}}",
        )
    )


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure all four runs, one after the other.

    Returns:
        ``ratios``: by run, CPU microseconds an attempt; ``figures``: by run, CPU seconds, peak memory in MiB, attempts,
        pages, virtual makespan.
    """
    figures = {
        f"{strategy}, modification {'on' if modification else 'off'}": _apart(
            partial(measured, strategy, modification, SUBTASKS, NODES)
        )
        for strategy in STRATEGIES
        for modification in (False, True)
    }
    return {
        "bench": "simulator",
        "ratios": {
            f"cpu_us_an_attempt.{name}": round(told["cpu_s"] / told["attempts"] * 1e6, 1)
            for name, told in figures.items()
        },
        "figures": {"nodes": NODES, "sites": SITES, "subtasks": SUBTASKS, **figures},
    }


def measured(
    strategy: str, modification: bool, subtasks: int = SUBTASKS, nodes: int = NODES
) -> dict[str, float]:
    """One run in this process."""
    parsed = parse_scenario(scenario(nodes=nodes, subtasks=subtasks), "bench simulator", Path())
    begun_s = time.process_time()
    outcome = simulate(parsed, strategy, 1, Options(oracle=False, modification=modification))
    return {
        "cpu_s": round(time.process_time() - begun_s, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "attempts": outcome.attempts,
        "pages": outcome.pages_collected,
        "makespan_s": round(outcome.makespan_s, 1),
    }


def _apart(job: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The result of a job that a new process did."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job)
