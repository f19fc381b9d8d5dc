"""Trains the network of `tasks.reading.voice`.

    python -m research.training.train_voices ../shared/data tasks/reading/voice-network.npz

A teacher over word vectors (`research.training.voices.word_network`) is fitted to the posts whose voice is known; it tells the
voice of all texts of the sources that may be learned from. The network (`research.training.voices.voice_student`) learns what
the teacher told, then also the posts' labels. This is done twice: first a quarter of the sources is left out, and on
these the probabilities are calibrated: one factor and one shift a voice (vector scaling; Guo et al., ICML 2017, section
4.2), folded into the last layer. Then nothing is left out. On one machine the same posts give the same file.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from research.training.public_titles import run_training
from research.training.voices import word_network
from research.training.voices.voice_layers import Fit, fit_layers
from research.training.voices.voice_mixed import GROUPS
from research.training.voices.voice_posts import Post, all_texts, digest, posts
from research.training.voices.voice_rated import rated_posts
from research.training.voices.voice_student import Steps, begin, fit, packed, runs_in, shares
from research.training.voices.word_network import WordNetwork, seen_by
from tasks.domain.voices import Voice
from tasks.reading.voice import VOICES, VoiceNetwork

PARTS, LEFT_OUT = 12, 3
"""Parts that groups of sources fall into, and how many of them the probabilities are calibrated on."""
BY_HAND, SOFT, BLUNT = 2.0, 0.05, 1.5
"""Weight of a post labelled by hand; share of a label given to all voices alike; divisor of the teacher's log odds."""
MOOD_PENALTY, MOOD_STEPS = 1e-4, 60
TEACHER = Fit(rounds=15)
OF_TEACHER, OF_LABELS = Steps(4096, 4, 0.02), Steps(2048, 4, 0.003)
REMEMBERED = 60_000
"""Texts of the teacher's that the labels are learned together with."""

Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Texts:
    """What is learned from.

    Attributes:
        posts: with a known voice.
        runs: of these posts.
        seen: what the teacher's layers see of them.
        others: groups of further texts.
        other_runs, other_seen: the same of those.
    """

    posts: Sequence[Post]
    runs: csr_array
    seen: NDArray[np.float32]
    others: Sequence[str]
    other_runs: csr_array
    other_seen: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes a voice's log odds calibrated: ``factor * log odds + shift``; shift has shape (voices,)."""

    factor: float
    shift: Floats

    def shares(self, told: Floats) -> Floats:
        """Return calibrated probabilities of the voices: shape (posts, voices)."""
        return shares(self.factor * told[:, : len(VOICES)] + self.shift)


def read_texts(found: Sequence[Post], texts: Mapping[str, Sequence[str]]) -> Texts:
    """Return what posts, and texts by their source, have to be learned from."""
    teacher = word_network.untrained()
    others = [(GROUPS.get(source, source), text) for source, of in texts.items() for text in of]
    own, further = [post.text for post in found], [text for _, text in others]
    return Texts(
        found, runs_in(own), seen_by(teacher, own),
        [group for group, _ in others], runs_in(further), seen_by(teacher, further),
    )  # fmt: skip


def train(
    texts: Texts, learned: Callable[[str], bool], tell: Callable[[str], object] = lambda _: None
) -> VoiceNetwork:
    """Return a network that was fitted to the groups of sources that may be learned from, not calibrated."""
    own = np.flatnonzero([learned(post.kin) for post in texts.posts])
    further = np.flatnonzero([learned(group) for group in texts.others])
    found = [texts.posts[place] for place in own.tolist()]
    teacher = teach(found, texts.seen[own])
    told = teacher.told(texts.other_seen[further])
    soft = np.column_stack((shares(told[:, :-1] / BLUNT), 1 / (1 + np.exp(-told[:, -1])))).astype(np.float32)
    tell(f"the teacher told {len(further)} texts")
    of_group = Counter(texts.others[place] for place in further.tolist())
    weight = np.array([of_group[texts.others[place]] ** -0.5 for place in further.tolist()])
    layers = begin()
    fit(layers, texts.other_runs[further], soft, weight, OF_TEACHER)
    tell("learned what the teacher told")
    some = np.sort(np.random.default_rng(0).permutation(len(further))[:REMEMBERED])
    runs = csr_array(vstack((texts.runs[own], texts.other_runs[further[some]])).tocsr())
    labels = weights(found)
    both = np.concatenate((labels / labels.sum(), np.full(len(some), 0.25 / max(len(some), 1))))
    fit(layers, runs, np.vstack((truth(found), soft[some])), both, OF_LABELS)
    return packed(layers)


