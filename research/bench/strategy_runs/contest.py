"""Every strategy on every scenario: share of the bound that each reaches, and whether `feedback` is ahead."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.bench.strategy_runs.runs import FEEDBACK, Outcomes, Run, Scene
from research.simulator.outcome import Options

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PAPER = "paper2014"

STRATEGIES = (FEEDBACK, "feedback2014", "sed", "balance", "least_loaded", "round_robin", "hash", "random")
"""All but `proximity`, which needs delays: see `research.bench.strategy_runs.near`."""

_USUAL_SEEDS = 3
_PAPER_SEEDS = 20
_CLOSEST = (FEEDBACK, "feedback2014", "hash", "random")
"""On all seeds of the paper's scenario; the others on the usual seeds."""

WINDOWED = (PAPER, "blocks", "flaky_node")
"""Scenarios whose runs are looked at over time, too, in windows of so long; of some strategies, with more seeds."""

WINDOW_S = 900.0
WINDOWED_SEEDS = 5
_WINDOWED_STRATEGIES = (FEEDBACK, "random")

_SEEDS = {"large_30x203": 2}

Spread = tuple[float, float, float]
"""Median, least and most."""


def scenes(shared: Path) -> list[Scene]:
    """The paper's scenario, then all of `research/scenarios` by name.

    Args:
        shared: the folder of the shared data; the scenarios lie beside it.
    """
    paper = shared.parent / "scenarios" / f"{PAPER}.yaml"
    return [Scene.read(path) for path in (paper, *sorted(SCENARIOS.glob("*.yaml")))]


def runs(of: Iterable[Scene]) -> list[Run]:
    """Every strategy with every seed of every scenario."""
    return [
        Run(scene, name, name, seed, _options(scene.name, name))
        for scene in of
        for name in STRATEGIES
        for seed in seeds(scene.name, name)
    ]


def seeds(scenario: str, strategy: str) -> range:
    """Seeds a strategy is run with."""
    if scenario == PAPER and strategy in _CLOSEST:
        return range(1, _PAPER_SEEDS + 1)
    if scenario in WINDOWED and strategy in _WINDOWED_STRATEGIES:
        return range(1, WINDOWED_SEEDS + 1)
    return range(1, _SEEDS.get(scenario, _USUAL_SEEDS) + 1)


def _options(scenario: str, strategy: str) -> Options:
    windowed = scenario in WINDOWED and strategy in _WINDOWED_STRATEGIES
    return Options(timeline=True, window_s=WINDOW_S) if windowed else Options()


@dataclass(frozen=True, slots=True)
class Duel:
    """A strategy (`feedback`) against another one, seed by seed.

    Attributes:
        lead: median over the seeds of (its ratio - the other's) / the other's.
        spread: standard deviation of that; 0 with one seed.
    """

    other: str
    lead: float
    spread: float

    @property
    def verdict(self) -> str:
        """Ahead or behind by more than the spread (and more than a thousandth), else level."""
        if abs(self.lead) <= max(self.spread, 0.001):
            return "level"
        return "ahead" if self.lead > 0 else "behind"


def spread(values: Sequence[float]) -> Spread:
    """Median, least and most, to four places."""
    return round(statistics.median(values), 4), round(min(values), 4), round(max(values), 4)


def ratios(outcomes: Outcomes, scenario: str, label: str) -> dict[int, float]:
    """Share of the bound by seed; 0 where the work was never done."""
    return {
        seed: outcome.oracle_ratio or 0.0
        for (of, name, seed), outcome in sorted(outcomes.items())
        if (of, name) == (scenario, label)
    }


def duels(outcomes: Outcomes, scenario: str, label_of_ours: str, labels: Sequence[str]) -> list[Duel]:
    """One of them against each of the others, on the seeds that both ran with."""
    ours = ratios(outcomes, scenario, label_of_ours)
    told = []
    for label in labels:
        if label != label_of_ours:
            theirs = ratios(outcomes, scenario, label)
            leads = [ours[seed] / ratio - 1.0 if ratio else float("inf") for seed, ratio in theirs.items()]
            finite = all(lead < float("inf") for lead in leads)
            deviation = statistics.stdev(leads) if len(leads) > 1 and finite else 0.0
            told.append(Duel(label, statistics.median(leads), deviation))
    return told


def compared(
    outcomes: Outcomes, scenario: str, labels: Sequence[str] = STRATEGIES, ours: str = FEEDBACK
) -> dict[str, Any]:
    """One scenario's figures: by strategy that was run the share of the bound, and how ours stands to the others."""
    labels = [label for label in labels if ratios(outcomes, scenario, label)]
    share = {label: spread(list(ratios(outcomes, scenario, label).values())) for label in labels}
    against = duels(outcomes, scenario, ours, labels)
    nearest = min(against, key=lambda duel: duel.lead)
    return {
        "oracle_ratio": share,
        "winner": max(share, key=lambda label: share[label]),
        f"{ours}_against_the_best_other": {
            "other": nearest.other,
            "lead": round(nearest.lead, 4),
            "spread": round(nearest.spread, 4),
            "verdict": nearest.verdict,
        },
        f"{ours}_behind": {duel.other: round(duel.lead, 4) for duel in against if duel.verdict == "behind"},
    }


def medians(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """`SCENARIO.STRATEGY.oracle_ratio` of compared scenarios."""
    return {
        f"{scenario}.{label}.oracle_ratio": share[0]
        for scenario, told in figures.items()
        for label, share in told["oracle_ratio"].items()
    }
