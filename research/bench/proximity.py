"""How well coordinates find the nodes that are near a site: the 2010 paper's accuracy, on measured round-trip times.

Each draw takes 30 nodes and 203 sites from the 490 hosts of the matrix; landmarks are nodes, by k-centre. Measured are
the delays among the landmarks and of every other node and every site to them; the rest is estimated and compared with
the matrix. Measured delays are used as they are. "From the crawl's own pairs" there are no landmarks: some nodes, drawn
for each site, measure it, and nothing is known between nodes.

The paper does not define its accuracy. Here an estimate is right if it is within 20 % of the delay, counted over the
pairs of a site and a node that were not measured: of the definitions tried (20, 30 and 50 %; order of two nodes; all
pairs) the one nearest to its tables. Beside it: what the choice of a node needs, the closest node as the estimated
nearest (Top-1), among the estimated nearest three (Top-3), and delay over the least one possible (stretch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.papers import gnp, vivaldi
from research.tools.plots import check_there, lines
from splitter.errors import InputError
from tasks.scheduling.proximity.coordinates import distances_ms, embed
from tasks.scheduling.proximity.least_squares import Matrix
from tasks.scheduling.proximity.response_times import without_noise

_NODES, _SITES = 30, 203
_DRAWS = 20
_DIMENSIONS = range(2, 9)
_LANDMARKS = 9
_USUAL = 6  # dimensions, where they are not varied: more gain nothing
_SHARES = {"9_of_30_nodes": None, "30_percent": 0.3}
_REPEATS = 5
_SIGMA, _OUTLIERS = 0.1, 0.1

PAPER: dict[str, dict[str, dict[Any, float]]] = {
    "by_dimension_9_landmarks": {
        "noise_removed_30": dict(
            zip(_DIMENSIONS, (0.685, 0.738, 0.740, 0.742, 0.742, 0.743, 0.745), strict=True)
        ),
        "noise_removed_20": dict(
            zip(_DIMENSIONS, (0.494, 0.600, 0.603, 0.605, 0.605, 0.605, 0.608), strict=True)
        ),
    },
    "by_landmarks": {
        "noise_removed_30": {
            "7 at 6 dimensions": 0.506,
            "7 at 4 dimensions": 0.506,
            "5 at 4 dimensions": 0.421,
        },
        "noise_removed_20": {
            "7 at 6 dimensions": 0.300,
            "7 at 4 dimensions": 0.300,
            "5 at 4 dimensions": 0.077,
        },
    },
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


Estimator = Callable[[Draw], Matrix]
"""Estimated delays (sites, nodes) from what was measured."""
Spread = dict[str, float]
Scores = dict[str, Spread]


def run(shared: Path, *, plots: Path | None = None, smallest: bool = False) -> dict[str, Any]:
    """Measure everything above over 20 draws.

    Args:
        shared: the folder of the shared data.
        plots: a folder for the plots; None: none.
        smallest: one draw and few dimensions: shows that it runs, its figures mean little.

    Returns:
        ``bench``, ``ratios`` (medians of the draws, 9 landmarks and 6 dimensions) and ``figures``: of each way to
        estimate the median, 10th and 90th percentile of every score, and what the paper printed.

    Raises:
        InputError: the matrix is not there.
    """
    if plots is not None:
        check_there()
    matrix = delays(shared)
    draws = 1 if smallest else _DRAWS
    full = [drawn(matrix, seed, _LANDMARKS) for seed in range(draws)]
    by_dimension = {d: _scores(full, by_gnp(d)) for d in ((4, _USUAL) if smallest else _DIMENSIONS)}
    by_landmarks = {
        (count, d): _scores([drawn(matrix, seed, count) for seed in range(draws)], by_gnp(d))
        for count in (5, 7)
        for d in (4, 6)
    } | {(_LANDMARKS, d): by_dimension[d] for d in (4, 6)}
    against = {
        f"gnp_{_USUAL}": by_dimension[_USUAL],
        **{f"vivaldi_height_{d}": _scores(full, by_vivaldi(d)) for d in (2, 4, 6)},
        "vivaldi_height_4_random_neighbours": _neighbours(full, 4),
        **{f"own_pairs_{name}": _own_pairs(full, share) for name, share in _SHARES.items()},
        "way_through_a_landmark": _scores(full, through_landmarks),
        "random": _spread([choice(at_random(draw), draw.truth) for draw in full]),
    }
    figures = {
        "by_dimension_9_landmarks": {str(d): scores for d, scores in by_dimension.items()},
        "by_landmarks": {f"{count} at {d} dimensions": scores for (count, d), scores in by_landmarks.items()},
        "methods_9_landmarks": against,
        f"noise_9_landmarks_{_USUAL}_dimensions": _noise(full),
        "minimiser": gnp.minimisers(
            full[0].nodes[full[0].landmarks],
            full[0].sites[: 3 if smallest else 30],
            (2,) if smallest else (2, 4, 8),
        ),
        "paper": PAPER,
    }
    if plots is not None:
        _draw_plots(plots, by_dimension, by_landmarks)
    return {"bench": "proximity", "ratios": _ratios(figures), "figures": dict(_flat(figures))}


def _flat(figures: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested figures as one level, their names joined by dots."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def delays(shared: Path) -> Matrix:
    """The matrix of measured round-trip times, in milliseconds; InputError where it is not there."""
    path = shared / "rtt" / "PlanetLabData_1"
    if not path.is_file():
        raise InputError(
            f"the matrix of round-trip times is not at {path}: name the shared data with --shared"
        )
    return np.loadtxt(path, delimiter="\t", dtype=np.float64)


def drawn(matrix: Matrix, seed: int, landmarks: int) -> Draw:
    """One draw of hosts; the same ones whatever the number of landmarks."""
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
    """GNP as published, on the measurements to the landmarks."""

    def estimate(draw: Draw) -> Matrix:
        landmarks = gnp.embed_landmarks(draw.nodes[draw.landmarks], dimensions, draw.seed)
        nodes = gnp.place_many(landmarks, draw.nodes, draw.seed)
        nodes[draw.landmarks] = landmarks
        return with_measured(draw, distances_ms(gnp.place_many(landmarks, draw.sites, draw.seed), nodes))

    return estimate


def by_vivaldi(dimensions: int) -> Estimator:
    """Vivaldi with heights on the very same measurements: the landmarks are everybody's neighbours."""

    def estimate(draw: Draw) -> Matrix:
        measured = np.vstack([draw.nodes, draw.sites])
        neighbours = np.broadcast_to(draw.landmarks, measured.shape)
        placed = vivaldi.embed(measured, neighbours, dimensions, draw.seed)
        return with_measured(draw, vivaldi.distances_ms(placed[_NODES:], placed[:_NODES]))

    return estimate


