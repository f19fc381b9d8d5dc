"""Trains the network of `tasks.reading.judge.voice`.

    python -m research.training.train_voices ../shared/data tasks/reading/judge/voice-network.npz

A teacher over word vectors (`research.training.voices.word_network`) is fitted to the posts whose voice is known; it tells the
voice of all texts of the sources that may be learned from. The network (`research.training.voices.voice_student`) learns what
the teacher told and invented posts (`research.training.voices.voice_pairs`), then the posts' labels. This is done once for
each of `FOLDS` parts of the sources, with the part left out, and once with everything. What the first networks say of the
parts that they never saw calibrates the last one: one factor and one shift a voice (vector scaling; Guo et al., ICML 2017,
section 4.2) for a text alone, folded into the last layer; one factor and one shift of the buyers for each kind of site. On one machine the same posts
give the same file.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack
from scipy.special import softmax

from research.training.public_titles import run_training
from research.training.voices import word_network
from research.training.voices.voice_layers import Fit, fit_layers
from research.training.voices.voice_mixed import GROUPS, SEARCHED
from research.training.voices.voice_pairs import invented_posts
from research.training.voices.voice_posts import Post, all_texts, posts
from research.training.voices.voice_rated import rated_posts
from research.training.voices.voice_student import Steps, begin, fit, packed, pick, runs_in, shares
from research.training.voices.word_network import WordNetwork, seen_by
from splitter.catalog.names import Group
from tasks.domain.voices import Voice
from tasks.reading.judge.voice import VOICES, VoiceNetwork

FOLDS = 3
"""Parts of the sources; each is left out once, and the probabilities are calibrated on all of them."""
TO_ALONE = 0.02
"""Penalty of what the calibration of a kind of site differs from the one of a text alone."""
BUYERS = (Voice.COMPLAINT, Voice.PRAISE)
BY_RULE = {Group.COMPLAINTS: (1.0, (2.5, 0, 0, 0, 0, 0))}
"""Factor and shifts of a kind of site that is too rare among the posts by hand, set by hand."""
INVENTED = 0.05
"""Share of the invented posts among those that are learned from the teacher."""
BY_HAND, SOFT, BLUNT = 2.0, 0.05, 1.5
"""Weight of a post labelled by hand; share of a label given to all voices alike; divisor of the teacher's log odds."""
MOOD_PENALTY, MOOD_STEPS = 1e-4, 60
TEACHER = Fit(rounds=15)
OF_TEACHER, OF_LABELS = Steps(4096, 4, 0.02), Steps(2048, 4, 0.003)
PROCESSES = 2
LEAST_OF_SOURCE = 100
"""Posts that a source has, at least, to count fully when probabilities are calibrated."""
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
        """Return calibrated probabilities of the voices: shape (posts, voices).

        In double precision: slopes of what they are fitted by are taken from differences.
        """
        return softmax(self.factor * told[:, : len(VOICES)].astype(np.float64) + self.shift, 1)


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
    invented = invented_posts()
    invented_runs, invented_truth = runs_in([post.text for post in invented]), truth(invented)
    layers = begin()
    runs = pick(texts.other_runs, further)
    drawn = np.concatenate((weight / weight.sum(), np.full(len(invented), INVENTED / len(invented))))
    fit(layers, _stack(runs, invented_runs), np.vstack((soft, invented_truth)), drawn, OF_TEACHER)
    tell("learned what the teacher told")
    some = np.sort(np.random.default_rng(0).permutation(len(further))[:REMEMBERED])
    labels = weights([*found, *invented])
    drawn = np.concatenate((labels / labels.sum(), np.full(len(some), 0.25 / max(len(some), 1))))
    runs = _stack(pick(texts.runs, own), invented_runs, pick(runs, some))
    fit(layers, runs, np.vstack((truth(found), invented_truth, soft[some])), drawn, OF_LABELS)
    return packed(layers)


def _stack(*runs: csr_array) -> csr_array:
    return csr_array(vstack(runs).tocsr())


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


def fold_of(kin: str) -> int:
    """Return the part that a group of sources falls into, below `FOLDS`."""
    return sha256(kin.encode()).digest()[0] % FOLDS


def calibrated(found: Sequence[Post], told: Floats) -> Calibration:
    """Return what makes the probabilities of posts most likely, every source counting the same."""
    kinds = np.array([VOICES.index(post.voice) for post in found])
    weight = _by_source(found)

    def loss(values: Floats) -> float:
        likely = np.log(Calibration(values[0], values[1:]).shares(told)[np.arange(len(kinds)), kinds] + 1e-12)
        return float(-(weight * likely).sum() + 1e-3 * (values[1:] ** 2).sum())

    best = minimize(loss, np.array([1.0] + [0.0] * len(VOICES)), method="L-BFGS-B").x
    return Calibration(float(best[0]), best[1:])


