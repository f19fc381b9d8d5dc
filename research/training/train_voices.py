"""Trains the network of `tasks.reading.voice`.

    python -m research.training.train_voices ../shared/data tasks/reading/voice-network.npz

Word vectors come from all texts of the sources that may be learned from (`research.training.voice_words`), the layers from
the posts whose voice is known (`research.training.voice_layers`). Sources are left out in twelve parts: what is said of a
source's posts is learned from others alone, and on these the probabilities are calibrated: one factor and one
shift a voice (vector scaling; Guo et al., ICML 2017, section 4.2), folded into the last layer. The sentiment is a
logistic regression with an L2 penalty, on posts whose author said good or bad. On one machine the same posts give the
same file.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from research.training.public_titles import run_training
from research.training.voice_layers import Fit, fit_layers
from research.training.voice_posts import Post, all_texts, digest, posts
from research.training.voice_words import word_vectors
from tasks.domain.voices import Voice
from tasks.reading.voice import VOICES, VoiceNetwork
from tasks.reading.voice_text import cues, keys_of, plain

PARTS = 12
"""Parts of the sources that are left out one after the other."""

BY_HAND, MOOD_PENALTY, MOOD_STEPS = 2.0, 1e-4, 60
"""How much more a post labelled by hand counts; of the sentiment: penalty of squared weights, most steps."""

HOW = Fit()

Floats = NDArray[np.floating]

BUYERS = [VOICES.index(voice) for voice in (Voice.COMPLAINT, Voice.PRAISE)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes a voice's log odds calibrated: ``factor * log odds + shift``; shift has shape (voices,)."""

    factor: float
    shift: Floats

    def shares(self, told: Floats) -> Floats:
        """Calibrated probabilities of the voices: shape (posts, voices)."""
        return softmax(self.factor * told[:, : len(VOICES)] + self.shift)


def untrained(words: Sequence[str], vectors: NDArray[np.int8]) -> VoiceNetwork:
    """A network with these vectors, whose layers say nothing yet."""
    keys = keys_of(words)
    order = np.argsort(keys)
    size = vectors.shape[1] + len(cues()) + 1
    nothing = (np.zeros((size, 1)), np.zeros((2, len(VOICES))), np.zeros(size))
    return VoiceNetwork(keys[order], vectors[order], *(layer.astype(np.float32) for layer in nothing))


def seen_by(network: VoiceNetwork, found: Sequence[Post]) -> NDArray[np.float32]:
    """What a network's layers see of posts; shape (posts, seen)."""
    return network.seen([plain(post.text) for post in found])


def train(
    network: VoiceNetwork, found: Sequence[Post], seen: NDArray[np.float32], how: Fit = HOW
) -> VoiceNetwork:
    """The network whose layers fit posts, not calibrated.

    Args:
        seen: of the posts (`seen_by`).
    """
    kinds = np.array([VOICES.index(post.voice) for post in found])
    hidden, out = fit_layers(seen, kinds, _weights(found), len(VOICES), how)
    return replace(network, hidden=hidden, out=out, mood=_mood(found, seen))


def held_out(
    network: VoiceNetwork,
    found: Sequence[Post],
    how: Fit = HOW,
    tell: Callable[[str], object] = lambda _: None,
) -> NDArray[np.float32]:
    """What is told of posts by layers that were fitted without their source; shape (posts, voices + 1)."""
    seen = seen_by(network, found)
    told = np.zeros((len(found), len(VOICES) + 1), np.float32)
    part_of = np.array([sha256(post.kin.encode()).digest()[0] % PARTS for post in found])
    for part in sorted(set(part_of.tolist())):
        here, others = np.flatnonzero(part_of == part), np.flatnonzero(part_of != part)
        if len(others):
            told[here] = train(network, [found[place] for place in others.tolist()], seen[others], how).told(
                seen[here]
            )
        tell(f"left out: part {part + 1} of {PARTS}, {len(here)} posts")
    return told


def for_calibration(post: Post) -> bool:
    """Whether a post is in the half that probabilities are calibrated on; figures are of the other half."""
    return int(digest(post.text), 16) % 2 == 0


