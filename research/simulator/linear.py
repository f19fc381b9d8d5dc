"""A linear program with many alike columns, solved over few of them at a time (column generation).

Its bulk are columns x[k, p]: pages of pair p that had k tries before (k < tries), and x[tries, p]: attempts of
pair p beyond those its pages need. The others are few. Columns that could still improve the optimum are found by
their reduced cost, and where none is left the optimum of the few is that of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack

from splitter.errors import ReviewloopError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_AT_ONCE = 60_000
"""So many columns are solved without generating any."""

_STARTING, _ADDED = 4, 2
"""Pairs of each site and of each piece to begin with; to add in a round."""

_SIMPLEX = 3000
"""Beyond so many columns the interior point method (with crossover) is several times faster."""

_TOLERANCE = 1e-7
_CLOSE = 1e-4
"""Columns that could not move the optimum by more than this share of it are not asked for: that is added to it."""

_MOST_ROUNDS = 60


_INFEASIBLE = 2
"""`scipy.optimize.linprog`: status of a program without a solution."""


class NoBound(ReviewloopError):
    """The solver gave no optimum; the message carries what it said."""


class Infeasible(NoBound):
    """No values fulfil all rows."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Optimum, number of columns in the last program, and how many programs were solved."""

    value: float
    columns: int
    rounds: int


@dataclass(slots=True)
class _Entries:
    """Entries of x[k, .]: (rows, values, pairs)."""

    rows: list[Ints] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    pairs: list[Ints] = field(default_factory=list)


class Program:
    """Rows (at most, or equal) and columns (from 0 to an upper bound), made piece by piece.

    Args:
        tries: values of k that are pages.
        pairs: number of pairs.
        maximise_pages: the value is minus the `gain` of all pages; else the cost of the other columns.

    Attributes:
        gain: by pair, what one page is worth.
        always: pairs that are in every program.
        right, equal: of each row, its right side, and whether it is an equation.
        upper, lower, cost: of each other column, its bounds and its cost.
    """

    def __init__(self, tries: int, pairs: int, *, maximise_pages: bool) -> None:
        self.tries, self.pairs, self.maximise_pages = tries, pairs, maximise_pages
        self.gain: Floats = np.zeros(pairs)
        self.always: Ints = np.zeros(0, dtype=np.int64)
        self.right: Floats = np.zeros(0)
        self.equal: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.upper: Floats = np.zeros(0)
        self.lower: Floats = np.zeros(0)
        self.cost: Floats = np.zeros(0)
        self._entries = [_Entries() for _ in range(tries + 1)]
        self._set: list[tuple[Ints, Ints, Floats]] = []

    def rows(self, count: int, right: Floats | float, *, equal: bool = False) -> int:
        """New rows with these right sides; returns the number of the first."""
        first = len(self.right)
        self.right = np.append(self.right, np.broadcast_to(right, count))
        self.equal = np.append(self.equal, np.full(count, equal))
        return first

    def enter(self, k: int, rows: Ints, values: Floats | float, pairs: Ints | None = None) -> None:
        """Entries of x[k, pairs] (of all pairs in their order, by default), one row each."""
        of = self._entries[k]
        of.rows.append(rows)
        of.values.append(np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape))
        of.pairs.append(np.arange(self.pairs) if pairs is None else pairs)

    def columns(
        self, count: int, *, upper: Floats, lower: Floats | float = 0.0, cost: Floats | float = 0.0
    ) -> Ints:
        """New other columns from `lower` to `upper`; returns their numbers."""
        self.upper = np.append(self.upper, upper)
        self.lower = np.append(self.lower, np.broadcast_to(lower, count))
        self.cost = np.append(self.cost, np.broadcast_to(cost, count))
        return np.arange(len(self.cost) - count, len(self.cost))

    def set(self, rows: Ints, columns: Ints, values: Floats | float) -> None:
        """Entries of other columns."""
        self._set.append((rows, columns, np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape)))

    def matrices(self) -> tuple[list[csr_array], csr_array]:
        """(x[k] by row and pair, for each k; the other columns)."""
        bulk = [
            coo_array(
                (np.concatenate(of.values), (np.concatenate(of.rows), np.concatenate(of.pairs))),
                shape=(len(self.right), self.pairs),
            ).tocsr()
            for of in self._entries
        ]
        if not self._set:
            return bulk, csr_array((len(self.right), 0))
        rows, columns, values = (np.concatenate(part) for part in zip(*self._set, strict=True))
        return bulk, coo_array((values, (rows, columns)), shape=(len(self.right), len(self.cost))).tocsr()

    def time_of(self, k: int) -> tuple[Ints, Floats]:
        """The rows of time that x[k, .] enter, the first they were entered into, and their seconds there."""
        return self._entries[k].rows[0], self._entries[k].values[0]

    def moved_into(self, rows: int) -> Floats:
        """By row, the most that other columns with an upper bound may add to its right side."""
        added = np.zeros(rows)
        for at, columns, values in self._set:
            gives = (values < 0.0) & np.isfinite(self.upper[columns])
            np.add.at(added, at[gives], -values[gives] * self.upper[columns[gives]])
        return added

    @property
    def small(self) -> bool:
        """Whether it is solved with all its columns."""
        return self.pairs * (self.tries + 1) <= _AT_ONCE


