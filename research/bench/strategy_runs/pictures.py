"""The plots of `research.bench.strategies`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from research.bench.strategy_runs import near, switched_off
from research.bench.strategy_runs.runs import FEEDBACK, Outcomes
from research.simulator.outcome import SimulatedRun
from research.tools import plots as drawing


def draw(
    folder: Path, contest: Mapping[str, Any], adds: Mapping[str, Any], off: Outcomes, near_runs: Outcomes
) -> None:
    """Draw all of them.

    Args:
        folder: where; it is made.
        contest: figures of `contest.compared` by scenario.
        adds: figures of `switched_off.compared` by scenario.
        off: outcomes of `switched_off.runs`; near_runs: of `near.runs`.

    Raises:
        InputError: matplotlib is not installed.
    """
    drawing.dots(
        folder / "strategies-ratios.png",
        "Share of the bound that each strategy reaches",
        "pages collected / bound (makespan: bound / makespan)",
        {name: told["oracle_ratio"] for name, told in contest.items()},
        FEEDBACK,
        "Median over the seeds; feedback with its least and most. 1.0: as good as a scheduler that knows all rates.",
    )
    drawing.bars(
        folder / "strategies-gain.png",
        "What each of the three strategies adds (figure 5 of the 2014 product paper)",
        "pages gained, %",
        {scenario: _percent(told["gain_in_pages"]) for scenario, told in adds.items()},
        f"Pages with all three on against one off: median, least and most of {len(switched_off.SEEDS)} seeds.\n"
        "The paper prints no numbers: moving tasks gains most, then modification, recall least.",
    )
    drawing.panels(
        folder / "strategies-completion.png",
        "Completion rate per node and site over five hours (figure 4 of the 2014 product paper)",
        "hours",
        "collected / offered",
        completion(off["paper2014", switched_off.ALL_ON, 1]),
        "feedback on paper2014, seed 1, windows of 15 minutes; a gap: the node had no attempt at that site.",
    )
    drawing.lines(
        folder / "strategies-near-all.png",
        "Throughput of all 203 sites over time (figure 2 of the 2010 paper)",
        "minutes",
        "pages a minute",
        {label: near.over_time(near_runs, label) for label in near.LABELS if label in _SHOWN},
        f"30 nodes, four measured round trips a page; draws of hosts: {len(near.SEEDS)}. First windows are short of\n"
        "pages of attempts that have not ended. The paper, MB/min: random 198.8, Top-1 242.6, Top-3 270.5.",
    )
    drawing.lines(
        folder / "strategies-near-one.png",
        "Pages of one site, the median one, over time (figure 3 of the 2010 paper)",
        "minutes",
        "pages so far",
        {label: near.one_site_over_time(near_runs, label) for label in near.LABELS if label in _SHOWN},
        f"The site in the middle of all 203 at each moment; draws of hosts: {len(near.SEEDS)}, their mean.\n"
        "The paper, MB/min: random 0.45, Top-3 2.38.",
    )
    drawing.lines(
        folder / "strategies-near-prior.png",
        "What coordinates add while little is known",
        "minutes",
        "pages a minute",
        {
            label: [point for point in near.over_time(near_runs, label) if point[0] <= _EARLY_MIN]
            for label in (FEEDBACK, near.WITH_PRIOR)
        },
        "The same runs: feedback without delays, and with coordinates as the first guess of a pair.",
    )


_SHOWN = (FEEDBACK, near.WITH_PRIOR, near.TOP_1, near.TOP_3, "random")
_EARLY_MIN = 30


def completion(outcome: SimulatedRun) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """By node and site, (hours, completion rate); not a number where a window is empty, so that the line has a gap."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    # What the end of the run cut off makes a window of its own.
    windows = [window for window in outcome.windows if window.from_s < outcome.makespan_s]
    at = sorted({window.from_s for window in windows})
    rates = {(w.node, w.site, w.from_s): w.stats.completion for w in windows}
    for node in sorted({node for node, _, _ in rates}):
        for site in sorted({site for _, site, _ in rates}):
            for from_s in at:
                rate = rates.get((node, site, from_s))
                found[node][site].append((from_s / 3600.0, float("nan") if rate is None else rate))
    return found


def _percent(spreads: Mapping[str, tuple[float, float, float]]) -> dict[str, tuple[float, float, float]]:
    return {name: (100 * a, 100 * b, 100 * c) for name, (a, b, c) in spreads.items()}