def through_landmarks(draw: Draw) -> Matrix:
    """No coordinates: the shortest sum of both delays to a landmark (the idea of IDMaps, Francis et al. 1999)."""
    ways = [site[:, None] + node for site, node in zip(draw.sites.T, draw.nodes.T, strict=True)]
    return with_measured(draw, np.nanmin(ways, axis=0))


def at_random(draw: Draw) -> Matrix:
    """No estimate at all."""
    return np.random.default_rng(draw.seed).random(draw.truth.shape)


def with_measured(draw: Draw, estimated: Matrix) -> Matrix:
    """Estimates, but what the landmarks measured to the sites as it was measured."""
    estimated[:, draw.landmarks] = draw.sites
    return estimated


def accuracy(estimate: Matrix, truth: Matrix, unmeasured: NDArray[np.bool_]) -> dict[str, float]:
    """How good estimated delays are.

    Args:
        estimate: (sites, nodes) milliseconds.
        truth: the same, as the matrix has it.
        unmeasured: the same, true where the pair was estimated.
    """
    error = np.abs(estimate - truth)[unmeasured] / truth[unmeasured]
    wrong = (error > 0.2).sum()
    return {
        "right_within_20": float((error <= 0.2).mean()),
        "right_within_30": float((error <= 0.3).mean()),
        "right_within_50": float((error <= 0.5).mean()),
        "right_within_20_measured_too": float(1.0 - wrong / truth.size),
        "relative_error_median": float(np.median(error)),
    }


