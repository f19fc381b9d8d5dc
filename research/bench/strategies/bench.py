"""Every allocation strategy in the simulator: shares of a proven bound, by scenario; and the papers' experiments again.

- Each strategy on each scenario of `research/scenarios` and on the 2014 paper's: `research.bench.strategies.contest`.
- What each of the three strategies adds: `research.bench.strategies.switched_off`.
- The 2010 paper's throughput, and what coordinates add to `feedback`: `research.bench.strategies.near`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from research.bench.strategies import contest, near, switched_off
from research.bench.strategies.runs import FEEDBACK, Run, Scene, simulated


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure all of it; with `smallest` one scenario, cut short, with two strategies.

    Returns:
        ``ratios``: `SCENARIO.STRATEGY.oracle_ratio`, median over the seeds; ``figures``: median, least and most of
        everything, by part, and what the 2010 paper printed.

    Raises:
        InputError: shared data are missing.
    """
    if smallest:
        return _cut_short()
    scenes = contest.scenes(shared)
    outcomes = simulated([*contest.runs(scenes), *switched_off.runs(scenes), *near.runs(shared)])
    compared = {scene.name: contest.compared(outcomes, scene.name) for scene in scenes}
    compared[near.SCENARIO] = near.figures(outcomes)
    figures = {
        "scenarios": compared,
        "what_each_strategy_adds": {
            name: switched_off.compared(outcomes, name) for name in switched_off.SCENARIOS
        },
    }
    return {"bench": "strategies", "ratios": contest.medians(compared), "figures": figures}


def _cut_short() -> dict[str, Any]:
    """Measure ten minutes of one scenario."""
    path = contest.SCENARIOS / "still.yaml"
    text = yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), "duration_s": 600})
    scene = Scene(path.stem, text, str(path.parent))
    runs = [Run(scene, label, label, seed=1) for label in (FEEDBACK, "random")]
    outcomes = {label: outcome for (_, label, _), outcome in simulated(runs).items()}
    ratios = {f"{scene.name}.{label}.oracle_ratio": one.oracle_ratio for label, one in outcomes.items()}
    figures = {label: {"pages": one.pages_collected} for label, one in outcomes.items()}
    return {"bench": "strategies", "ratios": ratios, "figures": figures}
