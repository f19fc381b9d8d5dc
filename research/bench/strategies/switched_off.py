"""What each of the three strategies adds (2014 product paper, figure 5): the same work with one switched off.

The paper draws the gain by four counts of a run: tasks moved out of a node, moved in, modified, recalled. Here a
strategy's gain is what is missing without it; and what moved is read from the shares of each site's hits that its
nodes were offered: a share that grew from one window to the next moved in, one that fell moved out.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from research.bench.strategies import contest
from research.bench.strategies.runs import FEEDBACK, Outcomes, Run, Scene
from research.simulator.outcome import Options, SimulatedRun

SCENARIOS = contest.WINDOWED
SEEDS = range(1, contest.WINDOWED_SEEDS + 1)
_OWN = {
    "modification off": Options(oracle=False, modification=False),
    "recall off": Options(oracle=False, recall=False),
}
_OFF = {"allocation": "random", "modification": "modification off", "recall": "recall off"}
"""The label of the runs without a strategy; allocation is switched off in the runs of `contest` with `random`."""


def runs(scenes: Sequence[Scene]) -> list[Run]:
    """Return the runs that `contest` does not have."""
    return [
        Run(scene, label, FEEDBACK, seed, options)
        for scene in scenes
        if scene.name in SCENARIOS
        for seed in SEEDS
        for label, options in _OWN.items()
    ]


def compared(outcomes: Outcomes, scenario: str) -> dict[str, Any]:
    """Return one scenario's figures: the gain of each strategy, and the counts of the paper."""

    def of(label: str) -> list[SimulatedRun]:
        return [outcomes[scenario, label, seed] for seed in SEEDS]

    variants = {"all three": of(FEEDBACK), **{f"{name} off": of(label) for name, label in _OFF.items()}}
    full = variants["all three"]
    return {
        "gain_in_pages": {
            name: contest.spread(
                [
                    a.pages_collected / b.pages_collected - 1.0
                    for a, b in zip(full, variants[f"{name} off"], strict=True)
                ]
            )
            for name in _OFF
        },
        "pages": {
            label: contest.spread([one.pages_collected for one in found]) for label, found in variants.items()
        },
        "hits_moved_between_nodes": {
            label: statistics.median(moved(one) for one in variants[label])
            for label in ("all three", "allocation off")
        },
        "recalls": {
            label: statistics.median(one.recalls for one in found) for label, found in variants.items()
        },
        "manual": {
            label: statistics.median(one.manual for one in found) for label, found in variants.items()
        },
    }


def moved(outcome: SimulatedRun) -> int:
    """Return hits that were offered to another node than with the shares of the window before."""
    offered: dict[str, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for window in outcome.windows:
        offered[window.site][window.from_s][window.node] = window.stats.offered
    total = 0.0
    for by_time in offered.values():
        for (_, before), (_, after) in pairwise(sorted(by_time.items())):
            all_before, all_after = sum(before.values()), sum(after.values())
            if all_before and all_after:
                grown = (
                    count / all_after - before.get(node, 0) / all_before for node, count in after.items()
                )
                total += all_after * sum(max(0.0, share) for share in grown)
    return round(total)
