"""Fits the network of `tasks.reading.judge.voice`: rows of runs of characters, and one hidden layer behind them.

It learns what a teacher says of many texts (Hinton, Vinyals and Dean, Distilling the Knowledge in a Neural Network,
2015), then also labels. Steps by Adam (Kingma and Ba, ICLR 2015), smaller and smaller; runs and hidden values are left
out at random (Srivastava et al., JMLR 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from tasks.domain.voices import Voice
from tasks.reading.judge.runs import ORDERS
from tasks.reading.judge.voice import BITS, LEVELS, VoiceNetwork, pack, runs_of

SIZE, HIDDEN = 16, 48
_LEFT_OUT, _HIDDEN_LEFT_OUT = 0.15, 0.3
_PENALTY, _ROW_PENALTY = 1e-5, 1e-6
_MOOD_WEIGHT = 0.5
_WIDEST = 99.95
"""Percentile of a row's numbers that is the widest one that is kept."""
_AT_ONCE = 5000

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Layers:
    """Numbers that are learned: of runs, of the hidden layer, of what it says; constants apart."""

    rows: Floats
    hidden: Floats
    hidden_constant: Floats
    out: Floats
    out_constant: Floats

    def all(self) -> list[Floats]:
        """Return the arrays, in their order."""
        return [self.rows, self.hidden, self.hidden_constant, self.out, self.out_constant]


@dataclass(frozen=True, slots=True)
class Steps:
    """How layers are fitted: texts drawn at once, times that as many texts are drawn as there are, first step."""

    at_once: int
    rounds: float
    step: float


def begin(seed: int = 0) -> Layers:
    """Return layers that say nothing yet."""
    random = np.random.default_rng(seed)
    voices = len(Voice) + 1

    def normal(rows: int, columns: int, spread: float) -> Floats:
        return random.normal(0, spread, (rows, columns)).astype(np.float32)

    return Layers(
        normal(1 << BITS, SIZE, 0.3),
        normal(2 * SIZE, HIDDEN, (2 / SIZE) ** 0.5),
        np.zeros(HIDDEN, np.float32),
        normal(HIDDEN, voices, HIDDEN**-0.5),
        np.zeros(voices, np.float32),
    )


def runs_in(texts: Sequence[str]) -> csr_array:
    """Return the runs of texts as rows that add up to what the layers see.

    Each text has two rows, one of all runs and one of those that a negation reaches; shape (2 * texts, 2 ** BITS).
    """
    parts = [_runs_in(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)]
    return csr_array(vstack(parts).tocsr())


def _runs_in(texts: Sequence[str]) -> csr_array:
    hashes, _, chars, denied = runs_of(texts)
    text_of = np.repeat(np.arange(len(texts)), chars.astype(np.int64))
    places = np.concatenate((np.arange(len(text_of)), denied))
    rows = 2 * text_of[places]
    rows[len(text_of) :] += 1
    value = (ORDERS * chars) ** -0.5
    order = np.argsort(rows, kind="stable")
    places, rows = places[order], rows[order]
    ends = np.searchsorted(rows, np.arange(2 * len(texts) + 1)) * ORDERS
    values = np.repeat(value[rows // 2].astype(np.float32), ORDERS)
    found = hashes[:, places].T.ravel().astype(np.int32)
    return csr_array((values, found, ends), shape=(2 * len(texts), 1 << BITS))


def pick(runs: csr_array, texts: NDArray[np.intp]) -> csr_array:
    """Return the rows of some texts (`runs_in`)."""
    return csr_array(runs[(2 * texts[:, None] + np.arange(2)).ravel()])


def fit(
    layers: Layers, runs: csr_array, truth: Floats, weight: NDArray[np.float64], how: Steps, seed: int = 0
) -> None:
    """Fit layers in place.

    Args:
        runs: of texts (`runs_in`).
        truth: the voices' shares, then the share of a good mood, NaN if it is not known; shape (texts, voices + 1).
        weight: how often each text is drawn, in proportion.
    """
    random = np.random.default_rng(seed)
    values = layers.all()
    means, squares = [np.zeros_like(one) for one in values], [np.zeros_like(one) for one in values]
    drawn = np.cumsum(weight / weight.sum())
    count = len(truth)
    steps = max(int(how.rounds * count / how.at_once), 1)
    for nth in range(1, steps + 1):
        rows = np.sort(np.minimum(np.searchsorted(drawn, random.random(how.at_once)), count - 1))
        slopes = _slopes(layers, pick(runs, rows), truth[rows], random)
        step = np.float32(how.step * (1 - (nth - 1) / steps))
        for one, slope, mean, square in zip(values, slopes, means, squares, strict=True):
            mean *= 0.9
            mean += 0.1 * slope
            square *= 0.999
            square += 0.001 * slope * slope
            one -= (
                step
                * (mean / np.float32(1 - 0.9**nth))
                / (np.sqrt(square / np.float32(1 - 0.999**nth)) + 1e-8)
            )
        layers.rows *= np.float32(1 - _ROW_PENALTY * step / how.step)


def _slopes(layers: Layers, runs: csr_array, truth: Floats, random: np.random.Generator) -> list[Floats]:
    """Return the loss's slopes over some texts."""
    kept = (random.random(len(runs.data), np.float32) > _LEFT_OUT) / np.float32(1 - _LEFT_OUT)
    runs = csr_array((runs.data * kept, runs.indices, runs.indptr), shape=runs.shape)
    seen = (runs @ layers.rows).reshape(len(truth), -1)
    before = seen @ layers.hidden + layers.hidden_constant
    through = (random.random(before.shape, np.float32) > _HIDDEN_LEFT_OUT) / np.float32(1 - _HIDDEN_LEFT_OUT)
    hidden = np.maximum(before, 0) * through
    told = hidden @ layers.out + layers.out_constant
    wrong = np.empty_like(told)
    wrong[:, :-1] = shares(told[:, :-1]) - truth[:, :-1]
    mood = 1 / (1 + np.exp(-told[:, -1]))
    wrong[:, -1] = np.where(np.isnan(truth[:, -1]), 0, _MOOD_WEIGHT * (mood - truth[:, -1]))
    wrong /= np.float32(len(truth))
    back = (wrong @ layers.out.T) * through * (before > 0)
    return [
        runs.T @ (back @ layers.hidden.T).reshape(-1, SIZE),
        seen.T @ back + _PENALTY * layers.hidden,
        back.sum(0),
        hidden.T @ wrong + _PENALTY * layers.out,
        wrong.sum(0),
    ]


def shares(told: NDArray[np.floating]) -> Floats:
    """Return the probabilities of rows of log odds."""
    grown = np.exp(told - told.max(1, keepdims=True))
    return np.asarray(grown / grown.sum(1, keepdims=True), np.float32)


def packed(layers: Layers) -> VoiceNetwork:
    """Return layers as the product reads them: each row's numbers as one of `LEVELS` + 1 levels."""
    middle = LEVELS // 2
    scale = np.percentile(np.abs(layers.rows), _WIDEST, axis=0).astype(np.float32) / middle
    rows = np.clip(np.round(layers.rows / scale) + middle, 0, LEVELS).astype(np.uint8)
    hidden = np.vstack((layers.hidden * np.tile(scale, 2)[:, None], layers.hidden_constant))
    return VoiceNetwork(pack(rows), hidden.astype(np.float32), np.vstack((layers.out, layers.out_constant)))
