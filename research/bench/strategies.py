"""Every allocation strategy in the simulator: shares of a proven bound, by scenario; and the papers' experiments again.

- Each strategy on each scenario of `research/scenarios` and on the 2014 paper's: `research.bench.strategy_runs.contest`.
- What each of the three strategies adds, completion over time: `research.bench.strategy_runs.switched_off`.
- The 2010 paper's throughput, and what coordinates add to `feedback`: `research.bench.strategy_runs.near`; their accuracy:
  `research.bench.proximity`. The 2019 paper's experiment: `research.bench.balance`.

All runs share one pool of processes; what is done of them is told on standard error.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import yaml

from research.bench import balance, proximity
from research.bench.strategy_runs import contest, near, switched_off
from research.bench.strategy_runs.runs import FEEDBACK, Progress, Run, Scene, workers


def run(shared: Path, *, whole: bool = True) -> dict[str, Any]:
    """Measure all of it.

    Args:
        shared: the folder of the shared data; the scenarios lie beside it.
        whole: False: one scenario, cut short, with two strategies; the other parts are benches of their own.

    Returns:
        ``ratios``: `SCENARIO.STRATEGY.oracle_ratio`, median over the seeds, `balance.*` and `proximity.*`;
        ``figures``: median, least and most of everything, by part, and what the papers printed.

    Raises:
        InputError: shared data are not there.
    """
    if not whole:
        return _cut_short()
    scenes = contest.scenes(shared)
    progress = Progress()
    with workers(progress) as at_work:
        other_parts = {
            "balance": at_work.begin(partial(balance.run, shared)),
            "proximity": at_work.begin(partial(proximity.run, shared)),
        }
        near_runs = near.runs(shared)
        outcomes = at_work.simulated([*contest.runs(scenes), *switched_off.runs(scenes), *near_runs])
        parts = {name: result() for name, result in other_parts.items()}
    off = switched_off.with_all_on(outcomes)
    compared = {scene.name: contest.compared(outcomes, scene.name) for scene in scenes}
    compared[near.SCENARIO] = near.figures(outcomes)
    adds = {name: switched_off.compared(off, name) for name in switched_off.SCENARIOS}
    return {
        "bench": "strategies",
        "ratios": {
            **contest.medians(compared),
            **{
                f"{name}.{key}": value
                for name, told in parts.items()
                for key, value in told["ratios"].items()
            },
        },
        "figures": {
            "scenarios": compared,
            "what_each_strategy_adds": adds,
            **{name: told["figures"] for name, told in parts.items()},
        },
    }


def _cut_short() -> dict[str, Any]:
    """What `run` returns of ten minutes of one scenario."""
    path = contest.SCENARIOS / "still.yaml"
    text = yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), "duration_s": 600})
    scene = Scene(path.stem, text, str(path.parent))
    labels = (FEEDBACK, "random")
    with workers() as at_work:
        outcomes = at_work.simulated([Run(scene, label, label, seed=1) for label in labels])
    return {
        "bench": "strategies",
        "ratios": {
            f"{scene.name}.{label}.oracle_ratio": outcomes[scene.name, label, 1].oracle_ratio
            for label in labels
        },
        "figures": {label: {"pages": outcomes[scene.name, label, 1].pages_collected} for label in labels},
    }
