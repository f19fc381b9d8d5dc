"""GNP as its authors minimised it, by downhill simplex, beside the project's way: how low, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import minimize

from tasks.scheduling.proximity import gnp
from tasks.scheduling.proximity.matrix import Matrix

_SEED = 0


def minimisers(among: Matrix, sites: Matrix) -> dict[str, Any]:
    """GNP's objective and its CPU seconds, by downhill simplex (from one start) and by ours, in 2, 4 and 8 dimensions.

    Args:
        among: (L, L) delays among the landmarks, in milliseconds.
        sites: (S, L) delays of sites to them; both place them among our landmarks.

    Returns:
        By dimension and what was placed: ``[objective, seconds]``; of the sites the median objective.
    """
    told: dict[str, Any] = {}
    for dimensions in (2, 4, 8):
        landmarks, ours_s = _timed(partial(gnp.embed_landmarks, among, dimensions, _SEED))
        placed, ours_sites_s = _timed(partial(gnp.place_many, landmarks, sites, _SEED))
        simplex, simplex_s = _timed(partial(_simplex_landmarks, among, dimensions, _SEED))
        simplex_sites, simplex_sites_s = _timed(partial(_simplex_sites, landmarks, sites, _SEED))
        told[str(dimensions)] = {
            "landmarks": {
                "ours": [round(_among(landmarks, among), 4), round(ours_s, 4)],
                "simplex": [round(_among(simplex, among), 4), round(simplex_s, 4)],
            },
            "sites": {
                "ours": [round(_median_sum(landmarks, placed, sites), 5), round(ours_sites_s, 4)],
                "simplex": [
                    round(_median_sum(landmarks, simplex_sites, sites), 5),
                    round(simplex_sites_s, 4),
                ],
            },
        }
    return told


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
    return _sum(gnp.distances_ms(at[None, :], landmarks)[0], measured)


def _sum(estimated: Matrix, measured: Matrix) -> float:
    return float((((estimated - measured) / measured) ** 2).sum())


def _among(landmarks: Matrix, among: Matrix) -> float:
    pairs = np.triu_indices(len(among), 1)
    return _sum(gnp.distances_ms(landmarks, landmarks)[pairs], among[pairs])


def _median_sum(landmarks: Matrix, placed: Matrix, measured: Matrix) -> float:
    estimated = gnp.distances_ms(placed, landmarks)
    return median(_sum(one, to) for one, to in zip(estimated, measured, strict=True))
