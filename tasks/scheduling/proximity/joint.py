"""Coordinates of nodes and sites from what the crawl measures by itself: delays of some pairs, and of nothing else.

GNP wants landmarks, and delays among them; a crawl asks sites, and no node ever asks another. But two nodes that ask
the same site are no farther apart than the way over it, and the shortest such way over all sites comes near to what is
between them (the triangle rule by which IDMaps estimates: Francis, Jamin, Paxson, Zhang, Gryniewicz, Jin, An
architecture for a global Internet host distance estimation service, INFOCOM 1999). Classical scaling of these ways
places the nodes. From there sites are placed against nodes and nodes against sites in turn, a few steps each, by GNP's
own objective (the squared relative error of the measured pairs, `tasks.scheduling.proximity.gnp`). From random places
the same objective ends in far worse minima (measured: median relative error 0.55 instead of 0.10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from splitter.errors import InputError

from tasks.scheduling.proximity.gnp import (
    FEWEST_MEASURED,
    check_dimensions,
    check_positive,
    distances_ms,
    host_starts,
    scaled,
    settled,
)
from tasks.scheduling.proximity.matrix import Matrix

DIMENSIONS = 4
"""More gain nothing on the measured matrix, fewer cost some accuracy."""

_ROUNDS = 12
_STEPS = 8
# A place that is stuck on the wrong side of the others is found by starting anew, once the others are about right.
_ANEW = frozenset({0, 4})
_MOST_PARTNERS = 48
"""Measured pairs of one host that are looked at: more cost time and tell nothing new."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Places of sites (S, d) and nodes (N, d) in milliseconds; NaN where too little was measured."""

    sites: Matrix
    nodes: Matrix

    def distances_ms(self) -> Matrix:
        """Estimated delays (S, N); NaN where either has no place."""
        return distances_ms(self.sites, self.nodes)


def embed(rtt_ms: Matrix, dimensions: int = DIMENSIONS, seed: int = 0) -> Coordinates:
    """Place sites and nodes by the delays that were measured between them.

    A site has a place if it was measured by at least three nodes that have one, a node if it measured at least three
    such sites.

    Args:
        rtt_ms: (S, N) delays, NaN where not measured.
        dimensions: 2 to 8.
        seed: of all chance: the same delays give the same places.

    Raises:
        InputError: no matrix, a delay that is not positive, or dimensions out of range.
    """
    check_dimensions(dimensions)
    if rtt_ms.ndim != 2:
        raise InputError(f"delays of pairs have the shape {rtt_ms.shape}: one row per site is right")
    check_positive(rtt_ms)
    sites, nodes = _measured_enough(rtt_ms)
    at_sites = np.full((len(rtt_ms), dimensions), np.nan)
    at_nodes = np.full((rtt_ms.shape[1], dimensions), np.nan)
    if len(sites):
        at_sites[sites], at_nodes[nodes] = _placed(rtt_ms[np.ix_(sites, nodes)], dimensions, seed)
    return Coordinates(at_sites, at_nodes)


def _measured_enough(rtt_ms: Matrix) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sites and nodes that still have three measured pairs once those with fewer are left out."""
    measured = np.isfinite(rtt_ms)
    while True:
        kept = measured & (measured.sum(1) >= FEWEST_MEASURED)[:, None]
        kept &= kept.sum(0) >= FEWEST_MEASURED
        if (kept == measured).all():
            return np.flatnonzero(kept.any(1)), np.flatnonzero(kept.any(0))
        measured = kept


def _placed(rtt_ms: Matrix, dimensions: int, seed: int) -> tuple[Matrix, Matrix]:
    """Places (S, d) and (N, d), where everybody was measured often enough."""
    chance = np.random.default_rng(seed)
    to_nodes, to_sites = _Pairs.of(rtt_ms, chance), _Pairs.of(rtt_ms.T, chance)
    at_nodes = scaled(_ways(rtt_ms), dimensions)
    # Nodes that ask the same sites in the same way would stay at one place.
    at_nodes += 1e-3 * at_nodes.std() * chance.standard_normal(at_nodes.shape)
    at_sites = to_nodes.settled(host_starts(at_nodes, rtt_ms, seed), at_nodes)
    for turn in range(1, _ROUNDS):
        starts = at_nodes[None]
        if turn in _ANEW:
            starts = np.concatenate([starts, host_starts(at_sites, rtt_ms.T, seed + turn)])
        at_nodes = to_sites.settled(starts, at_sites)
        starts = at_sites[None]
        if turn in _ANEW:
            starts = np.concatenate([starts, host_starts(at_nodes, rtt_ms, seed + turn)])
        at_sites = to_nodes.settled(starts, at_nodes)
    return at_sites, at_nodes


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Of each host, the pairs that are looked at: whom it was measured to (H, k), and delays (H, k), NaN beyond."""

    partners: NDArray[np.intp]
    rtt_ms: Matrix

    @staticmethod
    def of(rtt_ms: Matrix, chance: Generator) -> _Pairs:
        """Of delays (H, P): all, or as many as are looked at, drawn."""
        measured = np.isfinite(rtt_ms)
        most = min(_MOST_PARTNERS, int(measured.sum(1).max()))
        order = np.where(measured, chance.random(rtt_ms.shape), 2.0)
        partners = np.argsort(order, axis=1)[:, :most]
        return _Pairs(partners, np.take_along_axis(rtt_ms, partners, 1))

    def settled(self, starts: Matrix, partners: Matrix) -> Matrix:
        """Places (H, d) from starts (n, H, d), a few steps on, against the places (P, d) of the others."""
        return settled(starts, partners[self.partners], self.rtt_ms, _STEPS)


def _ways(rtt_ms: Matrix) -> Matrix:
    """The shortest way from node to node over a site (N, N); NaN where no site was measured by both."""
    legs = np.where(np.isfinite(rtt_ms), rtt_ms, np.inf)
    ways = np.stack([(legs + leg[:, None]).min(0) for leg in legs.T])
    np.fill_diagonal(ways, 0.0)
    return np.where(np.isfinite(ways), ways, np.nan)
