"""Coordinates by Global Network Positioning (Ng and Zhang, Predicting Internet network distance with coordinates-based
approaches, INFOCOM 2002; first as a workshop paper of 2001): first the landmarks together, then each host against them.

Objective, for the landmarks and for a host alike: the sum over measured pairs of the squared relative error,
((|x - y| - t) / t)^2, where t is the measured delay and |x - y| the Euclidean distance of the coordinates. The authors
minimise it by downhill simplex, the 2010 paper by hill climbing; here by Levenberg-Marquardt from several starts, which
comes lower in a fraction of the time (measured: `reviewloop bench proximity`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from splitter.errors import InputError

from tasks.scheduling.proximity.matrix import Matrix
from tasks.scheduling.proximity.minimum import MOST_STEPS, least_squares

MOST_DIMENSIONS = 8
FEWEST_MEASURED = 3
"""Delays to landmarks below which a host has no place: anything would fit."""
_LANDMARK_STARTS = 6
_HOST_STARTS = 4
_TINY_MS = 1e-6


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
    check_dimensions(dimensions)
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


def settled(starts: Matrix, against: Matrix, rtt_ms: Matrix, most_steps: int = MOST_STEPS) -> Matrix:
    """The best places that hosts come to from several starts, each against places that stay.

    Args:
        starts: (n, H, d) coordinates.
        against: (H, k, d) coordinates of what each host was measured to.
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


def place(landmarks: Matrix, rtt_ms: Matrix, seed: int) -> Matrix:
    """`place_many` for one host: (L,) delays -> (d,) coordinates."""
    placed: Matrix = place_many(landmarks, rtt_ms[None, :], seed)[0]
    return placed


def distances_ms(ones: Matrix, others: Matrix) -> Matrix:
    """Estimated delays between two groups of hosts: Euclidean distances of coordinates (n, d) and (m, d) -> (n, m)."""
    apart = ones[:, None, :] - others[None, :, :]
    lengths: Matrix = np.sqrt((apart * apart).sum(2))
    return lengths


def host_starts(landmarks: Matrix, rtt_ms: Matrix, seed: int) -> Matrix:
    """Where hosts may be, from (L, d) landmarks and (H, L) delays to them -> (starts, H, d).

    The first start is beside the nearest landmark, never at it: the distance has no slope there.
    """
    chance = np.random.default_rng(seed)
    spread = np.maximum(landmarks.std(0), _TINY_MS)
    drawn = chance.standard_normal((_HOST_STARTS, len(rtt_ms), landmarks.shape[1]))
    starts: Matrix = landmarks.mean(0) + spread * drawn
    starts[0] = landmarks[np.nanargmin(rtt_ms, axis=1)] + 0.05 * spread * drawn[0]
    return starts


def scaled(delays: Matrix, dimensions: int) -> Matrix:
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


def check_positive(delays: Matrix) -> None:
    """Raises InputError unless every delay is positive, or NaN."""
    if not (np.isnan(delays) | ((delays > 0.0) & np.isfinite(delays))).all():
        raise InputError(
            "a delay is not positive: milliseconds above 0 are right, NaN where it was not measured"
        )
