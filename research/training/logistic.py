"""Logistic regression over traits, with an L2 penalty: the same examples give the same weights, nothing is drawn.

By the quasi-Newton method L-BFGS (Liu and Nocedal, 1989). Weights of other examples may be given to begin with: then
the penalty is on what differs from them (maximum a posteriori adaptation, Chelba and Acero, 2004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

STEPS = 60

Numbers = NDArray[np.float64]
Weights = Mapping[str, tuple[float, ...]]


def fitted(
    examples: Sequence[tuple[Sequence[str], int]],
    parts: int,
    *,
    least: int,
    penalty: float = 1.0,
    before: Weights | None = None,
) -> dict[str, tuple[float, ...]]:
    """The weights that fit examples, of each trait one for every part but the last, whose weight is 0.

    Args:
        examples: traits, and the part that has them.
        parts: how many parts there are.
        least: a trait seen less often gets no weight of its own.
        penalty: half of it times the square of each weight is added to the loss.
        before: weights to begin with.
    """
    before = before or {}
    seen = Counter(trait for traits, _ in examples for trait in traits)
    names = sorted(trait for trait, times in seen.items() if times >= least)
    number = {trait: at for at, trait in enumerate(names)}
    rows = [[number[trait] for trait in traits if trait in number] for traits, _ in examples]
    begins = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter((column for row in rows for column in row), np.int64)
    has = csr_matrix((np.ones(len(columns)), columns, begins), shape=(len(rows), len(names)))
    had_by = has.T.tocsr()
    gold = np.eye(parts)[[part for _, part in examples]]
    base = np.zeros((len(rows), parts))
    for at, (traits, _) in enumerate(examples if before else ()):
        for trait in traits:
            if trait in before:
                base[at, :-1] += before[trait]

    def loss(flat: Numbers) -> tuple[float, Numbers]:
        weights = flat.reshape(-1, parts - 1)
        sums = base.copy()
        sums[:, :-1] += has @ weights
        logs = sums - logsumexp(sums, axis=1, keepdims=True)
        slope = had_by @ (np.exp(logs) - gold)[:, :-1] + penalty * weights
        return float(penalty / 2 * (flat**2).sum() - (logs * gold).sum()), slope.ravel()

    start = np.zeros((parts - 1) * len(names))
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    own = dict(zip(names, map(tuple, best.x.reshape(-1, parts - 1).tolist()), strict=True))
    none = (0.0,) * (parts - 1)
    every = sorted(own.keys() | before.keys())
    return {
        trait: tuple(a + b for a, b in zip(own.get(trait, none), before.get(trait, none), strict=True))
        for trait in every
    }
