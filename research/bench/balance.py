"""The 2019 balance paper's experiment again, the exact solver at size, and curves learned from noisy runs.

Scenario: ``paper2019-nodes.json`` (its README says what is reconstructed), 500 URLs on five nodes. Beside the
published split and the even one: the particle swarm as published by number of iterations, and the exact solver.
Learned curves: see `research.papers.learned_curves`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.cli.balance import read_nodes
from research.papers.learned_curves import NOISE, Drawn, Learner, draw, ours, published
from tasks.scheduling.balance.curves import Counts, Curve, Curves, evaluated, even, linear, piecewise
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.swarm import swarm

_PUBLISHED = (164, 70, 120, 36, 110)
_TOTAL = 500
_USUAL_ITERATIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """How much is measured.

    Attributes:
        seeds, iterations: of the swarm.
        draws, fleets: of learned curves: how often; nodes learned from, and runs of each.
        descents: draws of the published training: a second or two each.
        nodes, urls: divided by the exact solver.
    """

    seeds: int
    iterations: tuple[int, ...]
    draws: int
    fleets: tuple[tuple[int, int], ...]
    descents: int
    nodes: int
    urls: int


_WHOLE = _Sizes(
    seeds=20,
    iterations=(100, 300, _USUAL_ITERATIONS, 3000),
    draws=20,
    fleets=((21, 10), (40, 10), (40, 25), (100, 10)),
    descents=5,
    nodes=1000,
    urls=1_000_000,
)
_SMALLEST = _Sizes(
    seeds=1, iterations=(_USUAL_ITERATIONS,), draws=1, fleets=((21, 10),), descents=1, nodes=100, urls=10_000
)


def run(shared: Path, *, smallest: bool = False) -> dict[str, Any]:
    """Run all.

    Args:
        shared: the folder of the shared data; the scenarios lie beside it.
        smallest: few seeds, draws and nodes: shows that it runs, its figures mean little.

    Returns:
        ``ratios``: makespan of the even split over the published one's (paper: 1.74); of the published, the even and
        the swarm's (median of 20 seeds) over the exact; and of learned curves over the exact one (median of 20 draws),
        by nodes x runs; ``figures``: each split with makespan in s and variance in s^2, seconds of the exact
        solver at 1,000 nodes x 1,000,000 URLs, and the spread of all.

    Raises:
        InputError: the scenario is not there.
    """
    sizes = _SMALLEST if smallest else _WHOLE
    curves = _scenario(shared.parent / "scenarios" / "paper2019-nodes.json")
    figures: dict[str, Any] = {}
    splits = {
        "published": np.array(_PUBLISHED),
        "even": even(len(curves), _TOTAL),
        "exact": exact(curves, _TOTAL),
    }
    for name, allocation in splits.items():
        figures |= _split(name, curves, allocation)
    figures["even_over_published"] = round(figures["even_makespan_s"] / figures["published_makespan_s"], 3)
    for iterations in sizes.iterations:
        figures |= _swarms(curves, iterations, sizes.seeds)
    figures |= _at_size(sizes.nodes, sizes.urls)
    ratios = {
        f"{name}_over_exact": round(figures[f"{name}_makespan_s"] / figures["exact_makespan_s"], 4)
        for name in ("published", "even", f"swarm_{_USUAL_ITERATIONS}_median")
    }
    ratios["even_over_published"] = figures.pop("even_over_published")
    for nodes, each in sizes.fleets:
        name = f"learned_{nodes}x{each}"
        ratios[f"{name}_over_exact"], learned = _learned(name, nodes, each, sizes.draws, ours)
        figures |= learned
    ratios["sgd_40x25_over_exact"], learned = _learned("sgd_40x25", 40, 25, sizes.descents, published)
    return {"bench": "balance", "ratios": ratios, "figures": figures | learned}


def _scenario(path: Path) -> Curves:
    return Curves([known for known in read_nodes(path).values() if isinstance(known, Curve)])


def _split(name: str, curves: Curves, allocation: Counts) -> dict[str, Any]:
    split = evaluated(curves, allocation)
    return {
        f"{name}_split": "/".join(map(str, split.allocation)),
        f"{name}_makespan_s": round(split.makespan_s, 3),
        f"{name}_variance": float(f"{split.variance:.4g}"),
    }


def _swarms(curves: Curves, iterations: int, seeds: int) -> dict[str, Any]:
    """The swarm's repaired allocations over the seeds."""
    found = [swarm(curves, _TOTAL, np.random.default_rng(seed), iterations) for seed in range(seeds)]
    splits = [evaluated(curves, one.allocation) for one in found]
    name = f"swarm_{iterations}"
    makespans = [split.makespan_s for split in splits]
    return {
        f"{name}_median_makespan_s": round(statistics.median(makespans), 3),
        f"{name}_least_makespan_s": round(min(makespans), 3),
        f"{name}_most_makespan_s": round(max(makespans), 3),
        f"{name}_median_variance": round(statistics.median(split.variance for split in splits), 3),
        f"{name}_feasible_of_{seeds}": sum(one.feasible for one in found),
    }


def _at_size(nodes: int, total: int) -> dict[str, Any]:
    """Seconds of the exact solver: median of five."""
    rng = np.random.default_rng(0)
    setups, slopes = rng.uniform(0, 60, nodes), rng.lognormal(0, 0.7, nodes)
    lines = [linear(float(setup), float(slope)) for setup, slope in zip(setups, slopes, strict=True)]
    knots = np.arange(50.0, 2001.0, 50.0)
    bent = [
        piecewise(list(zip(knots.tolist(), np.cumsum(rng.uniform(0, 50, knots.size)).tolist(), strict=True)))
        for _ in range(nodes)
    ]
    return {
        f"exact_{nodes}x{total}_linear_s": _seconds(lines, total),
        f"exact_{nodes}x{total}_piecewise_40_s": _seconds(bent, total),
    }


def _seconds(curves: Sequence[Curve], total: int) -> float:
    took = []
    for _ in range(5):
        begin = time.perf_counter()
        exact(Curves(curves), total)
        took.append(time.perf_counter() - begin)
    return round(statistics.median(took), 3)


def _learned(name: str, nodes: int, each: int, draws: int, learner: Learner) -> tuple[float, dict[str, Any]]:
    """Median over the draws of the makespan over the exact optimum's, and what goes with it."""
    found: list[Drawn] = [draw(seed, nodes, each, NOISE, learner) for seed in range(draws)]
    ratios = [one.learned for one in found]
    return round(statistics.median(ratios), 4), {
        f"{name}_least": round(min(ratios), 3),
        f"{name}_most": round(max(ratios), 3),
        f"{name}_curve_error": round(statistics.median(one.curve_error for one in found), 4),
        f"{name}_even_over_exact": round(statistics.median(one.even for one in found), 3),
    }