def choice(estimate: Matrix, truth: Matrix) -> dict[str, float]:
    """How good the nodes are that estimated delays choose; arguments as of `accuracy`."""
    site = np.arange(len(truth))
    ranked = np.argsort(estimate, axis=1, kind="stable")
    closest = truth.argmin(1)
    one, other = np.triu_indices(truth.shape[1], 1)
    ordered = (estimate[:, one] < estimate[:, other]) == (truth[:, one] < truth[:, other])
    best_ms, first_ms = truth[site, closest], truth[site, ranked[:, 0]]
    return {
        "right_order": float(ordered.mean()),
        "top1_hit": float((ranked[:, 0] == closest).mean()),
        "top3_hit": float((ranked[:, :3] == closest[:, None]).any(1).mean()),
        "stretch_median": float(np.median(first_ms / best_ms)),
        "stretch_p90": float(np.percentile(first_ms / best_ms, 90)),
        "top1_ms": float(first_ms.mean()),
        "top3_ms": float(truth[site[:, None], ranked[:, :3]].mean()),
        "closest_ms": float(best_ms.mean()),
    }


def _scores(draws: Iterable[Draw], estimator: Estimator) -> Scores:
    each = []
    for draw in draws:
        unmeasured = np.ones(draw.truth.shape, dtype=bool)
        unmeasured[:, draw.landmarks] = False
        estimate = estimator(draw)
        each.append(accuracy(estimate, draw.truth, unmeasured) | choice(estimate, draw.truth))
    return _spread(each)


def _spread(each: Sequence[Mapping[str, float]]) -> Scores:
    scores: Scores = {}
    for name in each[0]:
        low, middle, high = np.percentile([one[name] for one in each], [10, 50, 90])
        scores[name] = {
            "median": round(float(middle), 4),
            "p10": round(float(low), 4),
            "p90": round(float(high), 4),
        }
    return scores


def _neighbours(draws: Iterable[Draw], dimensions: int) -> Scores:
    """Vivaldi as it is meant: as many measurements, but each host's to nodes drawn for it."""
    each = []
    for draw in draws:
        chance = np.random.default_rng(draw.seed)
        all_ms = np.vstack([draw.between, draw.truth])
        order = chance.random(all_ms.shape)
        np.fill_diagonal(order, 2.0)  # nobody is its own neighbour
        neighbours = np.argsort(order, axis=1)[:, :_LANDMARKS]
        measured = np.take_along_axis(all_ms, neighbours, 1)
        placed = vivaldi.embed(measured, neighbours, dimensions, draw.seed)
        estimated = vivaldi.distances_ms(placed[_NODES:], placed[:_NODES])
        unmeasured = np.ones(draw.truth.shape, dtype=bool)
        np.put_along_axis(unmeasured, neighbours[_NODES:], False, 1)
        estimate = np.where(unmeasured, estimated, draw.truth)
        each.append(accuracy(estimate, draw.truth, unmeasured) | choice(estimate, draw.truth))
    return _spread(each)


def _own_pairs(draws: Iterable[Draw], share: float | None) -> Scores:
    """No landmarks: each pair of a site and a node measured by chance; None: 9 nodes drawn for each site."""
    each = []
    for draw in draws:
        order = np.random.default_rng(draw.seed).random(draw.truth.shape)
        measured = order < share if share is not None else order.argsort(1).argsort(1) < _LANDMARKS
        placed = embed(np.where(measured, draw.truth, np.nan), seed=draw.seed).distances_ms()
        # A site without a place: as far as the middle one.
        estimate = np.where(measured, draw.truth, np.where(np.isnan(placed), np.nanmedian(placed), placed))
        each.append(accuracy(estimate, draw.truth, ~measured) | choice(estimate, draw.truth))
    return _spread(each)


