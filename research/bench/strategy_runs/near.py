"""The 2010 paper's experiment: 30 nodes, 203 sites, pages that take four measured round trips each.

Nodes and sites are rows of the matrix, drawn by seed; each node has one slot, so that an hour is too short for all.
What strategies are told of distances are GNP coordinates from 9 landmarks (k-centre) in 8 dimensions, as in the
paper; pages take what the matrix says. Pages are counted, and for the paper's single site those of one site.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.bench.proximity import Draw, by_gnp, delays, drawn
from research.bench.strategy_runs.contest import Spread, compared, spread
from research.bench.strategy_runs.runs import FEEDBACK, Outcomes, Run, Scene
from research.simulator.outcome import Options
from tasks.scheduling.decision import AllocationSettings

SCENARIO = "near_30x203"
WITH_PRIOR, TOP_1, TOP_3 = "feedback_with_distances", "proximity_top1", "proximity_top3"
LABELS = (FEEDBACK, WITH_PRIOR, TOP_1, TOP_3, "feedback2014", "sed", "hash", "random")
PRINTED = {
    "all sites, MB/min": {"random": 198.8, TOP_1: 242.6, TOP_3: 270.5},
    "one site, MB/min": {"random": 0.45, TOP_3: 2.38},
}
"""The paper's figures, under other conditions."""

_LANDMARKS, _DIMENSIONS = 9, 8
_SITES = 203
SEEDS = range(1, 4)
_WINDOW_S = 120.0
_EARLY_S = (240.0, 600.0, 1200.0, 1800.0)
_DURATION_S = 3600


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Estimated delays, by the names that nodes and sites have in the scenario.

    Attributes:
        delays_ms: (sites, nodes).
    """

    delays_ms: NDArray[np.float64]

    def ms(self, sites: Sequence[str], nodes: Sequence[str]) -> NDArray[np.float64]:
        """See `tasks.scheduling.decision.Distances`."""
        rows = [int(name.removeprefix("site")) - 1 for name in sites]
        columns = [int(name.removeprefix("node")) - 1 for name in nodes]
        return self.delays_ms[np.ix_(rows, columns)]


def scene(shared: Path, seed: int) -> Scene:
    """The scenario of a draw of hosts.

    Raises:
        InputError: the matrix is not there.
    """
    delays(shared)
    text = f"""
duration_s: {_DURATION_S}
nodes: [{{name: node, count: 30}}]
sites: [{{name: site, count: {_SITES}, overhead_s: 0.5}}]
pairs: [{{node: "*", site: "*", completion: 0.9, fail: 0.02, hang: 0.002}}]
rtt_ms: {{file: PlanetLabData_1, seed: {seed}}}
work: {{products: 60, hits: {{dist: lognormal, mean: 40, sigma: 0.8}}, chunk_pages: 20}}
"""
    return Scene(SCENARIO, text, str((shared / "rtt").resolve()))


def runs(shared: Path) -> list[Run]:
    """Every strategy on every draw."""
    told = []
    for seed in SEEDS:
        of, distances = scene(shared, seed), coordinates(shared, seed)
        nearest = {TOP_1: 1, TOP_3: 3}
        for label in LABELS:
            settings = AllocationSettings()
            if label in nearest:
                settings = AllocationSettings(nearest=nearest[label], distances=distances)
            elif label == WITH_PRIOR:
                settings = AllocationSettings(distances=distances)
            strategy = "proximity" if label in nearest else label.removesuffix("_with_distances")
            options = Options(timeline=True, window_s=_WINDOW_S, allocating=settings)
            told.append(Run(of, label, strategy, seed, options))
    return told


def coordinates(shared: Path, seed: int) -> Coordinates:
    """What 9 landmarks tell of the hosts of a draw."""
    return Coordinates(by_gnp(_DIMENSIONS)(_draw(shared, seed)))


@lru_cache
def _draw(shared: Path, seed: int) -> Draw:
    return drawn(delays(shared), seed, _LANDMARKS)


def figures(outcomes: Outcomes) -> dict[str, Any]:
    """Throughput of all sites and of one, how soon pages came, and what the paper printed."""
    pages = {
        label: spread([_of(outcomes, label, seed).pages_collected for seed in SEEDS]) for label in LABELS
    }
    one_site = {label: spread([_per_site(outcomes, label, seed) for seed in SEEDS]) for label in LABELS}
    return {
        **compared(outcomes, SCENARIO, [label for label in LABELS if label != WITH_PRIOR]),
        **compared(outcomes, SCENARIO, [label for label in LABELS if label != FEEDBACK], WITH_PRIOR),
        **_all_shares(outcomes),
        "pages": pages,
        "pages_over_random": _over_random(outcomes),
        "pages_of_the_median_site": one_site,
        "pages_early": {
            f"first {round(until_s / 60)} min": {
                label: statistics.median(early(outcomes, label, seed, until_s) for seed in SEEDS)
                for label in LABELS
            }
            for until_s in _EARLY_S
        },
        "paper": {
            **PRINTED,
            "over_random": {TOP_1: 1.22, TOP_3: 1.361},
        },
    }


def _all_shares(outcomes: Outcomes) -> dict[str, Any]:
    told = compared(outcomes, SCENARIO, LABELS)
    return {name: told[name] for name in ("oracle_ratio", "winner")}


def _over_random(outcomes: Outcomes) -> dict[str, Spread]:
    return {
        label: spread(
            [
                _of(outcomes, label, seed).pages_collected / _of(outcomes, "random", seed).pages_collected
                for seed in SEEDS
            ]
        )
        for label in LABELS
    }


def _of(outcomes: Outcomes, label: str, seed: int) -> Any:
    return outcomes[SCENARIO, label, seed]


def _per_site(outcomes: Outcomes, label: str, seed: int) -> float:
    """Pages of the site in the middle."""
    return float(np.median(_by_site(outcomes, label, seed)[:, -1]))


def _by_site(outcomes: Outcomes, label: str, seed: int) -> NDArray[np.float64]:
    """Pages so far of each site at the end of each window: (sites, windows)."""
    outcome = _of(outcomes, label, seed)
    counts = np.zeros((_SITES, len(outcome.pages_over_time)))
    for window in outcome.windows:
        counts[int(window.site.removeprefix("site")) - 1, round(window.from_s / _WINDOW_S)] += (
            window.stats.collected
        )
    return counts.cumsum(axis=1)


def early(outcomes: Outcomes, label: str, seed: int, until_s: float) -> int:
    """Pages of attempts that ended within the first seconds."""
    return sum(_of(outcomes, label, seed).pages_over_time[: round(until_s / _WINDOW_S)])
