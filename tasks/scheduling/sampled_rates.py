"""Sampled rates: standard scores for drawing the rates of pairs from their posteriors.

Plain Thompson sampling draws every pair again at each decision. With thousands of uncertain pairs, another one is then
the best each time: nearly every attempt explores, without a second attempt at the same pair. Here each pair has its
own scores that change slowly: a high draw stays high until data have narrowed the posterior. Scores are
Ornstein-Uhlenbeck processes,

    z(t + d) = rho z(t) + sqrt(1 - rho^2) e,   rho = exp(-d / memory),   e standard normal

so that they are standard normal at any time. With thousands of pairs the memory is a few times as long as it takes to
try every pair once. With few pairs, an unlucky score of the best pair would cost more than it saves, so the memory is
shorter than a plan lasts (`tasks.scheduling.planner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class SampledRates:
    """Three scores for every (site, node): for its page chance, its failures and its seconds."""

    def __init__(self) -> None:
        self._at_s = 0.0
        self._sites: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._scores: Array = np.zeros((3, 0, 0))

    def scores(
        self, now_s: float, sites: Sequence[str], nodes: Sequence[str], memory_s: float, rng: Random
    ) -> Array:
        """Return the scores of these names at ``now_s``: array of (3, sites, nodes).

        Args:
            now_s: time in seconds.
            sites, nodes: names, in the order of both axes.
            memory_s: time in which a score's correlation with itself falls to 1 / e; positive.
            rng: the source of chance.
        """
        chance = np.random.default_rng(rng.getrandbits(64))
        rho = np.exp(-max(0.0, now_s - self._at_s) / memory_s)
        self._at_s = now_s
        self._scores = rho * self._scores + np.sqrt(1.0 - rho * rho) * chance.standard_normal(
            self._scores.shape
        )
        for names, known in ((sites, self._sites), (nodes, self._nodes)):
            for name in names:
                known.setdefault(name, len(known))
        _, had_sites, had_nodes = self._scores.shape
        if len(self._sites) > had_sites or len(self._nodes) > had_nodes:
            grown = chance.standard_normal((3, len(self._sites), len(self._nodes)))
            grown[:, :had_sites, :had_nodes] = self._scores
            self._scores = grown
        rows, columns = [self._sites[name] for name in sites], [self._nodes[name] for name in nodes]
        return self._scores[np.ix_(range(3), rows, columns)]
