"""Coordinates of sites and nodes, from the delays of some (site, node) pairs that the crawl itself measures.

Coordinates are those of Global Network Positioning (Ng and Zhang, Predicting Internet network distance with
coordinates-based approaches, INFOCOM 2002; the 2010 paper uses it): the distance of two places is the estimated delay,
and the places minimise the sum over measured pairs of the squared relative error, ((|x - y| - t) / t)^2, with t the
measured delay and |x - y| the Euclidean distance. Each host is moved by Levenberg-Marquardt from several starts.

GNP wants landmarks, and delays among them (`research.papers.gnp`); a crawl measures only nodes to sites. But two
nodes that crawl the same site are no farther apart than the way over it, and the shortest such way over all sites comes
near to their distance (the triangle rule of IDMaps: Francis, Jamin, Paxson, Zhang, Gryniewicz,
Jin, An architecture for a global Internet host distance estimation service, INFOCOM 1999). Classical scaling of these
ways places the nodes. From there sites are placed against nodes and nodes against sites in turn, a few steps each. From
random places the same objective ends in far worse minima (measured: median relative error 0.55 instead of 0.10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from splitter.errors import InputError

from tasks.scheduling.proximity.least_squares import MOST_STEPS, Matrix, least_squares

DIMENSIONS = 4
"""More gain nothing on the measured matrix (`reviewloop bench proximity`), fewer cost some accuracy."""

FEWEST_MEASURED = 3
"""Measured pairs below which a host has no place: anything would fit."""

FEWEST_PAIRS = 8
"""Measured pairs below which nothing is estimated: three sites on three nodes are nine pairs."""

_TINY_MS = 1e-6
_HOST_STARTS = 4
_ROUNDS = 12
_STEPS = 8
# A place that is stuck on the wrong side of the others is found by a new start, once the others are about right.
_ANEW = frozenset({0, 4})
_MOST_PARTNERS = 48
"""Measured pairs of one host that are used: more cost time and change little."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays by name: measured if possible, else estimated (`tasks.scheduling.decision.Distances`).

    Attributes:
        sites, nodes: row and column of each name.
        delays_ms: (S, N); NaN if a pair was not measured, and site or node have no place.
    """

    sites: Mapping[str, int]
    nodes: Mapping[str, int]
    delays_ms: Matrix

    @staticmethod
    def estimate(measured_ms: Mapping[tuple[str, str], float]) -> Delays | None:
        """Estimate all delays from the measured ones of (site, node); None if there are too few of them.

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
        """Return milliseconds (sites, nodes); NaN if nothing is known."""
        unknown_site, unknown_node = len(self.sites), len(self.nodes)
        rows = [self.sites.get(name, unknown_site) for name in sites]
        columns = [self.nodes.get(name, unknown_node) for name in nodes]
        padded = np.pad(self.delays_ms, ((0, 1), (0, 1)), constant_values=np.nan)
        selected: Matrix = padded[np.ix_(rows, columns)]
        return selected


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Places of sites (S, d) and nodes (N, d) in milliseconds; NaN if too little was measured."""

    sites: Matrix
    nodes: Matrix

    def distances_ms(self) -> Matrix:
        """Return estimated delays (S, N); NaN if either has no place."""
        return distances_ms(self.sites, self.nodes)


def embed(rtt_ms: Matrix, seed: int = 0) -> Coordinates:
    """Place sites and nodes by the delays that were measured between them.

    A site has a place if it was measured by at least three nodes that have one, a node if it measured at least three
    such sites.

    Args:
        rtt_ms: (S, N) delays, NaN where not measured.
        seed: of the random numbers. The same delays give the same places.

    Raises:
        InputError: no matrix, or a delay that is not positive.
    """
    if rtt_ms.ndim != 2:
        raise InputError(
            "delays of pairs have the shape {shape}: one row per site is right", shape=rtt_ms.shape
        )
    check_positive(rtt_ms)
    sites, nodes = _select_measured(rtt_ms)
    at_sites = np.full((len(rtt_ms), DIMENSIONS), np.nan)
    at_nodes = np.full((rtt_ms.shape[1], DIMENSIONS), np.nan)
    if len(sites):
        at_sites[sites], at_nodes[nodes] = _place(rtt_ms[np.ix_(sites, nodes)], seed)
    return Coordinates(at_sites, at_nodes)


def _select_measured(rtt_ms: Matrix) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the sites and nodes that keep three measured pairs when those with fewer are removed."""
    measured = np.isfinite(rtt_ms)
    while True:
        kept = measured & (measured.sum(1) >= FEWEST_MEASURED)[:, None]
        kept &= kept.sum(0) >= FEWEST_MEASURED
        if (kept == measured).all():
            return np.flatnonzero(kept.any(1)), np.flatnonzero(kept.any(0))
        measured = kept


