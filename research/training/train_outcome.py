"""Trains and tries the weights of `tasks.reading.page_outcome`.

    python -m research.training.train_outcome [--pages FOLDER] [--write tasks/reading/page-outcome-weights.txt]

Multinomial logistic regression with an L2 penalty, by gradient descent over all pages; each kind weighs the same. Every
engine is left out once: what is said of its pages is learned from the others' alone. Real pages (`outcome_pages.real`)
are in no repository of ours; figures of them and of generated ones are told apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from research.training.outcome_pages import OutcomePage, generated, real
from tasks.reading.page_outcome import OUTCOMES, Weights, chances

STEPS, STEP, PENALTY = 600, 0.5, 0.01


def train(pages: Sequence[OutcomePage]) -> Weights:
    """The weights that fit pages; their first is the constant."""
    names = list(pages[0].traits)
    x = np.array([[page.traits[name] for name in names] for page in pages])
    kinds = np.array([OUTCOMES.index(page.kind) for page in pages])
    mean, spread = x.mean(0), np.maximum(x.std(0), 0.1)
    x = np.hstack([np.ones((len(x), 1)), (x - mean) / spread])
    target = np.eye(len(OUTCOMES))[kinds]
    weight = 1 / np.bincount(kinds, minlength=len(OUTCOMES))[kinds]
    weight /= weight.sum()
    w = np.zeros((x.shape[1], len(OUTCOMES)))
    for _ in range(STEPS):
        scores = x @ w
        grown = np.exp(scores - scores.max(1, keepdims=True))
        error = (grown / grown.sum(1, keepdims=True) - target) * weight[:, None]
        penalty = PENALTY * w
        penalty[0] = 0
        w -= STEP * (x.T @ error + penalty)
    rows = {"constant": (0.0, 1.0, *map(float, w[0]))}
    rows |= {
        n: (float(m), float(s), *map(float, one))
        for n, m, s, one in zip(names, mean, spread, w[1:], strict=True)
    }
    return rows  # type: ignore[return-value]


def left_out(pages: Sequence[OutcomePage]) -> list[tuple[OutcomePage, str, float]]:
    """Every page with what is said of it by weights that know no page of its engine, and how surely."""
    said: list[tuple[OutcomePage, str, float]] = []
    for engine in sorted({page.engine for page in pages}):
        weights = train([page for page in pages if page.engine != engine])
        for page in (page for page in pages if page.engine == engine):
            likely = chances(page.traits, weights)
            best = max(OUTCOMES, key=lambda one: likely[one])
            said.append((page, best, likely[best]))
    return said


def f1(said: Sequence[tuple[OutcomePage, str, float]]) -> dict[str, float]:
    """F1 of each kind, and their mean."""
    scores = {}
    for kind in OUTCOMES:
        right = sum(page.kind == kind == best for page, best, _ in said)
        named = sum(best == kind for _, best, _ in said) + sum(page.kind == kind for page, _, _ in said)
        scores[str(kind)] = round(2 * right / named, 3) if named else float("nan")
    return {**scores, "macro": round(float(np.mean(list(scores.values()))), 3)}


def written(weights: Weights, n: int, n_real: int) -> str:
    """The text of the file of weights."""
    head = (
        f"# Weights of tasks/reading/page_outcome.py: trait, mean, spread, then of {', '.join(OUTCOMES)}. Made by\n"
        f"# `python -m research.training.train_outcome` from {n} pages, {n_real} of them real.\n"
    )
    return head + "".join(
        f"{name}\t" + "\t".join(f"{x:.4f}" for x in row) + "\n" for name, row in weights.items()
    )


def main() -> None:
    """Prints figures; writes the weights where it is told to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=Path, help="folder of real pages")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    pages = [*generated(), *(real(options.pages) if options.pages else ())]
    said = left_out(pages)
    for name, some in (
        ("all", said),
        ("generated", [one for one in said if not one[0].real]),
        ("real", [one for one in said if one[0].real]),
    ):
        if some:
            print(json.dumps({"pages": name, "count": len(some), "f1": f1(some)}))
    if options.write:
        n_real = sum(page.real for page in pages)
        options.write.write_text(written(train(pages), len(pages), n_real), "utf-8")


if __name__ == "__main__":
    main()
