"""Trains the linear models of themes (`tasks.reading.judge.themes`): one logistic regression a theme over hashed runs.

A text has a theme if one of its clauses says so (multiple-instance learning, Dietterich et al., 1997): the log odds of a
text are the soft maximum of those of its clauses. Praise teaches what is no complaint. The threshold of each theme is
chosen on texts whose scores come from models that never saw them.

    python -m research.training.train_themes SHARED_DATA tasks/reading/judge/theme-models.npz
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from research.training.public_titles import run_training
from research.training.themes.theme_texts import ThemeText, list_learnable, list_praise
from tasks.reading.judge.theme_file import CATEGORIES, builtin_themes
from tasks.reading.judge.theme_terms import BITS, compile_terms
from tasks.reading.judge.themes import CAR, GOODS, LEVELS, MODEL_BITS, MOST_READ, RESTAURANT, TextBatch


@dataclass(frozen=True, slots=True)
class How:
    """How a category's model is trained.

    Attributes:
        penalty: half of it times the square of each weight is added to the loss.
        term: what a term adds to the log odds of its clause while the model is trained.
        of_term: what it adds when texts are read.
        shift: added to the thresholds.
    """

    penalty: float
    term: float
    of_term: float
    shift: float


HOW = {
    GOODS: How(penalty=1.0, term=2.5, of_term=3.0, shift=0.5),
    CAR: How(penalty=0.3, term=0.0, of_term=1.0, shift=0.3),
    RESTAURANT: How(penalty=1.0, term=2.5, of_term=3.0, shift=0.5),
}
PRAISE = 900
"""Texts of praise that are learned from, at most."""
OF_PRAISE = 0.5
"""Weight of a text of praise; some complain as well."""
FOLDS, STEPS = 5, 60
LEAST = 2
"""Clauses that have a run, at least."""
_QUANTILES = np.linspace(0.3, 0.999, 150)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of texts.

    Attributes:
        runs: how often each has each run, divided by the root of its number of runs; shape (clauses, 2 ** MODEL_BITS).
        terms: the themes whose terms each has; shape (clauses, themes).
        text: number of each clause's text, ascending.
    """

    runs: csr_array
    terms: Floats
    text: NDArray[np.intp]

    def pick(self, texts: Flags) -> Clauses:
        """Return the clauses of some texts."""
        rows = texts[self.text]
        number = np.cumsum(texts) - 1
        return Clauses(csr_array(self.runs[rows]), self.terms[rows], number[self.text[rows]])

    @property
    def first(self) -> NDArray[np.intp]:
        """The number of each text's first clause."""
        return np.flatnonzero(np.diff(self.text, prepend=-1))


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights of runs by theme, shape (2 ** MODEL_BITS, themes), and what is added to their sum."""

    weights: Floats
    bias: Floats

    def told(self, clauses: Clauses, of_term: float) -> Floats:
        """Return the log odds of texts, those of their best clauses; shape (texts, themes)."""
        odds = clauses.runs @ self.weights + self.bias + of_term * clauses.terms
        told: Floats = np.maximum.reduceat(odds, clauses.first)
        return told


def read_clauses(texts: Sequence[str], category: str) -> Clauses:
    """Return the clauses of texts, as the reader sees them."""
    themes = builtin_themes().list_themes(category)
    terms = compile_terms(themes.values(), denies=category == GOODS)
    places, values, ends, text_of, found = [], [], [0], [], []
    for number, text in enumerate(texts):
        page = TextBatch([text[:MOST_READ]])
        has = (terms.find(page.codes, page.runs, page.clause_starts, page.ends) > 0).astype(float)
        used = [clause for clause, size in enumerate(page.sizes.tolist()) if size > 1] or [0]
        for clause in used:
            runs = page.runs[:, page.clause_starts[clause] : page.ends[clause] + 1] >> np.uint32(
                BITS - MODEL_BITS
            )
            hashes, counts = np.unique(runs.ravel(), return_counts=True)
            places.append(hashes)
            values.append(counts / np.sqrt(runs.size))
            ends.append(ends[-1] + len(hashes))
        text_of += [number] * len(used)
        found.append(has[used])
    shape = (len(text_of), 1 << MODEL_BITS)
    runs_of = csr_array((np.concatenate(values), np.concatenate(places).astype(np.int32), ends), shape=shape)
    return Clauses(runs_of, np.concatenate(found), np.array(text_of))


def fit(clauses: Clauses, truth: Flags, weight: Floats, how: How) -> Linear:
    """Return the weights that fit texts; runs of few clauses count more (inverse document frequency).

    Args:
        weight: of each text.
    """
    count, size = clauses.runs.shape
    seen = np.bincount(clauses.runs.indices, minlength=size)
    used = np.flatnonzero(seen >= LEAST)
    rarity = np.log((count + 1) / (seen[used] + 1))
    rows = csr_array(clauses.runs[:, used] * rarity)
    columns = csr_array(rows.T)
    themes = truth.shape[1]
    first, text = clauses.first, clauses.text

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights, bias = flat[:-themes].reshape(-1, themes), flat[-themes:]
        odds = rows @ weights + bias + how.term * clauses.terms
        best = np.maximum.reduceat(odds, first)
        grown = np.exp(odds - best[text])
        whole = np.add.reduceat(grown, first)
        told = best + np.log(whole)
        wrong = weight[:, None] * (1 / (1 + np.exp(-told)) - truth)
        total = (weight[:, None] * (np.logaddexp(0, told) - truth * told)).sum()
        slopes = wrong[text] * grown / whole[text]
        of_weights = (columns @ slopes + how.penalty * weights).ravel()
        return float(total + how.penalty / 2 * (weights**2).sum()), np.concatenate(
            (of_weights, slopes.sum(0))
        )

    begin = np.zeros((len(used) + 1) * themes)
    begin[-themes:] = -3
    best = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    weights = np.zeros((size, themes))
    weights[used] = best[:-themes].reshape(-1, themes) * rarity[:, None]
    return Linear(weights, best[-themes:])


def tell_unseen(clauses: Clauses, truth: Flags, weight: Floats, how: How) -> tuple[Floats, Floats]:
    """Return the log odds of texts by models that were fitted to others: by runs alone, and with terms."""
    fold = np.random.default_rng(1).integers(0, FOLDS, len(truth))
    alone = np.zeros(truth.shape)
    both = np.zeros(truth.shape)
    for part in range(FOLDS):
        here = fold == part
        model = fit(clauses.pick(~here), truth[~here], weight[~here], how)
        alone[here] = model.told(clauses.pick(here), 0)
        both[here] = model.told(clauses.pick(here), how.of_term)
    return alone, both


def f1_of(truth: Flags, found: Flags) -> Floats:
    """Return F1 of each theme."""
    scores: Floats = 2 * (truth & found).sum(0) / np.maximum(truth.sum(0) + found.sum(0), 1)
    return scores


def choose_thresholds(truth: Flags, told: Floats) -> Floats:
    """Return the log odds of each theme from which F1 is best."""
    best = []
    for column in range(truth.shape[1]):
        tried = np.quantile(told[:, column], _QUANTILES)
        found = told[:, column, None] >= tried
        best.append(tried[f1_of(np.broadcast_to(truth[:, column, None], found.shape), found).argmax()])
    return np.array(best)


def train(texts: Sequence[ThemeText], praise: Sequence[str], category: str) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a category's model."""
    how = HOW[category]
    themes = list(builtin_themes().list_themes(category))
    clauses = read_clauses([*(one.text for one in texts), *praise], category)
    truth = np.array(
        [[theme in one.themes for theme in themes] for one in texts] + [[False] * len(themes)] * len(praise)
    )
    weight = np.array([1.0] * len(texts) + [OF_PRAISE] * len(praise))
    own = slice(len(texts))
    alone, both = tell_unseen(clauses, truth, weight, how)
    thresholds = choose_thresholds(truth[own], alone[own])
    terms = np.maximum.reduceat(clauses.terms, clauses.first) > 0
    for name, found in (
        ("terms", terms),
        ("runs", alone >= thresholds),
        ("both", both >= thresholds + how.shift),
    ):
        score = f1_of(truth[own], found[own]).mean()
        said = found[len(texts) :].any(1).mean() if praise else 0
        print(f"{category}, {len(texts)} texts, {name}: F1 {score:.3f}, praise {said:.3f}", file=sys.stderr)
    model = fit(clauses, truth, weight, how)
    rows, scale = quantize(model.weights)
    return {
        f"{category}.themes": np.array(themes),
        f"{category}.rows": rows,
        f"{category}.scale": scale,
        f"{category}.bias": (model.bias - thresholds - how.shift).astype(np.float32),
        f"{category}.of_term": np.full(len(themes), how.of_term, np.float32),
    }


def quantize(weights: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return weights as numbers from 0 to `LEVELS`, in a multiple of four columns, and what a step is worth."""
    middle = LEVELS // 2
    size = -(-weights.shape[1] // 4) * 4
    scale = np.ones(size)
    scale[: weights.shape[1]] = np.maximum(np.abs(weights).max(0), 1e-9) / middle
    rows = np.full((len(weights), size), middle, np.uint8)
    steps = np.round(weights / scale[: weights.shape[1]]) + middle
    rows[:, : weights.shape[1]] = np.clip(steps, 0, LEVELS)
    return rows, scale.astype(np.float32)


def write_models(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the file of models: their arrays by name."""
    file = BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def main(shared: Path, target: Path) -> None:
    """Train on the texts of the shared data that are not set apart, and write the models."""
    learnable = list_learnable(shared)
    arrays: dict[str, NDArray[np.generic]] = {}
    praise = list_praise(shared)[:PRAISE]
    for category in CATEGORIES:
        texts = [one for one in learnable if one.category == category]
        arrays |= train(texts, praise if category == GOODS else (), category)
    target.write_bytes(write_models(arrays))


if __name__ == "__main__":
    run_training(main)