def _place(rtt_ms: Matrix, seed: int) -> tuple[Matrix, Matrix]:
    """Return places (S, d) and (N, d). Every host must have enough measurements."""
    chance = np.random.default_rng(seed)
    to_nodes, to_sites = _Pairs.draw(rtt_ms, chance), _Pairs.draw(rtt_ms.T, chance)
    at_nodes = scale_classically(_ways(rtt_ms), DIMENSIONS)
    # Nodes with the same delays to the same sites would stay at one place.
    at_nodes += 1e-3 * at_nodes.std() * chance.standard_normal(at_nodes.shape)
    at_sites = to_nodes.settle(host_starts(at_nodes, rtt_ms, seed), at_nodes)
    for turn in range(1, _ROUNDS):
        starts = at_nodes[None]
        if turn in _ANEW:
            starts = np.concatenate([starts, host_starts(at_sites, rtt_ms.T, seed + turn)])
        at_nodes = to_sites.settle(starts, at_sites)
        starts = at_sites[None]
        if turn in _ANEW:
            starts = np.concatenate([starts, host_starts(at_nodes, rtt_ms, seed + turn)])
        at_sites = to_nodes.settle(starts, at_nodes)
    return at_sites, at_nodes


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs used for each host: the measured partners (H, k), and delays (H, k), NaN beyond."""

    partners: NDArray[np.intp]
    rtt_ms: Matrix

    @staticmethod
    def draw(rtt_ms: Matrix, chance: Generator) -> _Pairs:
        """Draw pairs from delays (H, P): all, or at most the number that is used."""
        measured = np.isfinite(rtt_ms)
        most = min(_MOST_PARTNERS, int(measured.sum(1).max()))
        order = np.where(measured, chance.random(rtt_ms.shape), 2.0)
        partners = np.argsort(order, axis=1)[:, :most]
        return _Pairs(partners, np.take_along_axis(rtt_ms, partners, 1))

    def settle(self, starts: Matrix, partners: Matrix) -> Matrix:
        """Return places (H, d), a few steps from starts (n, H, d), given the places (P, d) of the others."""
        return settle(starts, partners[self.partners], self.rtt_ms, _STEPS)


def _ways(rtt_ms: Matrix) -> Matrix:
    """Return the shortest way from node to node over a site (N, N); NaN if no site was measured by both."""
    legs = np.where(np.isfinite(rtt_ms), rtt_ms, np.inf)
    ways = np.stack([(legs + leg[:, None]).min(0) for leg in legs.T])
    np.fill_diagonal(ways, 0.0)
    return np.where(np.isfinite(ways), ways, np.nan)


def settle(starts: Matrix, against: Matrix, rtt_ms: Matrix, most_steps: int = MOST_STEPS) -> Matrix:
    """The best places that hosts come to from several starts, each against places that stay.

    Args:
        starts: (n, H, d) coordinates.
        against: (H, k, d) coordinates of each host's measured partners.
        rtt_ms: (H, k) delays, NaN where not measured.
        most_steps: from each start.

    Returns:
        (H, d) coordinates.
    """
    count, hosts, dimensions = starts.shape
    delays = np.tile(rtt_ms, (count, 1))
    measured = np.isfinite(delays)
    # Without a measurement the residual is always 0.
    target = np.where(measured, delays, 1.0)
    weight = measured / target

    def residuals(at: Matrix, which: NDArray[np.intp]) -> tuple[Matrix, Matrix]:
        apart = at[:, None, :] - against[which % hosts]
        length = np.sqrt((apart * apart).sum(2))
        weights = weight[which]
        slope = apart * (weights / np.maximum(length, _TINY_MS))[:, :, None]
        return (length - target[which]) * weights, slope

    found, sums = least_squares(residuals, starts.reshape(-1, dimensions), most_steps)
    best = sums.reshape(count, hosts).argmin(0)
    places: Matrix = found.reshape(count, hosts, dimensions)[best, np.arange(hosts)]
    return places


def distances_ms(ones: Matrix, others: Matrix) -> Matrix:
    """Estimated delays between two groups of hosts: Euclidean distances of coordinates (n, d) and (m, d) -> (n, m)."""
    apart = ones[:, None, :] - others[None, :, :]
    lengths: Matrix = np.sqrt((apart * apart).sum(2))
    return lengths


def host_starts(landmarks: Matrix, rtt_ms: Matrix, seed: int) -> Matrix:
    """Places to begin the search for hosts at, from (L, d) landmarks and (H, L) delays to them -> (starts, H, d).

    The first start is next to the nearest landmark, never at it: the distance has no slope there.
    """
    chance = np.random.default_rng(seed)
    spread = np.maximum(landmarks.std(0), _TINY_MS)
    drawn = chance.standard_normal((_HOST_STARTS, len(rtt_ms), landmarks.shape[1]))
    starts: Matrix = landmarks.mean(0) + spread * drawn
    starts[0] = landmarks[np.nanargmin(rtt_ms, axis=1)] + 0.05 * spread * drawn[0]
    return starts


def scale_classically(delays: Matrix, dimensions: int) -> Matrix:
    """Coordinates by classical scaling (Torgerson 1952): (n, n) symmetric delays -> (n, d).

    A delay that is NaN counts as the median one; at least one must be there.
    """
    count = len(delays)
    full = np.where(np.isfinite(delays), delays, np.nanmedian(delays))
    np.fill_diagonal(full, 0.0)
    centred = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * centred @ (full * full) @ centred)
    largest = np.argsort(-values)[:dimensions]
    scaled: Matrix = np.zeros((count, dimensions))
    scaled[:, : len(largest)] = vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0.0))
    return scaled


def check_positive(delays: Matrix) -> None:
    """Raises InputError unless every delay is positive, or NaN."""
    if not (np.isnan(delays) | ((delays > 0.0) & np.isfinite(delays))).all():
        raise InputError(
            "a delay is not positive: milliseconds above 0 are right, NaN where it was not measured"
        )
