"""The linear program of the bound.

Its bulk are columns x[k, p]: pages of pair p that had k tries before (k < tries), and x[tries, p]: attempts of
pair p beyond those its pages need. The other columns are few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from splitter.errors import ReviewloopError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_COLUMNS = 500_000
"""Maximum number of columns of a program that is solved."""

_SIMPLEX = 3000
"""Beyond so many columns the interior point method (with crossover) is several times faster."""

_INFEASIBLE = 2
"""`scipy.optimize.linprog`: status of a program without a solution."""


class NoBound(ReviewloopError):
    """The solver gave no optimum; the message carries what it said."""


class Infeasible(NoBound):
    """No values fulfil all rows."""


class Program:
    """Rows (at most, or equal) and columns (from 0 to an upper bound), made piece by piece.

    Args:
        tries: values of k that are pages.
        pairs: number of pairs.

    Attributes:
        gain: by pair, what one page is worth; the value is the cost of the other columns minus the gain of all pages.
        right, equal: of each row, its right side, and whether it is an equation.
        upper, lower, cost: of each other column, its bounds and its cost.
    """

    def __init__(self, tries: int, pairs: int) -> None:
        self.tries, self.pairs = tries, pairs
        self.gain: Floats = np.zeros(pairs)
        self.right: Floats = np.zeros(0)
        self.equal: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.upper: Floats = np.zeros(0)
        self.lower: Floats = np.zeros(0)
        self.cost: Floats = np.zeros(0)
        self._entries: list[tuple[Ints, Ints, Floats]] = []

    @property
    def bulk(self) -> int:
        """Number of columns x[k, p]; the other columns follow them."""
        return self.pairs * (self.tries + 1)

    def rows(self, count: int, right: Floats | float, *, equal: bool = False) -> int:
        """Add rows with these right sides; return the number of the first."""
        first = len(self.right)
        self.right = np.append(self.right, np.broadcast_to(right, count))
        self.equal = np.append(self.equal, np.full(count, equal))
        return first

    def enter(self, k: int, rows: Ints, values: Floats | float, pairs: Ints | None = None) -> None:
        """Set entries of x[k, pairs], one row each; without `pairs`, of all pairs in their order."""
        self.set(rows, k * self.pairs + (np.arange(self.pairs) if pairs is None else pairs), values)

    def columns(
        self, count: int, *, upper: Floats, lower: Floats | float = 0.0, cost: Floats | float = 0.0
    ) -> Ints:
        """Add other columns from `lower` to `upper`; return their numbers."""
        self.upper = np.append(self.upper, upper)
        self.lower = np.append(self.lower, np.broadcast_to(lower, count))
        self.cost = np.append(self.cost, np.broadcast_to(cost, count))
        return self.bulk + np.arange(len(self.cost) - count, len(self.cost))

    def set(self, rows: Ints, columns: Ints, values: Floats | float) -> None:
        """Set entries of columns."""
        self._entries.append(
            (rows, columns, np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape))
        )

    def matrix(self) -> csr_array:
        """Return the entries by row and column."""
        rows, columns, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        return coo_array(
            (values, (rows, columns)), shape=(len(self.right), self.bulk + len(self.cost))
        ).tocsr()


def solve(program: Program) -> float:
    """Return the optimum of what is minimised.

    Raises:
        NoBound: the program is too large, the solver failed, or (Infeasible) no values fulfil all rows.
    """
    many = program.bulk
    if many > _MOST_COLUMNS:
        raise NoBound(f"the scenario is too large for the bound: {many:,} columns, at most {_MOST_COLUMNS:,}")
    cost = np.concatenate([np.tile(-program.gain, program.tries), np.zeros(program.pairs), program.cost])
    lower = np.append(np.zeros(many), program.lower)
    bounds = np.column_stack([lower, np.append(np.full(many, np.inf), program.upper)])
    matrix, equal, at_most, right = program.matrix(), program.equal, ~program.equal, program.right
    result = linprog(  # type: ignore[call-overload]  # sparse matrices are taken, the stubs don't know
        cost,
        A_ub=matrix[at_most],
        b_ub=right[at_most],
        A_eq=matrix[equal],
        b_eq=right[equal],
        bounds=bounds,
        method="highs" if len(cost) <= _SIMPLEX else "highs-ipm",
    )
    if result.status == _INFEASIBLE:
        raise Infeasible("the bound's linear program has no solution")
    if result.status != 0:
        raise NoBound(f"the bound's linear program was not solved: {result.message}")
    return float(result.fun)
