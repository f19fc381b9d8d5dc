"""What each of the three strategies adds (2014 product paper, figure 5): the same work with one switched off.

The paper draws the gain by four counts of a run: tasks moved out of a node, moved in, modified, recalled. Here a
strategy's gain is the share of the pages that is missing without it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from research.bench.strategies import contest
from research.bench.strategies.runs import FEEDBACK, Outcomes, Run, Scene
from research.simulator.outcome import Options, SimulatedRun

SCENARIOS = contest.COMPARED_WITHOUT
SEEDS = range(1, contest.SEEDS_WITHOUT + 1)
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
    """Return one scenario's figures: the gain of each strategy, recalls, and subtasks left to a person."""

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
        "recalls": {
            label: statistics.median(one.recalls for one in found) for label, found in variants.items()
        },
        "manual": {
            label: statistics.median(one.manual for one in found) for label, found in variants.items()
        },
    }
