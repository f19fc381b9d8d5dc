"""Training as published: gradient descent, one run at a time (2019 balance paper, equations 4-6).

    (5) w_ij += eta H_j (1 - H_j) X_i w_j (Y - O)          (6) w_j += eta H_j (Y - O)

(5) as printed has the derivative of the logistic function, H (1 - H). The activation is tanh, whose derivative
is 1 - H^2; with H in (-1, 0), half of its range, the printed factor has the wrong sign and the weights climb. 1
- H_j^2 is used here. For the biases the paper prints nothing: they are weights of an input that is always 1.
"""

from __future__ import annotations

import numpy as np

from tasks.scheduling.balance.curves import Floats
from tasks.scheduling.balance.layer import Weights


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
