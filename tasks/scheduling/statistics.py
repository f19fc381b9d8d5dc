"""Statistics of every (site, node) from its attempts, stored so that pairs need not be faded one by one.

Sums fade in three ways (`tasks.domain.pair_stats`): with time, by 2 ** -(age / half-life); with every new attempt of
the same pair, by 1 - 1 / memory, so that about the last `memory` attempts of a busy pair count; and with an attempt
that shows a change, by the size of the change (`tasks.domain.change_point`).

Reports of running attempts are stored separately and replaced when they are read again. They count in every result,
but are never added to the sums.

All sums are stored in units of one moment: a weight of 1 at time t is stored as 2 ** ((t - moment) / half-life). So
fading all of them takes one factor, and ratios need no factor.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tasks.domain.pair_stats import HALF_LIFE_S, MEMORY, SUMS, AttemptResult, PairStats

_LONGEST = 500.0
"""Number of half-lives after which the moment is moved, far below the largest float."""

_TRIED = SUMS.index("tried")

Sums = NDArray[np.float64]
"""Sums of pairs. The last axis has the order of `tasks.domain.pair_stats.SUMS`."""


class Knowledge:
    """Faded sums of every pair. The cost of adding an attempt does not grow with the number of pairs.

    Args:
        half_life_s: half-life in seconds; positive.
        memory: number of attempts that count, more than 1.

    Attributes:
        sites, nodes: places of the names on the first and second axis of the sums.
    """

    def __init__(self, half_life_s: float = HALF_LIFE_S, memory: float = MEMORY) -> None:
        if half_life_s <= 0 or memory <= 1:
            raise ValueError(
                f"half_life_s must be positive and memory above 1, not {half_life_s} and {memory}"
            )
        self.sites: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self._half_life_s = half_life_s
        self._memory = memory
        self._moment_s: float | None = None
        self._sums: Sums = np.zeros((4, 4, len(SUMS)))
        self._running: dict[tuple[str, str], PairStats] = {}

    def fold(self, attempt: AttemptResult, now_s: float) -> None:
        """Add one attempt that closed at ``now_s``."""
        if attempt.counts:
            here = self._past_stats(attempt.site, attempt.node, now_s)
            self.put(attempt.site, attempt.node, here.with_attempt(attempt, self._memory), now_s)

    def put(self, site: str, node: str, stats: PairStats, at_s: float) -> None:
        """Replace the sums of a pair by sums that are faded to ``at_s``."""
        scale = self._scale(at_s)
        place = self._place(site, node)  # may replace the array
        self._sums[place] = [total * scale for total in stats.values()]

    def set_running(self, attempts: Iterable[AttemptResult]) -> None:
        """Replace the reports of running attempts."""
        running: dict[tuple[str, str], PairStats] = {}
        for one in attempts:
            self._place(one.site, one.node)
            pair = one.site, one.node
            running[pair] = running.get(pair, PairStats()).with_attempt(one)
        self._running = running

    @property
    def pages_tried(self) -> float:
        """Return the tried pages of all pairs, in a unit that changes as they fade, to measure how many are new."""
        return float(self._sums[..., _TRIED].sum()) + sum(one.tried for one in self._running.values())

    def pair(self, site: str, node: str, now_s: float) -> PairStats:
        """Return the statistics of a pair, faded to ``now_s``; zeros without data."""
        closed, running = self._past_stats(site, node, now_s), self._running.get((site, node))
        return closed if running is None else closed + running

    def _past_stats(self, site: str, node: str, now_s: float) -> PairStats:
        i, j = self.sites.get(site), self.nodes.get(node)
        if i is None or j is None:
            return PairStats()
        scale = self._scale(now_s)
        return PairStats.unpack((self._sums[i, j] / scale).tolist())

    def site(self, site: str, now_s: float) -> PairStats:
        """Return the statistics of a site over all nodes, faded to ``now_s``."""
        i = self.sites.get(site)
        if i is None:
            return PairStats()
        scale = self._scale(now_s)  # may change the sums
        closed = PairStats.unpack((self._sums[i, : len(self.nodes)].sum(axis=0) / scale).tolist())
        return sum((of for (name, _), of in self._running.items() if name == site), closed)

    def list_pairs(self, now_s: float) -> dict[tuple[str, str], PairStats]:
        """Return the statistics of all pairs with attempts, faded to ``now_s``."""
        return {
            (site, node): self.pair(site, node, now_s)
            for site, i in self.sites.items()
            for node, j in self.nodes.items()
            if self._sums[i, j].any() or (site, node) in self._running
        }

    def sums(self, now_s: float) -> Sums:
        """Return the sums of all pairs, faded to ``now_s``: shape (sites, nodes, `SUMS`), in the order of both."""
        sums = self._sums[: len(self.sites), : len(self.nodes)] / self._scale(now_s)
        for (site, node), running in self._running.items():
            sums[self.sites[site], self.nodes[node]] += running.values()
        return sums

    def _scale(self, now_s: float) -> float:
        """Return the number that stores a weight of 1 at ``now_s``."""
        if self._moment_s is None:
            self._moment_s = now_s
        age = (now_s - self._moment_s) / self._half_life_s
        if age > _LONGEST:
            self._sums *= 2.0 ** -min(age, 1000.0)
            self._moment_s, age = now_s, 0.0
        return float(2.0 ** max(age, -_LONGEST))  # older weights are practically zero

    def _place(self, site: str, node: str) -> tuple[int, int]:
        i = self.sites.setdefault(site, len(self.sites))
        j = self.nodes.setdefault(node, len(self.nodes))
        sites, nodes, fields = self._sums.shape
        if i >= sites or j >= nodes:
            grown = np.zeros((max(sites, 2 * i), max(nodes, 2 * j), fields))
            grown[:sites, :nodes] = self._sums
            self._sums = grown
        return i, j
