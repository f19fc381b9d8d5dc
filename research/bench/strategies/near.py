"""The 2010 paper's experiment: 30 nodes, 203 sites, pages that take four measured round trips each.

Nodes and sites are rows of the matrix, drawn by seed; each node has one slot, so that an hour is too short for all.
Strategies get GNP coordinates from 9 landmarks (k-centre) in 8 dimensions, as in the paper; a page takes the time of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.bench.strategies.contest import compared, spread
from research.bench.strategies.runs import FEEDBACK, Outcomes, Run, Scene
from research.papers.proximity import by_gnp, delays, drawn
from research.simulator.outcome import Options
from tasks.scheduling.decision import AllocationSettings

SCENARIO = "near_30x203"
WITH_PRIOR, TOP_1, TOP_3 = "feedback_with_distances", "proximity_top1", "proximity_top3"
LABELS = (FEEDBACK, WITH_PRIOR, TOP_1, TOP_3, "feedback2014", "sed", "hash", "random")
PRINTED = {
    "all sites, MB/min": {"random": 198.8, TOP_1: 242.6, TOP_3: 270.5},
}
"""The paper's figures, under other conditions."""

_LANDMARKS, _DIMENSIONS = 9, 8
_SITES = 203
SEEDS = range(1, 4)
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
    """Return the scenario of a draw of hosts."""
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
    """Return the runs of every strategy on every draw. Raises InputError if the matrix is missing."""
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
            options = Options(allocating=settings)
            told.append(Run(of, label, strategy, seed, options))
    return told


def coordinates(shared: Path, seed: int) -> Coordinates:
    """Return coordinates of the hosts of a draw from 9 landmarks."""
    draw = drawn(delays(shared), seed, _LANDMARKS)
    return Coordinates(by_gnp(_DIMENSIONS)(draw)[0])


def figures(outcomes: Outcomes) -> dict[str, Any]:
    """Return throughput of all sites, and what the paper printed."""
    by_label = {label: [outcomes[SCENARIO, label, seed] for seed in SEEDS] for label in LABELS}
    by_random = [one.pages_collected for one in by_label["random"]]
    everything = compared(outcomes, SCENARIO, LABELS)
    return {
        **compared(outcomes, SCENARIO, [label for label in LABELS if label != WITH_PRIOR]),
        **compared(outcomes, SCENARIO, [label for label in LABELS if label != FEEDBACK], WITH_PRIOR),
        **{name: everything[name] for name in ("oracle_ratio", "winner")},
        "pages": {label: spread([one.pages_collected for one in of]) for label, of in by_label.items()},
        "pages_over_random": {
            label: spread([one.pages_collected / other for one, other in zip(of, by_random, strict=True)])
            for label, of in by_label.items()
        },
        "paper": {**PRINTED, "over_random": {TOP_1: 1.22, TOP_3: 1.361}},
    }