def calibrated_there(found: Sequence[Post], told: Floats, alone: Calibration) -> Calibration:
    """Return what makes the probability most likely that a buyer speaks, in posts of one kind of site.

    Which of the two voices of a buyer it is, and which of the others, is left to the text: only one factor and one shift
    of the buyers are fitted, near those of a text alone.
    """
    is_buyer = np.isin([post.voice for post in found], BUYERS)
    weight = _by_source(found)

    def there(values: Floats) -> Calibration:
        shift = values[0] * alone.shift
        shift[: len(BUYERS)] += values[1]
        return Calibration(float(values[0] * alone.factor), shift)

    def loss(values: Floats) -> float:
        buyer = there(values).shares(told)[:, : len(BUYERS)].sum(1)
        likely = np.log(np.where(is_buyer, buyer, 1 - buyer) + 1e-6)
        return float(-(weight * likely).sum() + TO_ALONE * ((values - (1, 0)) ** 2).sum())

    return there(minimize(loss, np.array([1.0, 0.0]), method="L-BFGS-B").x)


def _by_source(found: Sequence[Post]) -> Floats:
    """Return weights of posts: sources count the same, one with less than `LEAST_OF_SOURCE` posts less."""
    of_source = Counter(post.source for post in found)
    weight = np.array([1 / max(of_source[post.source], LEAST_OF_SOURCE) for post in found])
    weight /= weight.sum()
    return weight


def with_calibration(
    network: VoiceNetwork, alone: Calibration, of_kinds: Mapping[Group, Calibration]
) -> VoiceNetwork:
    """Return a network whose probabilities are calibrated, for a text alone and for the kinds of sites.

    A kind's factor and shifts are stored as they follow on those of a text alone.
    """
    out = network.out.copy()
    out[:, :-1] *= alone.factor
    out[-1, :-1] += alone.shift
    factors = {kind: factor for kind, (factor, _) in BY_RULE.items()}
    shifts = {kind: np.array(shift, np.float32) for kind, (_, shift) in BY_RULE.items()}
    for kind, how in of_kinds.items():
        factors[kind] = how.factor / alone.factor
        shifts[kind] = (how.shift - factors[kind] * alone.shift).astype(np.float32)
    return replace(network, out=out.astype(np.float32), factors=factors, shifts=shifts)


def write_network(network: VoiceNetwork) -> bytes:
    """Return the file of a network: the arrays of `VoiceNetwork`, by name."""
    file = BytesIO()
    np.savez_compressed(
        file,
        rows=network.rows,
        hidden=network.hidden,
        out=network.out,
        kinds=np.array([kind.value for kind in network.factors], "U12"),
        factors=np.array(list(network.factors.values()), np.float32),
        shifts=np.array(list(network.shifts.values()), np.float32).reshape(-1, len(VOICES)),
    )
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


_held: list[Texts] = []
"""What a process of `main` learns from."""


def _hold(texts: Texts) -> None:
    _held.append(texts)


def _train_without(fold: int | None) -> VoiceNetwork:
    return train(
        _held[0], lambda kin: fold is None or fold_of(kin) != fold, lambda line: print(line, file=sys.stderr)
    )


def main(shared: Path, target: Path) -> None:
    """Trains on the posts of the shared data and writes the network."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    known = posts(shared)
    found = [*known, *rated_posts(shared, known)]
    tell(f"{len(found)} posts of {len({post.source for post in found})} sources")
    texts = read_texts(found, all_texts(shared))
    with ProcessPoolExecutor(PROCESSES, get_context("fork"), _hold, (texts,)) as pool:
        *parts, whole = pool.map(_train_without, (*range(FOLDS), None))
    told = np.zeros((len(known), len(VOICES) + 1), np.float32)
    for fold, part in enumerate(parts):
        left_out = [row for row, post in enumerate(known) if fold_of(post.kin) == fold]
        told[left_out] = part.told([known[row].text for row in left_out])
    alone = calibrated(known, told)
    of_kinds = {}
    for kind, of_kind in SEARCHED.items():
        rows = [row for row, post in enumerate(known) if post.source in of_kind]
        of_kinds[kind] = calibrated_there([known[row] for row in rows], told[rows], alone)
        tell(f"{kind}: {of_kinds[kind]} by {len(rows)} posts")
    tell(f"alone: {alone}")
    target.write_bytes(write_network(with_calibration(whole, alone, of_kinds)))


if __name__ == "__main__":
    run_training(main)
