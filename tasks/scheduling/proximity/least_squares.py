"""Many small nonlinear least-squares problems of the same shape, solved side by side.

Levenberg-Marquardt with the diagonal scaling of Marquardt (SIAM Journal on Applied Mathematics 11, 1963): each problem
has its own damping, one step of all of them is a few array operations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
"""Delays or coordinates. The function that takes them documents the shape."""

Residuals = Callable[[Matrix, NDArray[np.intp]], tuple[Matrix, Matrix]]
"""Takes parameters (b, p) of the problems with these numbers (b,). Returns residuals (b, m), Jacobians (b, m, p)."""

MOST_STEPS = 100
"""Steps after which a problem is left as it is."""
_SMALL = 1e-6
_DAMPING = (1e-2, 0.3, 4.0)  # at the start, after a step down, after a step that was none
# Rotations of all coordinates leave the sum as it is: without damping they make the equations singular.
_LEAST_DAMPING = 1e-7
_MOST_DAMPING = 1e8


def least_squares(residuals: Residuals, start: Matrix, most_steps: int = MOST_STEPS) -> tuple[Matrix, Matrix]:
    """A local minimum of the sum of squared residuals of each problem.

    A problem is done once a step gains less than a millionth of its sum, at the latest after `most_steps` steps.

    Args:
        residuals: of some of the problems, with their derivatives.
        start: (n, p) parameters to start from.

    Returns:
        Parameters (n, p) and sums of squares (n,), never above those of the start.
    """
    first, shrink, grow = _DAMPING
    found = start.copy()
    open_ = np.arange(len(start))
    left, slope = residuals(found, open_)
    total = (left * left).sum(1)
    sums = total.copy()
    damping = np.full(len(start), first)
    for _ in range(most_steps):
        trial = found[open_] - _step(left, slope, damping)
        new_left, new_slope = residuals(trial, open_)
        new_total = (new_left * new_left).sum(1)
        better = new_total < total
        found[open_[better]] = trial[better]
        sums[open_[better]] = new_total[better]
        damping = np.maximum(damping * np.where(better, shrink, grow), _LEAST_DAMPING)
        stuck = damping > _MOST_DAMPING
        done = stuck | (better & (total - new_total <= _SMALL * total)) | (total < 1e-18)
        total[better], left[better], slope[better] = new_total[better], new_left[better], new_slope[better]
        if done.any():
            go_on = ~done
            open_, damping, total = open_[go_on], damping[go_on], total[go_on]
            left, slope = left[go_on], slope[go_on]
            if not len(open_):
                break
    return found, sums


def _step(left: Matrix, slope: Matrix, damping: Matrix) -> Matrix:
    """Damped Gauss-Newton steps (n, p) from residuals (n, m) and Jacobians (n, m, p)."""
    turned = slope.transpose(0, 2, 1)
    normal = turned @ slope
    parameter = np.arange(normal.shape[1])
    scale = normal[:, parameter, parameter]
    # Unknowns that no residual depends on must stay solvable.
    normal[:, parameter, parameter] += damping[:, None] * (scale + 1e-9 * scale.max(1, keepdims=True) + 1e-30)
    return np.asarray(np.linalg.solve(normal, turned @ left[:, :, None])[:, :, 0], dtype=np.float64)
