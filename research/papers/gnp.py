"""Coordinates by landmarks, as GNP was published (Ng and Zhang, Predicting Internet network distance with
coordinates-based approaches, INFOCOM 2002), and the choice of landmarks: what the 2010 paper did.

First all landmarks get coordinates, from the delays among them, then each host against them, by the objective of
`tasks.scheduling.proximity.coordinates`. The crawl itself has no landmarks and measures nothing between nodes.

The authors minimise by downhill simplex, the 2010 paper by hill climbing; here it is Levenberg-Marquardt from several
starts, which comes lower in a fraction of the time (docs/benchmarks.md).
"""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import (
    FEWEST_MEASURED,
    check_positive,
    host_starts,
    scaled,
    settled,
)
from tasks.scheduling.proximity.least_squares import Matrix, least_squares

MOST_DIMENSIONS = 8
_LANDMARK_STARTS = 6
_TINY_MS = 1e-6


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
