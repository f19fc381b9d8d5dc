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

from research.bench.strategy_runs import contest
from research.bench.strategy_runs.runs import FEEDBACK, Key, Outcomes, Run, Scene
from research.simulator.outcome import Options, SimulatedRun

SCENARIOS = contest.WINDOWED
ALL_ON = "all three"
SEEDS = range(1, contest.WINDOWED_SEEDS + 1)
_IN_CONTEST = {ALL_ON: FEEDBACK, "allocation off": "random"}
"""Variants that are runs of `contest` already."""

_OWN = {
    "modification off": Options(oracle=False, modification=False),
    "recall off": Options(oracle=False, recall=False),
}
_VARIANTS = (*_IN_CONTEST, *_OWN)


def runs(scenes: Sequence[Scene]) -> list[Run]:
    """The variants of these scenarios that `contest` does not run."""
    return [
        Run(scene, label, FEEDBACK, seed, options)
        for scene in scenes
        if scene.name in SCENARIOS
        for seed in SEEDS
        for label, options in _OWN.items()
    ]


def with_all_on(outcomes: Outcomes) -> dict[Key, SimulatedRun]:
    """By variant: of these runs and those of `contest`."""
    return {
        (scenario, label, seed): outcomes[scenario, _IN_CONTEST.get(label, label), seed]
        for scenario in SCENARIOS
        for label in _VARIANTS
        for seed in SEEDS
    }


def compared(outcomes: Outcomes, scenario: str) -> dict[str, Any]:
    """One scenario's figures: what is gained by each strategy, and the counts of the paper."""
    of = {label: [outcomes[scenario, label, seed] for seed in SEEDS] for label in _VARIANTS}
    full = of[ALL_ON]
    gains = {
        label.removesuffix(" off"): contest.spread(
            [a.pages_collected / b.pages_collected - 1.0 for a, b in zip(full, off, strict=True)]
        )
        for label, off in of.items()
        if label != ALL_ON
    }
    return {
        "gain_in_pages": gains,
        "pages": {
            label: contest.spread([one.pages_collected for one in found]) for label, found in of.items()
        },
        "hits_moved_between_nodes": {
            label: statistics.median(moved(one) for one in of[label]) for label in (ALL_ON, "allocation off")
        },
        "recalls": {label: statistics.median(one.recalls for one in found) for label, found in of.items()},
        "manual": {label: statistics.median(one.manual for one in found) for label, found in of.items()},
    }


def moved(outcome: SimulatedRun) -> int:
    """Hits that were offered to another node than they would have been with the shares of the window before."""
    offered: dict[str, dict[float, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for window in outcome.windows:
        offered[window.site][window.from_s][window.node] = window.stats.offered
    total = 0.0
    for by_time in offered.values():
        times = sorted(by_time)
        for earlier, later in pairwise(times):
            before, after = by_time[earlier], by_time[later]
            all_before, all_after = sum(before.values()), sum(after.values())
            if all_before and all_after:
                grown = (
                    count / all_after - before.get(node, 0) / all_before for node, count in after.items()
                )
                total += all_after * sum(max(0.0, share) for share in grown)
    return round(total)
