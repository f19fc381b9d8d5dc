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

from tasks.scheduling.proximity.coordinates import host_starts, scale_classically, settle
from tasks.scheduling.proximity.least_squares import Matrix, least_squares

_LANDMARK_STARTS = 6
_TINY_MS = 1e-6


def k_centre(rtt_ms: Matrix, count: int, rng: Random) -> list[int]:
    """Landmarks by the greedy farthest point rule (Gonzalez, Theoretical Computer Science 38, 1985).

    The first is drawn; each next one is the node farthest from its nearest landmark so far (the lower index of
    equals). Where delays obey the triangle inequality, no node is more than twice as far from a landmark as it need be.

    Args:
        rtt_ms: (n, n) delays among the candidates.
        count: of landmarks, 1 to n.
        rng: draws the first.

    Returns:
        ``count`` different rows of the matrix, in the order chosen.
    """
    chosen = [rng.randrange(len(rtt_ms))]
    nearest = rtt_ms[chosen[0]].astype(float)
    while len(chosen) < count:
        nearest[chosen] = -1.0
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, rtt_ms[chosen[-1]])
    return chosen


def embed_landmarks(rtt_ms: Matrix, dimensions: int, seed: int) -> Matrix:
    """Coordinates of the landmarks from the delays among them.

    Starts: classical scaling of the delays (Torgerson 1952), and random ones of the same size.

    Args:
        rtt_ms: (L, L), both ways: the mean of the two counts; the diagonal is not looked at.
        seed: of the random starts.

    Returns:
        (L, d) coordinates, in milliseconds.
    """
    count = len(rtt_ms)
    delays = 0.5 * (rtt_ms + rtt_ms.T)
    np.fill_diagonal(delays, np.nan)
    one, other = np.triu_indices(count, 1)
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
    starts[0] = scale_classically(delays, dimensions) + 1e-3 * starts[0]
    found, sums = least_squares(residuals, starts.reshape(_LANDMARK_STARTS, -1))
    best: Matrix = found[sums.argmin()].reshape(count, dimensions)
    return best


def place_many(landmarks: Matrix, rtt_ms: Matrix, seed: int) -> Matrix:
    """Coordinates of hosts from their delays to the landmarks.

    Starts: beside the nearest landmark, and random places among the landmarks.

    Args:
        landmarks: (L, d) coordinates.
        rtt_ms: (H, L) delays, NaN where not measured; at least three of each host.
        seed: of the random starts.

    Returns:
        (H, d) coordinates.
    """
    against = np.broadcast_to(landmarks, (len(rtt_ms), *landmarks.shape))
    return settle(host_starts(landmarks, rtt_ms, seed), against, rtt_ms)
