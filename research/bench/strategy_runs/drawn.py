"""Scenarios drawn by seed: 12 nodes and 10 sites whose speeds span a factor of 12, for four hours.

- `spread`: each (site, node) has a speed of its own, evenly drawn on a logarithmic scale, and it stays.
- `drifting`: the same, but each gets another speed and completion now and then, four hours apart on average.
- `restless`: the same an hour apart: somewhere something changes every half minute.

There is more work than four hours allow: what is missing to the bound is what learning and planning cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import Any

from research.simulator.scenario import Scenario

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
