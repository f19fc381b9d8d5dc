"""Run-time curves learned from recorded runs (2019 balance paper, run-time model).

The network is the paper's (`network`: six inputs, 13 tanh neurons, min-max scaling). Ours is what it is fed with
and how it is trained: scaling is of logarithms, since a run time is a product of the node's speed and how much
it gets, and its noise a factor (so what is predicted is the median); and steps are Levenberg-Marquardt's, with a
ridge chosen by cross-validation over whole nodes, instead of the published gradient descent.

Error: a fifth of the runs, drawn by the seed, is left out of everything; a network trained on the rest predicts
them. The network that is then used is trained alike on all runs, with the same ridge.

Curves: an output of the network need not rise with n. A node's curve is the network at up to 30 values of n
from 1 to the most URLs trained on, projected to the nearest nondecreasing sequence (isotonic regression, least
squares): nondecreasing by construction, as the exact solver needs it. Beyond the most URLs trained on, the
slope of its upper half goes on.

Too few: with fewer than `LEAST_RUNS` runs nothing is trained. 105 weights pass through 105 points whatever
the data; twice as many runs are the fewest of which a fifth can be left out twice and the rest still be more
than the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from splitter.errors import InputError

from tasks.scheduling.balance.curves import Curve, Floats
from tasks.scheduling.balance.network import WEIGHTS, Scaling, Weights, drawn, fit
from tasks.scheduling.balance.parameters import PARAMETERS, NodeParameters, Sample

LEAST_RUNS = 2 * WEIGHTS
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)
_STARTS = 2
_LEFT_OUT = 0.2
_FOLDS = 5
_KNOTS = 30


class TrainingError(InputError):
    """Recorded runs that nothing can be learned from."""


class TrainingEnded(Exception):
    """Training was not to go on."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How well runs were predicted that the network had not seen.

    Attributes:
        runs: how many.
        median_relative_error: |predicted - measured| / measured, the median.
        r_squared: 1 - squared error / squared deviation from the mean, of the logarithms; 1 is perfect, 0 no
            better than one number for all.
    """

    runs: int
    median_relative_error: float
    r_squared: float


@dataclass(frozen=True, slots=True)
class Features:
    """Inputs of the network: logarithms, scaled (1).

    Attributes:
        usual: value for an unknown parameter: the median of the known ones, shape (parameters,).
        inputs: scaling of parameters and n.
        outputs: scaling of the seconds.
    """

    usual: Floats
    inputs: Scaling
    outputs: Scaling

    @staticmethod
    def fit(samples: Sequence[Sample]) -> Features:
        """Return the features of the samples that a network is trained on."""
        rows = np.array([sample.node.values() for sample in samples], dtype=np.float64)
        usual = np.array([np.median(known) if (known := row[~np.isnan(row)]).size else 1.0 for row in rows.T])
        urls = np.array([sample.urls for sample in samples], dtype=np.float64)
        seconds = np.array([[sample.seconds] for sample in samples], dtype=np.float64)
        return Features(usual, Scaling.fit(_logs(rows, urls, usual)), Scaling.fit(np.log(seconds)))

    def inputs_of(self, nodes: Sequence[NodeParameters], urls: Floats) -> Floats:
        """X of runs, shape (runs, INPUTS)."""
        rows = np.array([node.values() for node in nodes], dtype=np.float64)
        return self.inputs.scale(_logs(rows, urls, self.usual))

    def outputs_of(self, seconds: Floats) -> Floats:
        """Y of runs, shape (runs,)."""
        return self.outputs.scale(np.log(seconds)[:, None])[:, 0]

    def seconds_of(self, outputs: Floats) -> Floats:
        """Seconds of outputs O, shape (runs,)."""
        return np.asarray(np.exp(self.outputs.back(outputs[:, None])[:, 0]), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A trained network.

    Attributes:
        features: inputs of the network.
        weights: of the network.
        ridge: penalty it was trained with.
        runs: how many it was trained on.
        most_urls: the most URLs of a run it was trained on.
        held_out: its error on runs not seen.
    """

    features: Features
    weights: Weights
    ridge: float
    runs: int
    most_urls: int
    held_out: HeldOut

    def curve(self, node: NodeParameters) -> Curve:
        """Predicted run time of a node over n; nothing for n = 0."""
        from scipy.optimize import isotonic_regression

        most = self.most_urls
        n = np.unique(np.round(np.geomspace(1, most, _KNOTS)))
        outputs = self.weights.output(self.features.inputs_of([node] * n.size, n))
        seconds = isotonic_regression(self.features.seconds_of(outputs)).x
        half = np.interp(most / 2, n, seconds)
        # A flat end would promise that all the rest costs nothing.
        slope = (seconds[-1] - half) / (most / 2) or seconds[-1] / most
        points = zip(n.tolist(), seconds.tolist(), strict=True)
        return Curve(((0.0, 0.0), *points), float(slope))

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON types; `read_json` makes the same network of them."""
        scalings = {"inputs": self.features.inputs, "outputs": self.features.outputs}
        return {
            "usual": self.features.usual.tolist(),
            **{name: [scale.low.tolist(), scale.high.tolist()] for name, scale in scalings.items()},
            "weights": self.weights.flat().tolist(),
            "ridge": self.ridge,
            "runs": self.runs,
            "most_urls": self.most_urls,
            "held_out": asdict(self.held_out),
        }

    @classmethod
    def read_json(cls, stored: Mapping[str, Any]) -> Self:
        """The reverse of `as_json`."""
        inputs, outputs = (Scaling(*map(np.array, stored[name])) for name in ("inputs", "outputs"))
        return cls(
            features=Features(np.array(stored["usual"]), inputs, outputs),
            weights=Weights.unflatten(np.array(stored["weights"])),
            ridge=stored["ridge"],
            runs=stored["runs"],
            most_urls=stored["most_urls"],
            held_out=HeldOut(**stored["held_out"]),
        )


def train(samples: Sequence[Sample], seed: int, go_on: Callable[[], bool] = lambda: True) -> Trained:
    """Learn run times.

    Args:
        samples: recorded runs.
        seed: for the folds and the initial weights. The same seed gives the same network.
        go_on: asked before each of the 29 fits.

    Raises:
        TrainingEnded: `go_on` returned false.
        TrainingError: a number of a sample is not above 0, or there are too few samples.
    """
    _check(samples)
    if len(samples) < LEAST_RUNS:
        raise TrainingError(
            "{n} recorded runs are too few to learn from: it takes {least}; give more, or the nodes' curves",
            n=len(samples),
            least=LEAST_RUNS,
        )
    order = [samples[place] for place in np.random.default_rng(seed).permutation(len(samples))]
    cut = math.ceil(_LEFT_OUT * len(order))
    unseen, seen = order[:cut], order[cut:]
    ridge = _best_ridge(seen, seed, go_on)
    features, weights = _fit(seen, ridge, seed, go_on)
    held_out = _held_out(features, weights, unseen)
    features, weights = _fit(samples, ridge, seed, go_on)
    return Trained(
        features=features,
        weights=weights,
        ridge=ridge,
        runs=len(samples),
        most_urls=max(sample.urls for sample in samples),
        held_out=held_out,
    )


def _logs(rows: Floats, urls: Floats, usual: Floats) -> Floats:
    known = np.where(np.isnan(rows), usual, rows)
    return np.asarray(np.log(np.column_stack((known, urls))), dtype=np.float64)


def _fit(
    samples: Sequence[Sample], ridge: float, seed: int, go_on: Callable[[], bool], starts: int = _STARTS
) -> tuple[Features, Weights]:
    """Return the features, and the weights of the best of several starts."""
    features = Features.fit(samples)
    inputs, outputs = _inputs(features, samples), features.outputs_of(_seconds(samples))
    rng = np.random.default_rng(seed)
    begun = [drawn(rng, float(outputs.mean())) for _ in range(starts)]
    found = []
    for start in begun:
        if not go_on():
            raise TrainingEnded
        found.append(fit(start, inputs, outputs, ridge))
    return features, min(found, key=lambda pair: pair[1])[0]


def _best_ridge(samples: Sequence[Sample], seed: int, go_on: Callable[[], bool]) -> float:
    """The ridge with the least squared error of the logarithms, by cross-validation."""
    folds = _folds(samples)

    def squared_error(ridge: float) -> float:
        total = 0.0
        for fold in range(_FOLDS):
            kept = [sample for sample, own in zip(samples, folds, strict=True) if own != fold]
            left_out = [sample for sample, own in zip(samples, folds, strict=True) if own == fold]
            features, weights = _fit(kept, ridge, seed, go_on, starts=1)
            wrong = _predict_log(features, weights, left_out) - np.log(_seconds(left_out))
            total += float(wrong @ wrong)
        return total

    return min(RIDGES, key=squared_error)


def _folds(samples: Sequence[Sample]) -> list[int]:
    """Return the fold of each sample: by whole nodes, to predict unseen nodes; by run if nodes are few."""
    nodes = {node: place for place, node in enumerate(dict.fromkeys(sample.node for sample in samples))}
    if len(nodes) < _FOLDS:
        return [place % _FOLDS for place in range(len(samples))]
    return [nodes[sample.node] % _FOLDS for sample in samples]


def _held_out(features: Features, weights: Weights, unseen: Sequence[Sample]) -> HeldOut:
    predicted, measured = _predict_log(features, weights, unseen), np.log(_seconds(unseen))
    spread = float(np.sum((measured - measured.mean()) ** 2))
    missed = float(np.sum((predicted - measured) ** 2))
    return HeldOut(
        len(unseen),
        float(np.median(np.abs(np.expm1(predicted - measured)))),
        1.0 - missed / spread if spread > 0 else 0.0,
    )


def _predict_log(features: Features, weights: Weights, samples: Sequence[Sample]) -> Floats:
    return np.log(features.seconds_of(weights.output(_inputs(features, samples))))


def _inputs(features: Features, samples: Sequence[Sample]) -> Floats:
    urls = np.array([sample.urls for sample in samples], dtype=np.float64)
    return features.inputs_of([sample.node for sample in samples], urls)


def _seconds(samples: Sequence[Sample]) -> Floats:
    return np.array([sample.seconds for sample in samples], dtype=np.float64)


def _check(samples: Sequence[Sample]) -> None:
    for place, sample in enumerate(samples):
        numbers = dict(zip(PARAMETERS, sample.node.values(), strict=True))
        for name, value in {**numbers, "urls": sample.urls, "seconds": sample.seconds}.items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise TrainingError(
                    "run {place}: {name} is {value}; give a finite number above 0",
                    place=place,
                    name=name,
                    value=value,
                )
