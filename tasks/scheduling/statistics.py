"""What closed attempts say about every (site, node), held so that nothing has to be faded one by one.

Sums fade in two ways (`tasks.domain.pair_stats`): with time, by 2 ** -(age / half-life), and with every new attempt
of the same pair, by 1 - 1 / memory, so that a busy pair is known by its last `memory` attempts or so and a change is
seen within as many, however much was seen before.

All sums are kept in units of one moment: a weight of 1 at time t is stored as 2 ** ((t - moment) / half-life). Fading
all of them is then one factor, and every ratio is right without it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.domain.model import PairStats
from tasks.domain.pair_stats import AttemptResult, counts, fold, remember

HALF_LIFE_S = 1800.0
"""Age at which an attempt counts half in decisions: sites change within the hour (2014 product paper, figure 4)."""

MEMORY = 60.0
"""Attempts of a pair after which an older one of the same pair counts 1 / e."""

FIELDS = ("attempts", "failed", "silent", "offered", "tried", "collected", "active_s", "lost_s")
"""The sums, in the order of the last axis of `Knowledge.sums`."""

_LONGEST = 500.0
"""Half-lives after which the moment is moved: far from the largest float."""

Sums = NDArray[np.float64]


class Knowledge:
    """Faded sums of every pair; one fold costs the same however many pairs there are.

    Args:
        half_life_s: positive.
        memory: attempts, more than 1.

    Attributes:
        sites, nodes: place of each name on the first and second axis of the sums.
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
        self._sums: Sums = np.zeros((4, 4, len(FIELDS)))

    def fold(self, result: AttemptResult, now_s: float) -> None:
        """Add one attempt that closed at ``now_s``."""
        if not counts(result):
            return
        scale = self._scale(now_s)
        place = self._place(result.site, result.node)
        here = PairStats(result.site, result.node, *(self._sums[place] / scale).tolist())
        folded = fold(remember(here, self._memory), result)
        self._sums[place] = [getattr(folded, name) * scale for name in FIELDS]

    def put(self, stats: PairStats, at_s: float) -> None:
        """Replace what is known of a pair by sums that are faded to ``at_s``."""
        scale = self._scale(at_s)
        place = self._place(stats.site, stats.node)  # may replace the array
        self._sums[place] = [getattr(stats, name) * scale for name in FIELDS]

    def pair(self, site: str, node: str, now_s: float) -> PairStats:
        """A pair, faded to ``now_s``; zeros where nothing is known."""
        return PairStats(site, node, *self.pair_sums(site, node, now_s))

    def pair_sums(self, site: str, node: str, now_s: float) -> list[float]:
        """The same as plain numbers, in the order of `FIELDS`: for those who ask about many pairs."""
        i, j = self.sites.get(site), self.nodes.get(node)
        if i is None or j is None:
            return [0.0] * len(FIELDS)
        scale = self._scale(now_s)
        return [total / scale for total in self._sums[i, j].tolist()]

    def site(self, site: str, now_s: float) -> PairStats:
        """A site over all nodes, faded to ``now_s``."""
        if site not in self.sites:
            return PairStats(site, "*")
        sums = self._sums[self.sites[site], : len(self.nodes)].sum(axis=0) / self._scale(now_s)
        return PairStats(site, "*", *sums.tolist())

    def known(self, now_s: float) -> dict[tuple[str, str], PairStats]:
        """Every pair that was ever tried, faded to ``now_s``."""
        scale = self._scale(now_s)
        return {
            (site, node): PairStats(site, node, *(self._sums[i, j] / scale).tolist())
            for site, i in self.sites.items()
            for node, j in self.nodes.items()
            if self._sums[i, j].any()
        }

    def sums(self, now_s: float) -> Sums:
        """All pairs, faded to ``now_s``: array of (sites, nodes, `FIELDS`), in the order of `sites` and `nodes`."""
        return self._sums[: len(self.sites), : len(self.nodes)] / self._scale(now_s)

    def _scale(self, now_s: float) -> float:
        """What a weight of 1 at ``now_s`` is stored as."""
        if self._moment_s is None:
            self._moment_s = now_s
        age = (now_s - self._moment_s) / self._half_life_s
        if age > _LONGEST:
            self._sums *= 2.0 ** -min(age, 1000.0)
            self._moment_s, age = now_s, 0.0
        return float(2.0 ** max(age, -_LONGEST))  # what is so much older counts nothing anyhow

    def _place(self, site: str, node: str) -> tuple[int, int]:
        i = self.sites.setdefault(site, len(self.sites))
        j = self.nodes.setdefault(node, len(self.nodes))
        sites, nodes, fields = self._sums.shape
        if i >= sites or j >= nodes:
            grown = np.zeros((max(sites, 2 * i), max(nodes, 2 * j), fields))
            grown[:sites, :nodes] = self._sums
            self._sums = grown
        return i, j
