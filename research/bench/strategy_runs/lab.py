"""Real HTTP: the same products crawled from the lab's default profile by four nodes, allocation by allocation.

Every run starts with an empty store and a lab of its own in another process (`research.bench.ablation`), and lasts equally
long; there is more work than can be done. Strategies take turns within a seed.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from app.run.settings import Settings
from research.bench.ablation import crawled
from research.bench.strategy_runs.contest import spread
from research.bench.strategy_runs.runs import FEEDBACK

_STRATEGIES = (FEEDBACK, "random", "hash")
_SEEDS = (1, 2, 3)
_SECONDS = 20.0
_WARM_UP_S = 3.0  # what is imported when it is first needed would be paid by whoever comes first


def run() -> dict[str, Any]:
    """Crawl with each of them.

    Returns:
        ``ratios``: median over the seeds of `feedback`'s pages over the other's; ``figures``: by strategy pages a
        second, completion rate and active seconds a page: median, least and most.
    """
    base = Settings(silent_after_s=10.0, rest_factor=0.05, request_timeout_s=5.0)
    crawled(replace(base, seed=0), 0, _WARM_UP_S)
    told: dict[str, list[dict[str, float]]] = {name: [] for name in _STRATEGIES}
    for seed in _SEEDS:
        for name in _STRATEGIES:
            told[name].append(crawled(replace(base, seed=seed, allocation=name), seed, _SECONDS))
    ours = [one["pages"] for one in told[FEEDBACK]]
    return {
        "ratios": {
            f"lab.{FEEDBACK}_vs_{name}": round(
                statistics.median(a / max(1.0, b["pages"]) for a, b in zip(ours, found, strict=True)), 3
            )
            for name, found in told.items()
            if name != FEEDBACK
        },
        "figures": {
            name: {
                "pages_per_s": spread([one["pages"] / _SECONDS for one in found]),
                "completion": spread([one["completion"] for one in found]),
                "active_s_per_page": spread([one["active_s_per_page"] for one in found]),
            }
            for name, found in told.items()
        },
    }
