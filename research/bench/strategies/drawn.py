"""Scenarios drawn by seed: 12 nodes and 10 sites whose speeds span a factor of 12, for four hours.

- `spread`: each (site, node) has a speed of its own, evenly drawn on a logarithmic scale, and it stays.
- `drifting`: the same, but each gets another speed and completion now and then, four hours apart on average.
- `restless`: the same an hour apart: somewhere something changes every half minute.

There is more work than four hours allow, so the distance to the proven bound is the cost of learning and planning.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

import click

from app.cli.output import say
from research.bench.options import names_of, seeds_options
from research.simulator.scenario import Scenario
from research.simulator.simulate import simulate
from tasks.jobs.strategies import ALLOCATION

NODES, SITES = 12, 10
DURATION_S = 14_400.0

FASTEST_S, SLOWEST_S = 0.25, 3.0
"""Seconds a page, of the fastest and of the slowest pair."""

COMPLETION = (0.5, 0.97)
OVERHEAD_S = (0.5, 1.5)
SLOTS = (1, 3)
"""Least and most, drawn evenly."""


_PRODUCTS = 4000
_MEAN_HITS = 40.0


class Kind(StrEnum):
    """What a drawn scenario shows."""

    SPREAD = "spread"
    DRIFTING = "drifting"
    RESTLESS = "restless"


CHANGES_EVERY_S = {Kind.DRIFTING: 14_400.0, Kind.RESTLESS: 3600.0}
"""Seconds between two changes of a pair, on average (exponential); kinds that are missing don't change."""


def draw(kind: Kind, seed: int, *, duration_s: float = DURATION_S) -> Scenario:
    """Draw a scenario; the same one for the same kind and seed."""
    chance = Random(f"{kind} {seed}")
    nodes = [f"n{number}" for number in range(1, NODES + 1)]
    sites = [f"s{number}" for number in range(1, SITES + 1)]
    return Scenario.model_validate(
        {
            "duration_s": duration_s,
            "nodes": [{"name": name, "slots": chance.randint(*SLOTS)} for name in nodes],
            "sites": [{"name": name, "overhead_s": round(chance.uniform(*OVERHEAD_S), 2)} for name in sites],
            "pairs": [
                {"fail": 0.02, "hang": 0.003},
                *(entry for site in sites for node in nodes for entry in _course(kind, chance, site, node)),
            ],
            "work": {
                "products": _PRODUCTS,
                "hits": {"dist": "lognormal", "mean": _MEAN_HITS, "sigma": 0.8},
                "chunk_pages": 20,
            },
        }
    )


def _course(kind: Kind, chance: Random, site: str, node: str) -> Iterator[dict[str, Any]]:
    at_s = 0.0
    while at_s < DURATION_S:
        yield {
            "site": site,
            "node": node,
            "from_s": round(at_s, 1),
            "seconds_per_page": round(FASTEST_S * (SLOWEST_S / FASTEST_S) ** chance.random(), 3),
            "completion": round(chance.uniform(*COMPLETION), 3),
        }
        if kind not in CHANGES_EVERY_S:
            return
        at_s += chance.expovariate(1.0 / CHANGES_EVERY_S[kind])


@click.option(
    "--strategies", type=names_of("strategy", ALLOCATION), default="feedback", help="Separated by commas."
)
@seeds_options(3)
def run(
    _shared: Path,
    smallest: bool,
    strategies: Sequence[str] = ("feedback",),
    seeds: int = 3,
    seed_from: int = 1,
) -> dict[str, Any]:
    """Measure: a minute or two for each run; with `smallest` one seed, cut short.

    Returns:
        ``ratios``: `KIND.STRATEGY.oracle_ratio`, means over the seeds; ``figures``: pages and ratio of every run.
    """
    duration_s, seeds = (120.0, 1) if smallest else (DURATION_S, seeds)
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {}
    for kind in Kind:
        for name in strategies:
            reached = []
            for seed in range(seed_from, seed_from + seeds):
                one = simulate(draw(kind, seed, duration_s=duration_s), name, seed)
                reached.append(one.oracle_ratio or 0.0)
                figures[f"{kind}.{name}.{seed}"] = {
                    "pages": one.pages_collected,
                    "oracle_pages": round(one.oracle_pages or 0.0),
                    "oracle_ratio": round(reached[-1], 4),
                }
                say(f"{kind} {name} seed {seed}: {reached[-1]:.4f}", "dim")
            ratios[f"{kind}.{name}.oracle_ratio"] = round(statistics.fmean(reached), 4)
    return {"bench": "drawn", "ratios": ratios, "figures": figures}
