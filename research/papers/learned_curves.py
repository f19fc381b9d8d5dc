"""Curves learned from noisy runs, tried on nodes that were in none of them.

The generator. Nodes are drawn from the ranges the 2019 balance paper names: 1, 2 or 4 cores; 2.4 or 2.6 GHz; 0.5 to
3.0 GB; 2 to 30 Mb/s of bandwidth; 2 or 18 Mb/s of disk. A run of n URLs, n drawn from 1 to 150, takes

    seconds = (setup + n * per_url * (1 + n / (1000 * memory_gb))) * noise
    setup   = 4 + 2 / memory_gb
    per_url = 0.12 * (2.5 / cpu_ghz) * (1 + 0.1 * (cpu_cores - 1)) + 1.6 / net_mbps + 0.6 / disk_mbps

A URL is 1.6 Mb to fetch and 0.6 Mb to write; more cores lengthen a run, as in the paper. noise is lognormal
with median 1 and the standard deviation `NOISE` of its logarithm. The formula and its numbers are ours: the paper
prints none.

A draw: nodes to learn from with so many runs each, one training; then five nodes more, 500 URLs, divided by the exact
solver on the learned curves and on the true ones. What counts is the makespan of the former by the true curves, over
the latter's.

Beside ours, the published training: gradient descent, one run at a time (2019 balance paper, equations 4-6).

    (5) w_ij += eta H_j (1 - H_j) X_i w_j (Y - O)          (6) w_j += eta H_j (Y - O)

(5) as printed has the derivative of the logistic function, H (1 - H). The activation is tanh, whose derivative is
1 - H^2; with H in (-1, 0), half of its range, the printed factor has the wrong sign and the weights climb. 1 - H_j^2 is
used here. For the biases the paper prints nothing: they are weights of an input that is always 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.scheduling.balance.curves import Counts, Curve, Curves, Floats, evaluate, even, piecewise
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.learned import train
from tasks.scheduling.balance.network import Scaling, Weights, drawn
from tasks.scheduling.balance.parameters import NodeParameters, Sample

NOISE = 0.2
EPOCHS = 100
"""How often the published training goes through the runs; the paper does not say."""
NEW_NODES, TOTAL = 5, 500
_MOST_URLS = 150

Learner = Callable[[Sequence[Sample], int], Callable[[NodeParameters], Curve]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one draw gave.

    Attributes:
        learned, even: makespan by the true curves over the exact optimum's: of the split on learned curves, and of
            the even one.
        curve_error: median over the new nodes and n of |learned - true| / true.
    """

    learned: float
    even: float
    curve_error: float


def true_seconds(node: NodeParameters, urls: Floats) -> Floats:
    """Run time without noise."""
    cores, ghz, memory, net, disk = (value or 1.0 for value in node.values())
    per_url = 0.12 * (2.5 / ghz) * (1 + 0.1 * (cores - 1)) + 1.6 / net + 0.6 / disk
    return np.asarray(4 + 2 / memory + urls * per_url * (1 + urls / (1000 * memory)), dtype=np.float64)


def some_nodes(rng: np.random.Generator, count: int) -> list[NodeParameters]:
    """Nodes from the paper's ranges."""
    return [
        NodeParameters(
            float(rng.choice((1, 2, 4))),
            float(rng.choice((2.4, 2.6))),
            float(rng.uniform(0.5, 3.0)),
            float(rng.uniform(2.0, 30.0)),
            float(rng.choice((2, 18))),
        )
        for _ in range(count)
    ]


def some_runs(
    rng: np.random.Generator, nodes: Sequence[NodeParameters], each: int, noise: float
) -> list[Sample]:
    """Noisy runs on these nodes."""
    runs = []
    for node in nodes:
        urls = rng.integers(1, _MOST_URLS + 1, each)
        seconds = true_seconds(node, urls.astype(np.float64)) * rng.lognormal(0.0, noise, each)
        runs += [Sample(node, int(n), float(s)) for n, s in zip(urls, seconds, strict=True)]
    return runs