def teach(found: Sequence[Post], seen: NDArray[np.float32], how: Fit = TEACHER) -> WordNetwork:
    """Return the teacher, whose layers fit posts.

    Args:
        seen: of the posts (`word_network.seen_by`).
    """
    kinds = np.array([VOICES.index(post.voice) for post in found])
    hidden, out = fit_layers(seen, kinds, weights(found), len(VOICES), how)
    return replace(word_network.untrained(), hidden=hidden, out=out, mood=_mood(found, seen))


def truth(found: Sequence[Post]) -> NDArray[np.float32]:
    """Return the voices' shares and the mood of posts (`voice_student.fit`)."""
    of = np.full((len(found), len(VOICES) + 1), SOFT / len(VOICES), np.float32)
    for row, post in enumerate(found):
        of[row, VOICES.index(post.voice)] += 1 - SOFT
        good = _is_good(post)
        of[row, -1] = np.nan if good is None else good
    return of


def is_learned(kin: str) -> bool:
    """Return True if a group of sources is not left out for the calibration."""
    return sha256(kin.encode()).digest()[0] % PARTS >= LEFT_OUT


def for_calibration(post: Post) -> bool:
    """Whether a post is in the half that probabilities are calibrated on; figures are of the other half."""
    return int(digest(post.text), 16) % 2 == 0


def calibrated(found: Sequence[Post], told: Floats) -> Calibration:
    """Return what makes the probabilities of posts most likely, every source counting the same."""
    used = [place for place, post in enumerate(found) if for_calibration(post)]
    kinds = np.array([VOICES.index(found[place].voice) for place in used])
    of_source = Counter(found[place].source for place in used)
    weight = np.array([1 / min(of_source[found[place].source], 100) for place in used])

    def loss(values: Floats) -> float:
        likely = np.log(
            Calibration(values[0], values[1:]).shares(told[used])[np.arange(len(kinds)), kinds] + 1e-12
        )
        return float(-(weight * likely).sum() / weight.sum() + 1e-3 * (values[1:] ** 2).sum())

    best = minimize(loss, np.array([1.0] + [0.0] * len(VOICES)), method="L-BFGS-B").x
    return Calibration(float(best[0]), best[1:])


def with_calibration(network: VoiceNetwork, how: Calibration) -> VoiceNetwork:
    """Return a network whose probabilities are calibrated."""
    out = network.out.copy()
    out[:, :-1] *= how.factor
    out[-1, :-1] += how.shift
    return replace(network, out=out.astype(np.float32))


def write_network(network: VoiceNetwork) -> bytes:
    """Return the file of a network: the arrays of `VoiceNetwork`, by name."""
    file = BytesIO()
    np.savez_compressed(file, rows=network.rows, hidden=network.hidden, out=network.out)
    return file.getvalue()


def weights(found: Sequence[Post]) -> NDArray[np.float64]:
    """Return how much each post counts: every voice the same in all; of many posts of one source each counts less."""
    alike = Counter((post.source, post.voice, post.by_hand) for post in found)
    each = [
        alike[post.source, post.voice, post.by_hand] ** -0.5 * (BY_HAND if post.by_hand else 1.0)
        for post in found
    ]
    whole: dict[str, float] = defaultdict(float)
    for post, weight in zip(found, each, strict=True):
        whole[post.voice] += weight
    return np.array([weight / whole[post.voice] for post, weight in zip(found, each, strict=True)])


def _is_good(post: Post) -> bool | None:
    """What a post's author thought; a complaint read by hand is bad, praise is good."""
    return (
        post.good if post.good is not None else {Voice.COMPLAINT: False, Voice.PRAISE: True}.get(post.voice)
    )


def _mood(found: Sequence[Post], seen: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights of the teacher's sentiment: logistic regression with an L2 penalty."""
    said = [_is_good(post) for post in found]
    used = [place for place, one in enumerate(said) if one is not None]
    sign = np.array([1.0 if said[place] else -1.0 for place in used])
    weight = weights([found[place] for place in used])
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

    known = posts(shared)
    found = [*known, *rated_posts(shared, known)]
    tell(f"{len(found)} posts of {len({post.source for post in found})} sources")
    texts = read_texts(found, all_texts(shared))
    left_out = [post for post in known if not is_learned(post.kin)]
    part = train(texts, is_learned, tell)
    how = calibrated(left_out, part.told([post.text for post in left_out]))
    tell(f"calibrated by {len(left_out)} posts: {how}")
    whole = train(texts, lambda _: True, tell)
    target.write_bytes(write_network(with_calibration(whole, how)))


if __name__ == "__main__":
    run_training(main)
