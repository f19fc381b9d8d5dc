"""Training by damped Gauss-Newton steps (Levenberg 1944, Marquardt 1963) on squared error and a ridge.

Minimised over all weights t: sum (Y - O)^2 + ridge * |t without b|^2. With J the derivatives of O by t and r =
O - Y, a step solves (J'J + ridge + damping) step = J'r + ridge t; damping falls fivefold after a step that
helped and rises fourfold until one does. Some twenty steps do what the published descent (equations 5-6) does
not in hundreds of rounds; the same derivatives are used, with tanh' = 1 - H^2.
"""

from __future__ import annotations

import numpy as np

from tasks.scheduling.balance.curves import Floats
from tasks.scheduling.balance.layer import Weights

_STEPS = 60
_TRIES = 10
_LITTLE = 1e-5
"""A step that lowers the sum by less than this share is the last."""


def fitted(start: Weights, inputs: Floats, outputs: Floats, ridge: float) -> tuple[Weights, float]:
    """The nearest minimum.

    Args:
        start: weights to begin with.
        inputs: X, scaled, shape (runs, INPUTS).
        outputs: Y, scaled, shape (runs,).
        ridge: penalty on squared weights (but b), above 0.

    Returns:
        The weights, and what was minimised there.
    """
    flat, damping = start.flat(), 0.1
    penalty = np.full(flat.size, ridge)
    penalty[-1] = 0.0
    residuals = start.output(inputs) - outputs
    now = _sum(flat, residuals, penalty)
    for _ in range(_STEPS):
        slopes = _derivatives(Weights.of_flat(flat), inputs)
        bend = slopes.T @ slopes + np.diag(penalty)
        down = slopes.T @ residuals + penalty * flat
        before = now
        for _ in range(_TRIES):
            tried = flat - np.linalg.solve(bend + damping * np.eye(flat.size), down)
            missed = Weights.of_flat(tried).output(inputs) - outputs
            then = _sum(tried, missed, penalty)
            if then < now:
                flat, residuals, now = tried, missed, then
                damping /= 5.0
                break
            damping *= 4.0
        if before - now <= _LITTLE * before:
            break
    return Weights.of_flat(flat), now


def _sum(flat: Floats, residuals: Floats, penalty: Floats) -> float:
    return float(residuals @ residuals + penalty @ flat**2)


def _derivatives(weights: Weights, inputs: Floats) -> Floats:
    """Of the outputs by the weights, in the order of `Weights.flat`: shape (runs, weights)."""
    hidden = weights.hidden(inputs)
    inward = (1.0 - hidden**2) * weights.outward
    by_inward = (inputs[:, :, None] * inward[:, None, :]).reshape(len(inputs), -1)
    return np.concatenate((by_inward, inward, hidden, np.ones((len(inputs), 1))), axis=1)
