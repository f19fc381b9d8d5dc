"""Which nodes serve as landmarks: far from each other, so that every host has some on all sides."""

from __future__ import annotations

from random import Random

import numpy as np
from splitter.errors import InputError

from tasks.scheduling.proximity.matrix import Matrix


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
