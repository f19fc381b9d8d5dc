"""Every strategy on every scenario: share of the bound that each reaches, and whether `feedback` is ahead."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.bench.registry import shared_file
from research.bench.strategies.runs import FEEDBACK, Outcomes, Run, Scene

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PAPER = "paper2014"

STRATEGIES = (FEEDBACK, "feedback2014", "sed", "balance", "least_loaded", "round_robin", "hash", "random")
"""All but `proximity`, which needs delays: see `research.bench.strategies.near`."""

_USUAL_SEEDS = 3
_PAPER_SEEDS = 20
_CLOSEST = (FEEDBACK, "feedback2014", "hash", "random")
"""Strategies with all seeds of the paper's scenario; the others have the usual seeds."""

COMPARED_WITHOUT = (PAPER, "blocks", "flaky_node")
"""Scenarios in which our strategies are switched off one by one (`research.bench.strategies.switched_off`)."""

SEEDS_WITHOUT = 5
_WITHOUT = (FEEDBACK, "random")
_SEEDS = {"large_30x203": 2}

Spread = tuple[float, float, float]
"""Median, least and most."""


def scenes(shared: Path) -> list[Scene]:
    """Return the paper's scenario, then all of `research/scenarios` by name. Raises InputError if the first is missing."""
    paper = shared_file(shared, f"../scenarios/{PAPER}.yaml")
    return [Scene.read(path) for path in (paper, *sorted(SCENARIOS.glob("*.yaml")))]


def runs(of: Iterable[Scene]) -> list[Run]:
    """Return the runs of every strategy with every seed of every scenario."""
    return [
        Run(scene, name, name, seed)
        for scene in of
        for name in STRATEGIES
        for seed in seeds(scene.name, name)
    ]


def seeds(scenario: str, strategy: str) -> range:
    """Return the seeds that a strategy is run with."""
    if scenario == PAPER and strategy in _CLOSEST:
        return range(1, _PAPER_SEEDS + 1)
    if scenario in COMPARED_WITHOUT and strategy in _WITHOUT:
        return range(1, SEEDS_WITHOUT + 1)
    return range(1, _SEEDS.get(scenario, _USUAL_SEEDS) + 1)


def spread(values: Sequence[float]) -> Spread:
    """Return median, least and most, to four places."""
    return round(statistics.median(values), 4), round(min(values), 4), round(max(values), 4)


def ratios(outcomes: Outcomes, scenario: str, label: str) -> dict[int, float]:
    """Return the share of the bound by seed; 0 if the work was never done."""
    return {
        seed: outcome.oracle_ratio or 0.0
        for (of, name, seed), outcome in sorted(outcomes.items())
        if (of, name) == (scenario, label)
    }


def _lead(ours: Mapping[int, float], theirs: Mapping[int, float]) -> dict[str, Any]:
    """Return our lead over another strategy on the seeds of both: median of (ours - theirs) / theirs, and its spread.

    The verdict is "ahead" or "behind" if the lead is more than the standard deviation over the seeds and a thousandth.
    """
    leads = [ours[seed] / ratio - 1.0 if ratio else float("inf") for seed, ratio in theirs.items()]
    finite = len(leads) > 1 and max(leads) < float("inf")
    lead, deviation = statistics.median(leads), statistics.stdev(leads) if finite else 0.0
    level = abs(lead) <= max(deviation, 0.001)
    verdict = "level" if level else "ahead" if lead > 0 else "behind"
    return {"lead": round(lead, 4), "spread": round(deviation, 4), "verdict": verdict}


def compared(
    outcomes: Outcomes, scenario: str, labels: Sequence[str] = STRATEGIES, ours: str = FEEDBACK
) -> dict[str, Any]:
    """Return one scenario's figures: by strategy the share of the bound, and how ours stands to the others."""
    by_label = {label: of for label in labels if (of := ratios(outcomes, scenario, label))}
    share = {label: spread(list(of.values())) for label, of in by_label.items()}
    against = [
        {"other": label, **_lead(by_label[ours], of)} for label, of in by_label.items() if label != ours
    ]
    return {
        "oracle_ratio": share,
        "winner": max(share, key=lambda label: share[label]),
        f"{ours}_against_the_best_other": min(against, key=lambda one: one["lead"]),
        f"{ours}_behind": {one["other"]: one["lead"] for one in against if one["verdict"] == "behind"},
    }


def medians(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return `SCENARIO.STRATEGY.oracle_ratio` of compared scenarios."""
    return {
        f"{scenario}.{label}.oracle_ratio": share[0]
        for scenario, told in figures.items()
        for label, share in told["oracle_ratio"].items()
    }