def draw(seed: int, nodes: int, each: int, noise: float, learner: Learner) -> Drawn:
    """Learn, divide, and judge."""
    rng = np.random.default_rng(seed)
    runs = some_runs(rng, some_nodes(rng, nodes), each, noise)
    curve_of = learner(runs, seed)
    new = some_nodes(rng, NEW_NODES)
    learned = Curves([curve_of(node) for node in new])
    true = Curves([_true_curve(node) for node in new])
    best = _makespan(true, exact(true, TOTAL))
    grid = np.tile(np.arange(1.0, _MOST_URLS + 1)[:, None], (1, NEW_NODES))
    return Drawn(
        _makespan(true, exact(learned, TOTAL)) / best,
        _makespan(true, even(NEW_NODES, TOTAL)) / best,
        float(np.median(np.abs(learned.seconds(grid) / true.seconds(grid) - 1))),
    )


def ours(runs: Sequence[Sample], seed: int) -> Callable[[NodeParameters], Curve]:
    """What reviewloop does."""
    return train(runs, seed).curve


def published(runs: Sequence[Sample], seed: int, epochs: int = EPOCHS) -> Callable[[NodeParameters], Curve]:
    """Train the published network: plain quantities scaled, gradient descent run by run (epochs and eta 0.05 are ours).

    Its outputs are lifted to what a curve has to be: above 0 and not falling.
    """
    plain = np.array([[*(v or 1.0 for v in run.node.values()), run.urls] for run in runs], dtype=np.float64)
    seconds = np.array([[run.seconds] for run in runs])
    inputs, outputs = Scaling.fit(plain), Scaling.fit(seconds)
    rng = np.random.default_rng(seed)
    goals = outputs.scale(seconds)[:, 0]
    begin = drawn(rng, float(goals.mean()))
    weights: Weights = descend(begin, inputs.scale(plain), goals, rng, epochs=epochs, rate=0.05)

    def curve_of(node: NodeParameters) -> Curve:
        n = np.arange(1.0, _MOST_URLS + 1)
        rows = np.column_stack((np.tile([v or 1.0 for v in node.values()], (n.size, 1)), n))
        predicted = outputs.back(weights.output(inputs.scale(rows))[:, None])[:, 0]
        rising = np.maximum.accumulate(np.maximum(predicted, 0.01)) + 1e-6 * n
        slope = (rising[-1] - rising[n.size // 2]) / (n.size / 2)
        return Curve(((0.0, 0.0), *zip(n.tolist(), rising.tolist(), strict=True)), float(slope))

    return curve_of


def descend(
    start: Weights, inputs: Floats, outputs: Floats, rng: np.random.Generator, epochs: int, rate: float
) -> Weights:
    """Weights after going through the runs `epochs` times, in a new order each time.

    Args:
        start: weights to begin with; left as they are.
        inputs: X, scaled, shape (runs, INPUTS).
        outputs: Y, scaled, shape (runs,).
        rng: draws the orders.
        epochs: how often.
        rate: eta.
    """
    inward, inward_bias, outward = start.inward.copy(), start.inward_bias.copy(), start.outward.copy()
    bias = start.outward_bias
    for _ in range(epochs):
        for run in rng.permutation(len(outputs)):
            x = inputs[run]
            hidden = np.tanh(x @ inward + inward_bias)
            step = rate * float(outputs[run] - hidden @ outward - bias)
            back = step * (1.0 - hidden**2) * outward
            inward += np.outer(x, back)
            inward_bias += back
            outward += step * hidden
            bias += step
    return Weights(inward, inward_bias, outward, bias)


def _true_curve(node: NodeParameters) -> Curve:
    n = np.arange(0.0, TOTAL + 1)
    return piecewise([(0.0, 0.0), *zip(n[1:].tolist(), true_seconds(node, n)[1:].tolist(), strict=True)])


def _makespan(curves: Curves, allocation: Counts) -> float:
    return evaluate(curves, allocation).makespan_s
