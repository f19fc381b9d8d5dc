"""Fits the layers of `tasks.reading.judge.voice.VoiceNetwork`.

One hidden layer, cross entropy with softened labels (Szegedy et al., CVPR 2016, section 7), values left out at random
(Srivastava et al., JMLR 2014), steps by Adam (Kingma and Ba, ICLR 2015), smaller and smaller. The mean of several
networks that begin elsewhere is one network: their hidden layers side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Fit:
    """How the layers are fitted.

    Attributes:
        hidden: values of the hidden layer of each of `networks` networks.
        rounds: times that as many posts are drawn as there are.
        left_out: share of hidden values, and of what they see, that a step does without.
        penalty: of squared weights.
        soft: share of a label given to all voices alike.
    """

    hidden: int = 128
    networks: int = 2
    rounds: int = 30
    at_once: int = 128
    step: float = 2e-3
    left_out: tuple[float, float] = (0.5, 0.2)
    penalty: float = 1e-4
    soft: float = 0.05


def fit_layers(
    seen: Floats, kinds: NDArray[np.intp], weight: NDArray[np.float64], voices: int, how: Fit
) -> tuple[Floats, Floats]:
    """The layers (`VoiceNetwork.hidden`, `out`) that tell posts' voices.

    Args:
        seen: of each post; its last value is 1. Shape (posts, seen).
        kinds: place of each post's voice; shape (posts,).
        weight: how often each post is drawn, in proportion; shape (posts,).
    """
    middle, spread = seen[:, :-1].mean(0), seen[:, :-1].std(0) + 1e-6
    shown = (seen[:, :-1] - middle) / spread
    fitted = [_fitted(shown, kinds, weight, voices, how, seed) for seed in range(how.networks)]
    first = np.hstack([of[0] for of in fitted]) / spread[:, None]
    constant = np.concatenate([of[1] for of in fitted]) - middle @ first
    out = np.vstack([of[2] for of in fitted]) / how.networks
    last = np.mean([of[3] for of in fitted], 0)
    return np.vstack((first, constant)).astype(np.float32), np.vstack((out, last)).astype(np.float32)


def _fitted(
    shown: Floats,
    kinds: NDArray[np.intp],
    weight: NDArray[np.float64],
    voices: int,
    how: Fit,
    seed: int,
) -> list[Floats]:
    """One network's weights and constants, layer by layer."""
    random = np.random.default_rng(seed)
    size = shown.shape[1]
    values: list[Floats] = [
        random.normal(0, (2 / size) ** 0.5, (size, how.hidden)).astype(np.float32),
        np.zeros(how.hidden, np.float32),
        random.normal(0, (1 / how.hidden) ** 0.5, (how.hidden, voices)).astype(np.float32),
        np.zeros(voices, np.float32),
    ]
    means = [np.zeros_like(one) for one in values]
    squares = [np.zeros_like(one) for one in values]
    truth = (np.eye(voices) * (1 - how.soft) + how.soft / voices).astype(np.float32)[kinds]
    drawn = np.cumsum(weight / weight.sum())
    steps = max(how.rounds * len(shown) // how.at_once, 1)
    for nth in range(1, steps + 1):
        rows = np.minimum(np.searchsorted(drawn, random.random(how.at_once)), len(shown) - 1)
        slopes = _slopes(shown[rows], truth[rows], values, how, random)
        step = how.step * (1 - (nth - 1) / steps)
        for one, slope, mean, square in zip(values, slopes, means, squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            one -= step * (mean / (1 - 0.9**nth)) / (np.sqrt(square / (1 - 0.999**nth)) + 1e-8)
    return values


def _slopes(
    shown: Floats, truth: Floats, values: list[Floats], how: Fit, random: np.random.Generator
) -> list[Floats]:
    """The loss's slopes over some posts."""
    first, constant, out, last = values
    of_hidden, of_seen = how.left_out
    shown = shown * (random.random(shown.shape, np.float32) > of_seen) / np.float32(1 - of_seen)
    before = shown @ first + constant
    kept = (random.random(before.shape, np.float32) > of_hidden) / np.float32(1 - of_hidden)
    hidden = np.maximum(before, 0) * kept
    told = hidden @ out + last
    shares = np.exp(told - told.max(1, keepdims=True))
    wrong = (shares / shares.sum(1, keepdims=True) - truth) / len(shown)
    back = (wrong @ out.T) * kept * (before > 0)
    return [
        shown.T @ back + how.penalty * first,
        back.sum(0),
        hidden.T @ wrong + how.penalty * out,
        wrong.sum(0),
    ]
