"""Vivaldi coordinates with heights (Dabek, Cox, Kaashoek, Morris: Vivaldi, a decentralized network coordinate system,
SIGCOMM 2004, figure 3 and section 5.4): what GNP is compared with, on the same measurements.

Springs of the measured length pull hosts about; estimate = |x - y| + height of both, the height standing for the way
to the core of the network. A host moves by c_c w of the error of one sample, w = its error estimate over the sum of
both ends'; its own estimate takes in the sample's relative error with c_e w; c_c = c_e = 0.25 as in the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling.proximity.least_squares import Matrix

_GAIN = 0.25
_LEAST_HEIGHT_MS = 0.1
_ROUNDS = 1000


def embed(rtt_ms: Matrix, neighbours: NDArray[np.intp], dimensions: int, seed: int) -> Matrix:
    """Coordinates of all hosts after 1,000 rounds, in each of which every host takes one sample of one neighbour.

    Args:
        rtt_ms: (n, k) delays to the neighbours; NaN: no sample.
        neighbours: (n, k) numbers of hosts.
        dimensions: of the Euclidean part.
        seed: of the start and of the order of the neighbours.

    Returns:
        (n, d + 1): coordinates, and the height in the last column, in milliseconds.
    """
    chance = np.random.default_rng(seed)
    hosts, degree = rtt_ms.shape
    at = chance.standard_normal((hosts, dimensions))
    height = np.full(hosts, 1.0)
    error = np.ones(hosts)
    every = np.arange(hosts)
    for turn in range(_ROUNDS):
        if turn % degree == 0:
            order = np.argsort(chance.random((hosts, degree)), axis=1)
        column = order[:, turn % degree]
        asked = np.flatnonzero(np.isfinite(rtt_ms[every, column]))
        other, delay = neighbours[asked, column[asked]], rtt_ms[asked, column[asked]]
        apart = at[asked] - at[other]
        length = np.sqrt((apart * apart).sum(1))
        estimate = length + height[asked] + height[other]
        weight = error[asked] / (error[asked] + error[other])
        relative = np.abs(estimate - delay) / delay
        force = _GAIN * weight * (delay - estimate)
        error[asked] += _GAIN * weight * (np.minimum(relative, 1.0) - error[asked])
        at[asked] += apart * (force / np.maximum(length, 1e-9))[:, None]
        moved = height[asked] + force * (height[asked] + height[other]) / estimate
        height[asked] = np.maximum(moved, _LEAST_HEIGHT_MS)
    return np.column_stack([at, height])


def distances_ms(ones: Matrix, others: Matrix) -> Matrix:
    """Estimated delays between two groups of hosts, (n, d + 1) and (m, d + 1) -> (n, m)."""
    apart = ones[:, None, :-1] - others[None, :, :-1]
    lengths: Matrix = np.sqrt((apart * apart).sum(2)) + ones[:, -1:] + others[:, -1]
    return lengths
