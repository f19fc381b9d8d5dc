"""How well coordinates find the nodes that are near a site: the 2010 paper's accuracy, on measured round-trip times.

Each draw takes 30 nodes and 203 sites from the 490 hosts of the matrix; landmarks are nodes, by k-centre. Measured are
the delays among the landmarks and of every other node and every site to them; the rest is estimated and compared with
the matrix. Measured delays are used as they are. "From the crawl's own pairs" there are no landmarks: some nodes, drawn
for each site, measure it, and nothing is known between nodes.

The paper does not define its accuracy. Here an estimate is right if it is within 20 % of the delay, counted over the
pairs of a site and a node that were not measured: of the definitions tried (20, 30 and 50 %; order of two nodes; all
pairs) the one nearest to its tables. Next to it stands what the choice of a node needs: the closest node as the estimated
nearest (Top-1), among the estimated nearest three (Top-3), and delay over the least one possible (stretch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.bench.registry import shared_file
from research.papers import gnp, vivaldi
from tasks.scheduling.proximity.coordinates import distances_ms, embed
from tasks.scheduling.proximity.least_squares import Matrix
from tasks.scheduling.proximity.response_times import remove_noise

_NODES, _SITES = 30, 203
_DRAWS = 20
_DIMENSIONS = range(2, 9)
_LANDMARKS = 9
_USUAL = 6  # dimensions, if they are not varied: more gain nothing
_SHARES = {"9_of_30_nodes": None, "30_percent": 0.3}
_REPEATS = 5
_SIGMA, _OUTLIERS = 0.1, 0.1
_SHOWN = ("right_within_20", "relative_error_median", "top1_hit", "top3_hit", "stretch_median")

PAPER = {
    "9 landmarks, 2 to 8 dimensions, 30 % of noise removed": (
        0.685,
        0.738,
        0.740,
        0.742,
        0.742,
        0.743,
        0.745,
    ),
    "9 landmarks, 2 to 8 dimensions, 20 % of noise removed": (
        0.494,
        0.600,
        0.603,
        0.605,
        0.605,
        0.605,
        0.608,
    ),
    "4 dimensions, 5, 7 and 9 landmarks, 30 % of noise removed": (0.421, 0.506, 0.740),
    "4 dimensions, 5, 7 and 9 landmarks, 20 % of noise removed": (0.077, 0.300, 0.603),
}
"""Tables 1 and 2 as printed; under other conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw of hosts, and what is measured of it. Delays in milliseconds.

    Attributes:
        between: (nodes, nodes) true delays; `truth` (sites, nodes).
        landmarks: nodes that are landmarks, in the order chosen.
        nodes: (nodes, landmarks) measured, NaN for a landmark to itself; `sites` (sites, landmarks).
    """

    seed: int
    between: Matrix
    truth: Matrix
    landmarks: list[int]
    nodes: Matrix
    sites: Matrix


Estimator = Callable[[Draw], tuple[Matrix, NDArray[np.bool_]]]
"""Returns delays (sites, nodes) from the measured ones, and True for each estimate."""
Scores = dict[str, dict[str, float]]


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure everything above over 20 draws; with `smallest` one draw and few dimensions.

    Returns:
        ``ratios`` (medians of the draws, 9 landmarks and 6 dimensions) and ``figures``: of each way to
        estimate the median, 10th and 90th percentile of every score, and what the paper printed.

    Raises:
        InputError: the matrix is missing.
    """
    matrix = delays(shared)
    draws = range(1 if smallest else _DRAWS)
    full = [drawn(matrix, seed, _LANDMARKS) for seed in draws]
    by_dimension = {d: _scores(full, by_gnp(d)) for d in ((4, _USUAL) if smallest else _DIMENSIONS)}
    by_landmarks = {
        f"{count} at {d} dimensions": _scores([drawn(matrix, seed, count) for seed in draws], by_gnp(d))
        for count in (5, 7)
        for d in (4, 6)
    }
    methods = {
        "gnp": by_dimension[_USUAL],
        **{f"vivaldi_height_{d}": _scores(full, by_vivaldi(d)) for d in (2, 4, 6)},
        "vivaldi_height_4_random_neighbours": _scores(full, _by_neighbours),
        **{f"own_pairs_{name}": _scores(full, _by_own_pairs(share)) for name, share in _SHARES.items()},
        "way_through_a_landmark": _scores(full, through_landmarks),
        "random": _scores(full, at_random),
    }
    makers: dict[str, Callable[[Sequence[float]], float]] = {
        "one_measurement": lambda values: values[0],
        "mean_of_5": fmean,
        "median_of_5": median,
        "mode_of_buckets_half_deviation": remove_noise,
        "mode_of_buckets_one_deviation": lambda values: remove_noise(values, 1.0),
    }
    noise = {
        name: _scores([_disturbed(draw, maker) for draw in full], by_gnp(_USUAL))
        for name, maker in makers.items()
    }
    compared = {
        "gnp": methods["gnp"],
        "vivaldi": methods[f"vivaldi_height_{_USUAL}"],
        "own_pairs": methods["own_pairs_30_percent"],
        "random": methods["random"],
    }
    ratios = {
        f"{name}_{score}": scores[score]["median"]
        for name, scores in compared.items()
        for score in (_SHOWN if name != "random" else _SHOWN[2:])
    }
    for name in ("mean_of_5", "mode_of_buckets_half_deviation"):
        ratios[f"noise_{name}_right_within_20"] = noise[name]["right_within_20"]["median"]
    figures = {
        "by_dimension_9_landmarks": {str(d): scores for d, scores in by_dimension.items()},
        "by_landmarks": by_landmarks,
        "methods_9_landmarks": methods,
        "noise_9_landmarks": {"sigma": _SIGMA, "outliers": _OUTLIERS, **noise},
        "paper": PAPER,
    }
    return {"bench": "proximity", "ratios": ratios, "figures": figures}