def calibrated(found: Sequence[Post], told: Floats) -> Calibration:
    """What makes held-out probabilities most likely, every source counting the same."""
    used = [place for place, post in enumerate(found) if for_calibration(post)]
    kinds = np.array([VOICES.index(found[place].voice) for place in used])
    of_source = Counter(found[place].source for place in used)
    weight = np.array([1 / min(of_source[found[place].source], 100) for place in used])

    def loss(values: Floats) -> float:
        shares = Calibration(values[0], values[1:]).shares(told[used])
        likely = np.log(shares[np.arange(len(kinds)), kinds] + 1e-12)
        return float(-(weight * likely).sum() / weight.sum() + 1e-3 * (values[1:] ** 2).sum())

    best = minimize(loss, np.array([1.0] + [0.0] * len(VOICES)), method="L-BFGS-B").x
    return Calibration(float(best[0]), best[1:])


def with_calibration(network: VoiceNetwork, how: Calibration) -> VoiceNetwork:
    """A network whose probabilities are calibrated."""
    out = network.out * how.factor
    out[-1] += how.shift
    return replace(network, out=out.astype(np.float32))


def write_network(network: VoiceNetwork) -> bytes:
    """The file of a network: the arrays of `VoiceNetwork`, by name."""
    file = BytesIO()
    np.savez(
        file,
        keys=network.keys,
        vectors=network.vectors,
        hidden=network.hidden,
        out=network.out,
        mood=network.mood,
    )
    return file.getvalue()


def softmax(told: Floats) -> Floats:
    """Probabilities of rows of log odds."""
    grown = np.exp(told - told.max(1, keepdims=True))
    return np.asarray(grown / grown.sum(1, keepdims=True))


def _weights(found: Sequence[Post]) -> NDArray[np.float64]:
    """How much each post counts: every voice the same in all; of many posts of one source each counts less."""
    alike = Counter((post.source, post.voice, post.by_hand) for post in found)
    each = [
        alike[post.source, post.voice, post.by_hand] ** -0.5 * (BY_HAND if post.by_hand else 1.0)
        for post in found
    ]
    whole: dict[str, float] = defaultdict(float)
    for post, weight in zip(found, each, strict=True):
        whole[post.voice] += weight
    return np.array([weight / whole[post.voice] for post, weight in zip(found, each, strict=True)])


def _mood(found: Sequence[Post], seen: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights of the sentiment; a complaint read by hand is bad, praise is good."""
    good = {Voice.COMPLAINT: False, Voice.PRAISE: True}
    said = [post.good if post.good is not None else good.get(post.voice) for post in found]
    used = [place for place, one in enumerate(said) if one is not None]
    sign = np.array([1.0 if said[place] else -1.0 for place in used])
    weight = _weights([found[place] for place in used])
    weight /= weight.sum()
    rows = seen[used].astype(float)
    scale = rows.std(0) + 1e-6
    scale[-1] = 1.0
    rows /= scale

    def loss(values: Floats) -> tuple[float, Floats]:
        right = sign * (rows @ values)
        slope = rows.T @ (-weight * sign / (1 + np.exp(np.clip(right, -50, 50)))) + MOOD_PENALTY * values
        return float((weight * np.logaddexp(0, -right)).sum() + MOOD_PENALTY / 2 * (values**2).sum()), slope

    best = minimize(
        loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": MOOD_STEPS}
    )
    return np.asarray(best.x / scale, np.float32)


def main(shared: Path, target: Path) -> None:
    """Trains on the posts of the shared data and writes the network."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    found = posts(shared)
    tell(f"{len(found)} posts of {len({post.source for post in found})} sources")
    network = untrained(*word_vectors(all_texts(shared)))
    tell(f"{len(network.keys)} words have vectors")
    how = calibrated(found, held_out(network, found, tell=tell))
    whole = with_calibration(train(network, found, seen_by(network, found)), how)
    target.write_bytes(write_network(whole))


if __name__ == "__main__":
    run_training(main)