def _noise(draws: Sequence[Draw]) -> dict[str, Any]:
    """What five disturbed measurements in place of each delay do, by how one delay is made of them."""
    makers: dict[str, Callable[[Sequence[float]], float]] = {
        "one_measurement": lambda values: values[0],
        "mean_of_5": fmean,
        "median_of_5": median,
        "mode_of_buckets_half_deviation": without_noise,
        "mode_of_buckets_one_deviation": lambda values: without_noise(values, 1.0),
    }
    figures: dict[str, Any] = {"sigma": _SIGMA, "outliers": _OUTLIERS, "outlier_factor": "2 to 10"}
    for name, maker in makers.items():
        figures[name] = _scores([_disturbed(draw, maker) for draw in draws], by_gnp(_USUAL))
    return figures


def _disturbed(draw: Draw, maker: Callable[[Sequence[float]], float]) -> Draw:
    chance = np.random.default_rng(1000 + draw.seed)

    def measured(delays_ms: Matrix) -> Matrix:
        shape = (*delays_ms.shape, _REPEATS)
        factor = np.exp(_SIGMA * chance.standard_normal(shape))
        factor *= np.where(chance.random(shape) < _OUTLIERS, chance.uniform(2.0, 10.0, shape), 1.0)
        values = (np.where(np.isnan(delays_ms), 1.0, delays_ms)[..., None] * factor).reshape(-1, _REPEATS)
        made = np.array([maker(one) for one in values.tolist()]).reshape(delays_ms.shape)
        return np.where(np.isnan(delays_ms), np.nan, made)

    return Draw(
        seed=draw.seed,
        between=draw.between,
        truth=draw.truth,
        landmarks=draw.landmarks,
        nodes=measured(draw.nodes),
        sites=measured(draw.sites),
    )


def _ratios(figures: Mapping[str, Any]) -> dict[str, float]:
    methods = {
        "gnp": figures["methods_9_landmarks"][f"gnp_{_USUAL}"],
        "vivaldi": figures["methods_9_landmarks"][f"vivaldi_height_{_USUAL}"],
        "own_pairs": figures["methods_9_landmarks"]["own_pairs_30_percent"],
        "random": figures["methods_9_landmarks"]["random"],
    }
    ratios = {
        f"{name}_{score}": scores[score]["median"]
        for name, scores in methods.items()
        for score in ("right_within_20", "relative_error_median", "top1_hit", "top3_hit", "stretch_median")
        if score in scores
    }
    noise = figures[f"noise_9_landmarks_{_USUAL}_dimensions"]
    for name in ("mean_of_5", "mode_of_buckets_half_deviation"):
        ratios[f"noise_{name}_right_within_20"] = noise[name]["right_within_20"]["median"]
    return ratios


def _draw_plots(
    folder: Path, by_dimension: Mapping[int, Scores], by_landmarks: Mapping[tuple[int, int], Scores]
) -> None:
    shown = {"right_within_20": "right (within 20 %)", "top1_hit": "Top-1 hit", "top3_hit": "Top-3 hit"}
    printed = PAPER["by_dimension_9_landmarks"]
    lines(
        folder / "proximity_dimensions.png",
        "Accuracy of coordinates by dimension, 9 landmarks",
        "dimensions",
        "share (median of 20 draws)",
        {
            **{
                label: [(d, scores[score]["median"]) for d, scores in by_dimension.items()]
                for score, label in shown.items()
            },
            "paper, 30 % of noise removed": list(printed["noise_removed_30"].items()),
            "paper, 20 % of noise removed": list(printed["noise_removed_20"].items()),
        },
        "30 nodes and 203 sites of the PlanetLab matrix; the paper measured other hosts and defines no accuracy.",
    )
    lines(
        folder / "proximity_landmarks.png",
        "Accuracy of coordinates by landmarks",
        "landmarks",
        "share (median of 20 draws)",
        {
            **{
                f"{label}, {dimensions} dimensions": [
                    (count, scores[score]["median"])
                    for (count, d), scores in by_landmarks.items()
                    if d == dimensions
                ]
                for score, label in shown.items()
                for dimensions in (4, 6)
            },
            "paper, 4 dimensions, 30 % of noise removed": [(5, 0.421), (7, 0.506), (9, 0.740)],
            "paper, 4 dimensions, 20 % of noise removed": [(5, 0.077), (7, 0.300), (9, 0.603)],
        },
        "30 nodes and 203 sites of the PlanetLab matrix; the paper measured other hosts and defines no accuracy.",
    )
