"""The network of the run-time model, with one hidden layer (2019 balance paper, equations 1-4), and its training.

Training is by damped Gauss-Newton steps (Levenberg 1944, Marquardt 1963) on squared error and a ridge. Minimised over
all weights t: sum (Y - O)^2 + ridge * |t without b|^2. With J the derivatives of O by t and r = O - Y, a step solves
(J'J + ridge + damping) step = J'r + ridge t; damping falls fivefold after a step that helped and rises fourfold until
one does. Some twenty steps do what the published descent (equations 5-6, `research.papers.learned_curves`) does not in
hundreds of rounds; the same derivatives are used, with tanh' = 1 - H^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.scheduling.balance.curves import Floats

INPUTS = 6
"""Five parameters of the node, and n."""
HIDDEN = 2 * INPUTS + 1
"""13 neurons. The paper has 6 in one place and 13 in another; 2 x 6 + 1 fits the theorem it cites."""

WEIGHTS = HIDDEN * (INPUTS + 2) + 1
"""How many weights there are: 105."""

_STEPS = 150
_LITTLE = 1e-5
"""A step that lowers the sum by less than this share is the last."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Min-max scaling (1): y = (x - low) / (high - low); a quantity that never varied becomes 0.

    Attributes:
        low, high: of each column, shape (columns,).
    """

    low: Floats
    high: Floats

    @staticmethod
    def fit(values: Floats) -> Scaling:
        """Return the scaling by the range of each column of `values`, shape (rows, columns)."""
        return Scaling(values.min(0), values.max(0))

    def scale(self, values: Floats) -> Floats:
        """Scale `values` to [0, 1] by the range that the scaling was made from; outside it they exceed [0, 1]."""
        span = self.high - self.low
        return np.asarray((values - self.low) / np.where(span > 0, span, 1.0), dtype=np.float64)

    def back(self, scaled: Floats) -> Floats:
        """The original values of `scaled`."""
        return np.asarray(self.low + scaled * (self.high - self.low), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the network.

    Attributes:
        inward: w_ij, shape (INPUTS, hidden).
        inward_bias: a_j, shape (hidden,).
        outward: w_j, shape (hidden,).
        outward_bias: b.
    """

    inward: Floats
    inward_bias: Floats
    outward: Floats
    outward_bias: float

    def hidden(self, inputs: Floats) -> Floats:
        """H_j = tanh(sum_i w_ij X_i + a_j) (2): shape (rows, hidden) for inputs of shape (rows, INPUTS)."""
        return np.asarray(np.tanh(inputs @ self.inward + self.inward_bias), dtype=np.float64)

    def output(self, inputs: Floats) -> Floats:
        """O = sum_j H_j w_j + b (3): shape (rows,)."""
        return np.asarray(self.hidden(inputs) @ self.outward + self.outward_bias, dtype=np.float64)

    def flat(self) -> Floats:
        """All weights in one row: w_ij by rows, a_j, w_j, b."""
        return np.concatenate(
            (self.inward.ravel(), self.inward_bias, self.outward, np.array([self.outward_bias]))
        )

    @staticmethod
    def unflatten(flat: Floats) -> Weights:
        """The reverse of `flat`."""
        hidden = (flat.size - 1) // (INPUTS + 2)
        cut = INPUTS * hidden
        return Weights(
            flat[:cut].reshape(INPUTS, hidden),
            flat[cut : cut + hidden],
            flat[cut + hidden : -1],
            float(flat[-1]),
        )


def drawn(rng: np.random.Generator, mean_output: float) -> Weights:
    """Weights to begin with: normal, small enough that tanh bends and does not saturate."""
    return Weights(
        rng.normal(0.0, 0.7, (INPUTS, HIDDEN)),
        rng.normal(0.0, 0.7, HIDDEN),
        rng.normal(0.0, HIDDEN**-0.5, HIDDEN),
        mean_output,
    )


def fit(start: Weights, inputs: Floats, outputs: Floats, ridge: float) -> tuple[Weights, float]:
    """The nearest minimum.

    Args:
        start: weights to begin with.
        inputs: X, scaled, shape (runs, INPUTS).
        outputs: Y, scaled, shape (runs,).
        ridge: penalty on squared weights (but b), above 0.

    Returns:
        The weights, and what was minimised there.
    """
    from scipy.optimize import least_squares

    pull = np.full(start.flat().size, np.sqrt(ridge))
    pull[-1] = 0.0

    def residuals(flat: Floats) -> Floats:
        return np.concatenate((Weights.unflatten(flat).output(inputs) - outputs, pull * flat))

    def slopes(flat: Floats) -> Floats:
        return np.concatenate((_derivatives(Weights.unflatten(flat), inputs), np.diag(pull)))

    found = least_squares(residuals, start.flat(), slopes, method="lm", ftol=_LITTLE, max_nfev=_STEPS)
    return Weights.unflatten(found.x), 2.0 * float(found.cost)


def _derivatives(weights: Weights, inputs: Floats) -> Floats:
    """Return the derivatives of the outputs by the weights, in the order of `Weights.flat`: shape (runs, weights)."""
    hidden = weights.hidden(inputs)
    inward = (1.0 - hidden**2) * weights.outward
    by_inward = (inputs[:, :, None] * inward[:, None, :]).reshape(len(inputs), -1)
    return np.concatenate((by_inward, inward, hidden, np.ones((len(inputs), 1))), axis=1)