def solve(program: Program) -> Solution:
    """The optimum (of what is minimised).

    Raises:
        NoBound: the solver failed, or (Infeasible) no values fulfil all rows.
    """
    bulk, others = program.matrices()
    columns = [matrix.tocsc() for matrix in bulk]
    worth = [(-program.gain if program.maximise_pages else 0.0 * program.gain)] * program.tries
    worth.append(np.zeros(program.pairs))
    chosen = _first(program, bulk)
    for round_ in range(1, _MOST_ROUNDS + 1):
        matrix = hstack([*(part[:, chosen] for part in columns), others], format="csr")
        cost = np.concatenate([*(part[chosen] for part in worth), program.cost])
        many = len(chosen) * len(bulk)
        lower = np.append(np.zeros(many), program.lower)
        bounds = np.column_stack([lower, np.append(np.full(many, np.inf), program.upper)])
        value, prices = _optimum(matrix, cost, bounds, program)
        kinds = [c - m.T @ prices for c, m in zip(worth, bulk, strict=True)]
        for kind in kinds:
            kind[chosen] = 0.0
        reduced = np.min(kinds, axis=0)
        better = np.flatnonzero(reduced < -_TOLERANCE)
        missing = _still_missing(program, kinds) if len(better) else 0.0
        if missing <= _CLOSE * abs(value):
            return Solution(value - missing, matrix.shape[1], round_)
        chosen = np.union1d(chosen, _best(bulk, -reduced, better))
    raise NoBound(
        f"no optimum after {_MOST_ROUNDS} rounds of columns; the scenario is too large for the bound"
    )


def _still_missing(program: Program, reduced: list[Floats]) -> float:
    """How far, at most, the columns left out could still lower the optimum; infinite where that is not known.

    Prices of time that are raised until no column has a negative reduced cost are feasible in the dual program, whose
    value bounds the optimum: it falls by the rise times the time there is, and the time that may be moved there.
    """
    if not program.maximise_pages:
        return np.inf
    rise = np.zeros(len(program.right))
    for k, kind in enumerate(reduced):
        below = np.flatnonzero(kind < 0.0)
        rows, seconds = program.time_of(k)
        if (seconds[below] <= 0.0).any():
            return np.inf
        np.maximum.at(rise, rows[below], -kind[below] / seconds[below])
    return float(rise @ (program.right + program.moved_into(len(rise))))


def _optimum(matrix: csr_array, cost: Floats, bounds: Floats, program: Program) -> tuple[float, Floats]:
    """Value and price of each row (at most 0 where it is no equation)."""
    equal, at_most, right = program.equal, ~program.equal, program.right
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
    prices = np.zeros(len(right))
    prices[at_most] = result.ineqlin.marginals
    prices[equal] = result.eqlin.marginals
    return float(result.fun), prices


def _first(program: Program, bulk: list[csr_array]) -> Ints:
    """Pairs to begin with: all where they are few, else those that look best in each row of theirs."""
    if program.small:
        return np.arange(program.pairs)
    # The seconds of a page are its entry in the row of its piece's time, which is its first.
    _, seconds = program.time_of(0)
    score = (program.gain if program.maximise_pages else 1.0) / np.maximum(seconds, 1e-9)
    return np.union1d(program.always, _best(bulk, score, np.arange(program.pairs), _STARTING))


def _best(bulk: list[csr_array], score: Floats, among: Ints, most: int = _ADDED) -> Ints:
    """Of some pairs, those with the highest score in each row that the first kind of column enters."""
    matrix = bulk[0][:, among].tocsr()
    kept: list[Ints] = []
    for row in range(matrix.shape[0]):
        inside = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if not len(inside):
            continue
        if len(inside) > most:
            inside = inside[np.argpartition(-score[among[inside]], most)[:most]]
        kept.append(among[inside])
    return np.unique(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.int64)
