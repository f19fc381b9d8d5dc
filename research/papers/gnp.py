"""Coordinates by landmarks, as GNP was published (Ng and Zhang, Predicting Internet network distance with
coordinates-based approaches, INFOCOM 2002), and the choice of landmarks: what the 2010 paper did.

First all landmarks get coordinates, from the delays among them, then each host against them, by the objective of
`tasks.scheduling.proximity.coordinates`. The crawl itself has no landmarks and measures nothing between nodes.

The authors minimise by downhill simplex, the 2010 paper by hill climbing; here it is Levenberg-Marquardt from several
starts, which comes lower in a fraction of the time. `minimisers` measures that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import (
    FEWEST_MEASURED,
    check_positive,
    distances_ms,
    host_starts,
    scaled,
    settled,
)
from tasks.scheduling.proximity.least_squares import Matrix, least_squares

MOST_DIMENSIONS = 8
_LANDMARK_STARTS = 6
_TINY_MS = 1e-6
_SEED = 0


def k_centre(rtt_ms: Matrix, count: int, rng: Random) -> list[int]:
    """Landmarks by the greedy farthest point rule (Gonzalez, Theoretical Computer Science 38, 1985).

    The first is drawn; each next one is the node farthest from its nearest landmark so far (the lower index of
    equals). Where delays obey the triangle inequality, no node is more than twice as far from a landmark as it need be.

    Args:
        rtt_ms: (n, n) delays among the candidates, NaN where not measured: that counts as no distance.
        count: of landmarks, 1 to n.
        rng: draws the first.

    Returns:
        ``count`` different rows of the matrix, in the order chosen.

    Raises:
        InputError: the matrix is not square, or has too few rows.
    """
    nodes = len(rtt_ms)
    if rtt_ms.shape != (nodes, nodes) or not 1 <= count <= nodes:
        raise InputError(
            f"{count} landmarks of a {rtt_ms.shape} matrix: it must be square, with at least as many rows"
        )
    known = np.nan_to_num(rtt_ms, nan=0.0)
    chosen = [rng.randrange(nodes)]
    nearest = known[chosen[0]].astype(float)
    while len(chosen) < count:
        nearest[chosen] = -1.0
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, known[chosen[-1]])
    return chosen


def embed_landmarks(rtt_ms: Matrix, dimensions: int, seed: int) -> Matrix:
    """Coordinates of the landmarks from the delays among them.

    Starts: classical scaling of the delays (Torgerson 1952), and random ones of the same size.

    Args:
        rtt_ms: (L, L), both ways: the mean of the two counts, or the one there is; NaN where not measured; the
            diagonal is not looked at.
        dimensions: 2 to 8.
        seed: of the random starts.

    Returns:
        (L, d) coordinates, in milliseconds.

    Raises:
        InputError: not a square matrix of at least three landmarks, a delay that is not positive, a landmark without
            a delay, or dimensions out of range.
    """
    if not 2 <= dimensions <= MOST_DIMENSIONS:
        raise InputError(f"{dimensions} dimensions: 2 to {MOST_DIMENSIONS} are right")
    count = len(rtt_ms)
    if rtt_ms.shape != (count, count) or count < FEWEST_MEASURED:
        raise InputError(
            f"delays of landmarks have the shape {rtt_ms.shape}: square and at least 3 x 3 is right"
        )
    delays = _both_ways(rtt_ms)
    one, other = np.nonzero(np.triu(np.isfinite(delays)))
    if len(set(one.tolist()) | set(other.tolist())) < count:
        raise InputError("a landmark has no delay to any other: measure it again, or leave it out")
    target = delays[one, other]
    pair = np.arange(len(target))

    def residuals(flat: Matrix, _which: NDArray[np.intp]) -> tuple[Matrix, Matrix]:
        at = flat.reshape(len(flat), count, dimensions)
        apart = at[:, one] - at[:, other]
        length = np.sqrt((apart * apart).sum(2))
        slope = apart / (np.maximum(length, _TINY_MS) * target)[:, :, None]
        jacobian = np.zeros((len(flat), len(target), count, dimensions))
        jacobian[:, pair, one] = slope
        jacobian[:, pair, other] = -slope
        return (length - target) / target, jacobian.reshape(len(flat), len(target), -1)

    chance = np.random.default_rng(seed)
    size = np.median(target) / np.sqrt(2.0 * dimensions)
    starts = size * chance.standard_normal((_LANDMARK_STARTS, count, dimensions))
    starts[0] = scaled(delays, dimensions) + 1e-3 * starts[0]
    found, sums = least_squares(residuals, starts.reshape(_LANDMARK_STARTS, -1))
    best: Matrix = found[sums.argmin()].reshape(count, dimensions)
    return best


def place_many(landmarks: Matrix, rtt_ms: Matrix, seed: int) -> Matrix:
    """Coordinates of hosts from their delays to the landmarks.

    Starts: beside the nearest landmark, and random places among the landmarks.

    Args:
        landmarks: (L, d) coordinates.
        rtt_ms: (H, L) delays, NaN where not measured.
        seed: of the random starts.

    Returns:
        (H, d) coordinates; NaN for a host with fewer than three measured delays.

    Raises:
        InputError: shapes that don't fit, or a delay that is not positive.
    """
    count, dimensions = landmarks.shape
    if rtt_ms.ndim != 2 or rtt_ms.shape[1] != count:
        raise InputError(
            f"delays of hosts have the shape {rtt_ms.shape}: one column per landmark is right, {count}"
        )
    check_positive(rtt_ms)
    places: Matrix = np.full((len(rtt_ms), dimensions), np.nan)
    known = np.isfinite(rtt_ms).sum(1) >= FEWEST_MEASURED
    if not known.any():
        return places
    starts = host_starts(landmarks, rtt_ms[known], seed)
    against = np.broadcast_to(landmarks, (int(known.sum()), count, dimensions))
    places[known] = settled(starts, against, rtt_ms[known])
    return places


def _both_ways(rtt_ms: Matrix) -> Matrix:
    """A symmetric copy: the mean of both ways; NaN on the diagonal."""
    delays = rtt_ms.astype(float)
    np.fill_diagonal(delays, np.nan)
    check_positive(delays)
    there, back = delays, delays.T
    symmetric: Matrix = np.where(np.isnan(there), back, np.where(np.isnan(back), there, 0.5 * (there + back)))
    return symmetric


def check_dimensions(dimensions: int) -> None:
    """Raises InputError unless there are 2 to 8."""
    if not 2 <= dimensions <= MOST_DIMENSIONS:
        raise InputError(f"{dimensions} dimensions: 2 to {MOST_DIMENSIONS} are right")


def minimisers(among: Matrix, sites: Matrix, dimensions: Sequence[int]) -> dict[str, Any]:
    """GNP's objective and its CPU seconds, by downhill simplex (from one start) and by ours.

    Args:
        among: (L, L) delays among the landmarks, in milliseconds.
        sites: (S, L) delays of sites to them; both place them among our landmarks.
        dimensions: those that are tried.

    Returns:
        By dimension, what was placed and how: ``objective`` (of the sites the median) and ``cpu_s``.
    """
    found: dict[str, Any] = {}
    for size in dimensions:
        landmarks, ours_s = _timed(partial(embed_landmarks, among, size, _SEED))
        placed, ours_sites_s = _timed(partial(place_many, landmarks, sites, _SEED))
        simplex, simplex_s = _timed(partial(_simplex_landmarks, among, size, _SEED))
        simplex_sites, simplex_sites_s = _timed(partial(_simplex_sites, landmarks, sites, _SEED))
        found[str(size)] = {
            "landmarks": {
                "ours": _figures(_among(landmarks, among), ours_s),
                "simplex": _figures(_among(simplex, among), simplex_s),
            },
            "sites": {
                "ours": _figures(_median_sum(landmarks, placed, sites), ours_sites_s),
                "simplex": _figures(_median_sum(landmarks, simplex_sites, sites), simplex_sites_s),
            },
        }
    return found


def _figures(objective: float, cpu_s: float) -> dict[str, float]:
    return {"objective": round(objective, 5), "cpu_s": round(cpu_s, 4)}


def _timed(work: Callable[[], Matrix]) -> tuple[Matrix, float]:
    begun = time.process_time()
    return work(), time.process_time() - begun


def _simplex_landmarks(among: Matrix, dimensions: int, seed: int) -> Matrix:
    shape = (len(among), dimensions)
    start = np.nanmedian(among) * np.random.default_rng(seed).standard_normal(shape) / np.sqrt(2 * dimensions)
    return _simplex(lambda flat: _among(flat.reshape(shape), among), start.ravel()).reshape(shape)


def _simplex_sites(landmarks: Matrix, sites: Matrix, seed: int) -> Matrix:
    chance = np.random.default_rng(seed)
    size = landmarks.shape[1]
    placed = []
    for measured in sites:
        start = landmarks[measured.argmin()] + landmarks.std(0) * chance.standard_normal(size)
        placed.append(_simplex(partial(_of_site, landmarks, measured), start))
    return np.stack(placed)


def _simplex(objective: Callable[[Matrix], float], start: Matrix) -> Matrix:
    found = minimize(
        objective,
        start,
        method="Nelder-Mead",
        options={"maxfev": 20_000, "xatol": 1e-3, "fatol": 1e-6, "adaptive": True},
    )
    return np.asarray(found.x, dtype=np.float64)


def _of_site(landmarks: Matrix, measured: Matrix, at: Matrix) -> float:
    return _sum(distances_ms(at[None, :], landmarks)[0], measured)


def _sum(estimated: Matrix, measured: Matrix) -> float:
    return float((((estimated - measured) / measured) ** 2).sum())


def _among(landmarks: Matrix, among: Matrix) -> float:
    pairs = np.triu_indices(len(among), 1)
    return _sum(distances_ms(landmarks, landmarks)[pairs], among[pairs])


def _median_sum(landmarks: Matrix, placed: Matrix, measured: Matrix) -> float:
    estimated = distances_ms(placed, landmarks)
    return median(_sum(one, to) for one, to in zip(estimated, measured, strict=True))
