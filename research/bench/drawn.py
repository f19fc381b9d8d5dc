"""Strategies in scenarios drawn by seed: 12 nodes and 10 sites whose speeds span a factor of 12, still and drifting.

The scenarios are those of `research.bench.strategy_runs.drawn`; what is reached is a share of the proven bound.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from research.bench.strategy_runs.drawn import DURATION_S, Kind, draw
from research.simulator.simulate import simulate
from splitter.errors import InputError
from tasks.jobs.strategies import ALLOCATION

SEEDS = 3
_SMALLEST_S = 120.0


def run(
    shared: Path,  # noqa: ARG001 - every bench is called alike
    *,
    smallest: bool = False,
    strategies: str | None = None,
    seeds: int | None = None,
    seed_from: int = 1,
) -> dict[str, Any]:
    """Measure: a minute or two for each run.

    Args:
        smallest: one seed, cut short.
        strategies: separated by commas; None: `feedback`.
        seeds: how many scenarios of each kind.
        seed_from: the first seed, also of the run's own chance.

    Returns:
        ``ratios``: `KIND.STRATEGY.oracle_ratio`, means over the seeds; ``figures``: pages and ratio of every run.

    Raises:
        InputError: no such strategy.
    """
    names = [part.strip() for part in (strategies or "feedback").split(",")]
    for name in names:
        if name not in ALLOCATION:
            raise InputError(f"strategy {name!r}: there is {', '.join(ALLOCATION)}")
    duration_s = _SMALLEST_S if smallest else DURATION_S
    last = seed_from + (1 if smallest else seeds or SEEDS)
    ratios: dict[str, float | None] = {}
    figures: dict[str, Any] = {}
    for kind in Kind:
        for name in names:
            reached = []
            for seed in range(seed_from, last):
                one = simulate(draw(kind, seed, duration_s=duration_s), name, seed)
                reached.append(one.oracle_ratio or 0.0)
                figures[f"{kind}.{name}.{seed}"] = {
                    "pages": one.pages_collected,
                    "oracle_pages": round(one.oracle_pages or 0.0),
                    "oracle_ratio": round(reached[-1], 4),
                }
                print(f"{kind} {name} seed {seed}: {reached[-1]:.4f}", file=sys.stderr)
            ratios[f"{kind}.{name}.oracle_ratio"] = round(statistics.fmean(reached), 4)
    return {"bench": "drawn", "ratios": ratios, "figures": figures}