def delays(shared: Path) -> Matrix:
    """Return the matrix of measured round-trip times, in milliseconds. Raises InputError if it is missing."""
    return np.loadtxt(shared_file(shared, "rtt/PlanetLabData_1"), delimiter="\t", dtype=np.float64)


def drawn(matrix: Matrix, seed: int, landmarks: int) -> Draw:
    """Draw hosts; the same ones for any number of landmarks."""
    hosts = np.random.default_rng(seed).permutation(len(matrix))[: _NODES + _SITES]
    nodes, sites = hosts[:_NODES], hosts[_NODES:]
    between, truth = matrix[np.ix_(nodes, nodes)], matrix[np.ix_(sites, nodes)]
    chosen = gnp.k_centre(between, landmarks, Random(seed))
    to_landmarks = between[:, chosen]
    to_landmarks[chosen, range(landmarks)] = np.nan
    return Draw(
        seed=seed, between=between, truth=truth, landmarks=chosen, nodes=to_landmarks, sites=truth[:, chosen]
    )


def by_gnp(dimensions: int) -> Estimator:
    """Return GNP as published, on the measurements to the landmarks."""

    def estimate(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
        landmarks = gnp.embed_landmarks(draw.nodes[draw.landmarks], dimensions, draw.seed)
        nodes = gnp.place_many(landmarks, draw.nodes, draw.seed)
        nodes[draw.landmarks] = landmarks
        return _with_measured(draw, distances_ms(gnp.place_many(landmarks, draw.sites, draw.seed), nodes))

    return estimate


def by_vivaldi(dimensions: int) -> Estimator:
    """Return Vivaldi with heights on the very same measurements: the landmarks are everybody's neighbours."""

    def estimate(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
        measured = np.vstack([draw.nodes, draw.sites])
        neighbours = np.broadcast_to(draw.landmarks, measured.shape)
        placed = vivaldi.embed(measured, neighbours, dimensions, draw.seed)
        return _with_measured(draw, vivaldi.distances_ms(placed[_NODES:], placed[:_NODES]))

    return estimate


def through_landmarks(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
    """Estimate without coordinates: the shortest sum of both delays to a landmark (the idea of IDMaps, Francis et al. 1999)."""
    ways = [site[:, None] + node for site, node in zip(draw.sites.T, draw.nodes.T, strict=True)]
    return _with_measured(draw, np.nanmin(ways, axis=0))


def at_random(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return delays that know nothing."""
    return np.random.default_rng(draw.seed).random(draw.truth.shape), np.ones(draw.truth.shape, dtype=bool)


def _with_measured(draw: Draw, estimated: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Put what the landmarks measured to the sites into the estimates."""
    estimated[:, draw.landmarks] = draw.sites
    unmeasured = np.ones(draw.truth.shape, dtype=bool)
    unmeasured[:, draw.landmarks] = False
    return estimated, unmeasured


def _by_neighbours(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
    """Estimate by Vivaldi as it is meant: as many measurements, but each host's to nodes drawn for it."""
    all_ms = np.vstack([draw.between, draw.truth])
    order = np.random.default_rng(draw.seed).random(all_ms.shape)
    np.fill_diagonal(order, 2.0)  # no host is its own neighbour
    neighbours = np.argsort(order, axis=1)[:, :_LANDMARKS]
    placed = vivaldi.embed(np.take_along_axis(all_ms, neighbours, 1), neighbours, 4, draw.seed)
    unmeasured = np.ones(draw.truth.shape, dtype=bool)
    np.put_along_axis(unmeasured, neighbours[_NODES:], False, 1)
    estimated = vivaldi.distances_ms(placed[_NODES:], placed[:_NODES])
    return np.where(unmeasured, estimated, draw.truth), unmeasured


def _by_own_pairs(share: float | None) -> Estimator:
    """Return an estimator without landmarks: each pair is measured by chance, or (`None`) 9 nodes drawn for each site."""

    def estimate(draw: Draw) -> tuple[Matrix, NDArray[np.bool_]]:
        order = np.random.default_rng(draw.seed).random(draw.truth.shape)
        measured = order < share if share is not None else order.argsort(1).argsort(1) < _LANDMARKS
        placed = embed(np.where(measured, draw.truth, np.nan), seed=draw.seed).distances_ms()
        # A site without a place is as far as the middle one.
        placed = np.where(np.isnan(placed), np.nanmedian(placed), placed)
        return np.where(measured, draw.truth, placed), ~measured

    return estimate


def accuracy(estimate: Matrix, truth: Matrix, unmeasured: NDArray[np.bool_]) -> dict[str, float]:
    """Return how good estimated delays (sites, nodes) are, and the nodes that they choose.

    Args:
        estimate, truth: milliseconds.
        unmeasured: True for the pairs that were estimated; accuracy counts these alone.
    """
    error = np.abs(estimate - truth)[unmeasured] / truth[unmeasured]
    site = np.arange(len(truth))
    ranked = np.argsort(estimate, axis=1, kind="stable")
    closest = truth.argmin(1)
    stretch = truth[site, ranked[:, 0]] / truth[site, closest]
    return {
        "right_within_20": float((error <= 0.2).mean()),
        "right_within_30": float((error <= 0.3).mean()),
        "relative_error_median": float(np.median(error)),
        "top1_hit": float((ranked[:, 0] == closest).mean()),
        "top3_hit": float((ranked[:, :3] == closest[:, None]).any(1).mean()),
        "stretch_median": float(np.median(stretch)),
        "stretch_p90": float(np.percentile(stretch, 90)),
    }


def _scores(draws: Iterable[Draw], estimator: Estimator) -> Scores:
    each = []
    for draw in draws:
        estimate, unmeasured = estimator(draw)
        each.append(accuracy(estimate, draw.truth, unmeasured))
    return {name: _spread([one[name] for one in each]) for name in each[0]}


def _spread(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = (round(float(value), 4) for value in np.percentile(values, [10, 50, 90]))
    return {"median": middle, "p10": low, "p90": high}


def _disturbed(draw: Draw, maker: Callable[[Sequence[float]], float]) -> Draw:
    """Replace each measured delay by the one that `maker` makes from five disturbed ones."""
    chance = np.random.default_rng(1000 + draw.seed)

    def measured(delays_ms: Matrix) -> Matrix:
        shape = (*delays_ms.shape, _REPEATS)
        factor = np.exp(_SIGMA * chance.standard_normal(shape))
        factor *= np.where(chance.random(shape) < _OUTLIERS, chance.uniform(2.0, 10.0, shape), 1.0)
        values = (np.where(np.isnan(delays_ms), 1.0, delays_ms)[..., None] * factor).reshape(-1, _REPEATS)
        made = np.array([maker(one) for one in values.tolist()]).reshape(delays_ms.shape)
        return np.where(np.isnan(delays_ms), np.nan, made)

    return replace(draw, nodes=measured(draw.nodes), sites=measured(draw.sites))
