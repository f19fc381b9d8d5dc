"""The 2019 balance paper's experiment again, the exact solver at size, and curves learned from noisy runs.

Scenario: ``paper2019-nodes.json`` (its README names the reconstructed parts), 500 URLs on five nodes. Compared are the published split,
the even one, the particle swarm as published, and the exact solver. Learned curves: `research.papers.learned_curves`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.cli.inspect.balance import read_nodes
from app.cli.output import say
from research.bench.registry import shared_file
from research.papers.learned_curves import EPOCHS, NOISE, Learner, draw, ours, published
from tasks.scheduling.balance.curves import Counts, Curve, Curves, evaluate, even, linear, piecewise
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.swarm import swarm

_PUBLISHED = (164, 70, 120, 36, 110)
_TOTAL = 500
_PRINTED = 1.74
"""Makespan of the even split over the paper's own, as the paper prints them."""
_USUAL_ITERATIONS = 1000


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure everything; about a quarter of an hour, most of it learning. Each step is reported on standard error.

    Returns:
        ``ratios``: makespan of the even split over the published one's (paper: 1.74); of the published, the even and
        the swarm's (median of 20 seeds) over the exact; and of learned curves over the exact one (median of 20 draws),
        by nodes x runs; ``figures``: each split with makespan in s and variance in s^2, seconds of the exact
        solver at 1,000 nodes x 1,000,000 URLs, and the spread of all.

    Raises:
        InputError: the scenario is missing.
    """
    seeds, draws, descents = (1, 1, 1) if smallest else (20, 20, 5)
    nodes, urls = (100, 10_000) if smallest else (1000, 1_000_000)
    fleets = ((21, 10),) if smallest else ((21, 10), (40, 10), (40, 25), (100, 10))
    begin_s = time.monotonic()

    def report(step: str) -> None:
        say(f"balance: {step}, {time.monotonic() - begin_s:.0f} s", "dim")

    known = read_nodes(shared_file(shared, "../scenarios/paper2019-nodes.json")).values()
    curves = Curves([one for one in known if isinstance(one, Curve)])
    splits = {
        "published": np.array(_PUBLISHED),
        "even": even(len(curves), _TOTAL),
        "exact": exact(curves, _TOTAL),
    }
    figures: dict[str, Any] = {"paper_even_over_published": _PRINTED}
    for name, allocation in splits.items():
        figures |= _split(name, curves, allocation)
    for iterations in (_USUAL_ITERATIONS,) if smallest else (100, 300, _USUAL_ITERATIONS, 3000):
        report(f"swarm with {iterations} iterations")
        figures |= _swarms(curves, iterations, seeds)
    report(f"exact solver with {nodes} nodes and {urls} URLs")
    figures |= _at_size(nodes, urls)
    ratios = {
        f"{name}_over_exact": round(figures[f"{name}_makespan_s"] / figures["exact_makespan_s"], 4)
        for name in ("published", "even", f"swarm_{_USUAL_ITERATIONS}_median")
    }
    ratios["even_over_published"] = round(figures["even_makespan_s"] / figures["published_makespan_s"], 3)
    learned: list[tuple[str, int, int, int, Learner]] = [
        (f"learned_{count}x{each}", count, each, draws, ours) for count, each in fleets
    ]
    by_descent: Learner = partial(published, epochs=5 if smallest else EPOCHS)
    learned.append(("sgd_40x25", 40, 25, descents, by_descent))
    for name, count, each, times, learner in learned:
        found = []
        for seed in range(times):
            report(f"{name}, draw {seed + 1} of {times}")
            found.append(draw(seed, count, each, NOISE, learner))
        over = [one.learned for one in found]
        ratios[f"{name}_over_exact"] = round(statistics.median(over), 4)
        figures[f"{name}_least"], figures[f"{name}_most"] = round(min(over), 3), round(max(over), 3)
        figures[f"{name}_curve_error"] = round(statistics.median(one.curve_error for one in found), 4)
        figures[f"{name}_even_over_exact"] = round(statistics.median(one.even for one in found), 3)
    return {"bench": "balance", "ratios": ratios, "figures": figures}


def _split(name: str, curves: Curves, allocation: Counts) -> dict[str, Any]:
    split = evaluate(curves, allocation)
    return {
        f"{name}_split": "/".join(map(str, split.allocation)),
        f"{name}_makespan_s": round(split.makespan_s, 3),
        f"{name}_variance": float(f"{split.variance:.4g}"),
    }


def _swarms(curves: Curves, iterations: int, seeds: int) -> dict[str, Any]:
    """Return figures of the swarm's repaired allocations over the seeds."""
    found = [swarm(curves, _TOTAL, np.random.default_rng(seed), iterations) for seed in range(seeds)]
    splits = [evaluate(curves, one.allocation) for one in found]
    makespans = [split.makespan_s for split in splits]
    name = f"swarm_{iterations}"
    return {
        f"{name}_median_makespan_s": round(statistics.median(makespans), 3),
        f"{name}_least_makespan_s": round(min(makespans), 3),
        f"{name}_most_makespan_s": round(max(makespans), 3),
        f"{name}_median_variance": round(statistics.median(split.variance for split in splits), 3),
        f"{name}_feasible_of_{seeds}": sum(one.feasible for one in found),
    }


def _at_size(nodes: int, total: int) -> dict[str, Any]:
    """Return seconds of the exact solver with straight lines and with curves of 40 points."""
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
