"""Delays by the names of sites and nodes: as the crawl measured them, told from coordinates where it did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.scheduling.proximity.joint import embed
from tasks.scheduling.proximity.matrix import Matrix

FEWEST_PAIRS = 8
"""Measured pairs below which nothing is told: three sites on three nodes are nine, all there could be to tell."""


@dataclass(frozen=True, slots=True)
class Delays:
    """What `tasks.scheduling.decision.Distances` asks for.

    Attributes:
        sites, nodes: row and column of each name.
        delays_ms: (S, N); NaN where a pair was not measured, and site or node have no place.
    """

    sites: Mapping[str, int]
    nodes: Mapping[str, int]
    delays_ms: Matrix

    @staticmethod
    def of(measured_ms: Mapping[tuple[str, str], float]) -> Delays | None:
        """From the measured delays of (site, node); None where there are too few of them.

        Raises:
            InputError: a delay that is not positive.
        """
        if len(measured_ms) < FEWEST_PAIRS:
            return None
        sites = {name: row for row, name in enumerate(sorted({site for site, _ in measured_ms}))}
        nodes = {name: column for column, name in enumerate(sorted({node for _, node in measured_ms}))}
        rtt_ms = np.full((len(sites), len(nodes)), np.nan)
        for (site, node), ms in measured_ms.items():
            rtt_ms[sites[site], nodes[node]] = ms
        estimated = embed(rtt_ms).distances_ms()
        return Delays(sites, nodes, np.where(np.isfinite(rtt_ms), rtt_ms, estimated))

    def ms(self, sites: Sequence[str], nodes: Sequence[str]) -> Matrix:
        """Milliseconds (sites, nodes); NaN where nothing is known."""
        unknown_site, unknown_node = len(self.sites), len(self.nodes)
        rows = [self.sites.get(name, unknown_site) for name in sites]
        columns = [self.nodes.get(name, unknown_node) for name in nodes]
        padded = np.pad(self.delays_ms, ((0, 1), (0, 1)), constant_values=np.nan)
        told: Matrix = padded[np.ix_(rows, columns)]
        return told
