"""Trains the weights of `tasks.reading.voice`.

    python -m bench.tools.train_voices ../shared/data tasks/reading/voice-weights.txt

Multinomial logistic regression with an L2 penalty (Hastie, Tibshirani and Friedman, The Elements of Statistical
Learning, 4.4), by L-BFGS; a run of characters takes part if several sources have it, so that the marks of one source
tell nothing. Every source is left out once: what is said of its posts is learned from the others alone, and on these
the probabilities are calibrated: one factor and one shift a voice (vector scaling; Guo et al., ICML 2017, section
4.2), and one weight of the rule of keywords; all are folded into the weights. The sentiment is a second regression, on
posts whose author said good or bad. The same posts give the same file.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack

from bench.tools.keyword_rule import excess, signs
from bench.tools.voice_posts import Post, digest, posts
from tasks.domain.voices import Voice
from tasks.reading.voice import VOICES, VoiceWeights, cue_densities, cues, known_runs, plain, run_keys

LEAST_SOURCES, LEAST_POSTS, KEPT = 5, 8, 12_000
"""A run takes part if so many sources and posts have it; so many that weigh most are kept."""

PENALTY, BY_HAND, STEPS = 1e-4, 5.0, 60
"""Of squared weights; how much more a post labelled by hand counts; most steps of L-BFGS."""

Floats = NDArray[np.float64]

_HEAD = """\
# Weights of tasks/reading/voice.py: run of characters, then of complaint, praise, question, news, company, other, and
# of the sentiment; cues are in angle brackets; the last line is the constant. Made by
# `python -m bench.tools.train_voices` from {posts} posts of
# {sources} sources, which docs/voices.md names. No post is in here: only runs of at most four characters that at least
# {least} sources have.
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes a voice's sum a calibrated one: ``factor * sum + shift``, and of a buyer's ``+ rule * excess``.

    Attributes:
        rule: weight of `excess`, by which who speaks of faults and use is a buyer, whatever the runs say.
    """

    factor: float
    shift: Floats
    rule: float = 0.0

    def shares(self, sums: Floats, excess: Floats) -> Floats:
        """Calibrated probabilities of the voices: shape (posts, voices)."""
        told = self.factor * sums[:, :-1] + self.shift
        told[:, BUYERS] += self.rule * excess[:, None]
        return softmax(told)


BUYERS = [VOICES.index(voice) for voice in (Voice.COMPLAINT, Voice.PRAISE)]


def train(found: Sequence[Post]) -> VoiceWeights:
    """The weights that fit posts, not calibrated."""
    shown = [plain(post.text) for post in found]
    keys = _shared_runs(found, [run_keys(text) for text in shown])
    rows = _matrix(shown, keys)
    table = _fit(rows, np.array([VOICES.index(post.voice) for post in found]), _weights(found), len(VOICES))
    table -= table.mean(1, keepdims=True)
    told = [place for place, post in enumerate(found) if post.good is not None]
    kinds = np.array([int(bool(found[place].good)) for place in told])
    two = _fit(rows[told], kinds, _weights([found[place] for place in told]), 2)
    table = np.hstack([table, two[:, 1:] - two[:, :1]])
    seen = np.sqrt(np.asarray((rows[:, : len(keys)] != 0).sum(0)).ravel())
    kept = np.sort(np.argsort(-np.abs(table[: len(keys)]).max(1) * seen, kind="stable")[:KEPT])
    return VoiceWeights(keys[kept], table[[*kept, *range(len(keys), len(table))]].astype(np.float32))


def sums_of(found: Sequence[Post], by: VoiceWeights) -> Floats:
    """What some weights add up to for each post: shape (posts, voices + 1)."""
    rows = _matrix([plain(post.text) for post in found], by.keys)
    return np.asarray(rows @ by.table.astype(float))


def held_out(found: Sequence[Post], tell: Callable[[str], object] = lambda _: None) -> Floats:
    """The same, each source's by weights of the other sources alone."""
    sums = np.zeros((len(found), len(VOICES) + 1))
    for source in sorted({post.source for post in found}):
        here = [place for place, post in enumerate(found) if post.source == source]
        others = train([post for post in found if post.source != source])
        sums[here] = sums_of([found[place] for place in here], others)
        tell(source)
    return sums


def for_calibration(post: Post) -> bool:
    """Whether a post is in the half that probabilities are calibrated on; figures are of the other half."""
    return int(digest(post.text), 16) % 2 == 0


def calibrated(found: Sequence[Post], sums: Floats) -> Calibration:
    """What makes held-out probabilities most likely, every source counting the same."""
    used = [place for place, post in enumerate(found) if for_calibration(post)]
    kinds = np.array([VOICES.index(found[place].voice) for place in used])
    of_source = Counter(found[place].source for place in used)
    weight = np.array([1 / min(of_source[found[place].source], 100) for place in used])

    told = excess([found[place] for place in used])

    def loss(values: Floats) -> float:
        shares = Calibration(values[0], values[2:], values[1]).shares(sums[used], told)
        likely = np.log(shares[np.arange(len(kinds)), kinds] + 1e-12)
        return float(-(weight * likely).sum() / weight.sum() + 1e-3 * (values[2:] ** 2).sum())

    best = minimize(loss, np.array([1.0, 0.0] + [0.0] * len(VOICES)), method="L-BFGS-B").x
    return Calibration(float(best[0]), best[2:], float(best[1]))


def with_calibration(by: VoiceWeights, how: Calibration) -> VoiceWeights:
    """Weights whose probabilities are calibrated."""
    table = by.table.copy()
    table[:, :-1] *= how.factor
    table[-1, :-1] += how.shift
    of_cues = table[len(by.keys) : -1]
    of_cues[:, BUYERS] += (how.rule * signs())[:, None].astype(np.float32)
    return VoiceWeights(by.keys, table)


def softmax(sums: Floats) -> Floats:
    """Probabilities of rows of sums."""
    grown = np.exp(sums - sums.max(1, keepdims=True))
    return np.asarray(grown / grown.sum(1, keepdims=True))


def _shared_runs(found: Sequence[Post], runs: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The runs that enough sources and posts have, ascending."""
    places = {source: place for place, source in enumerate(sorted({post.source for post in found}))}
    once = [np.unique(of_one) for of_one in runs]
    every = np.concatenate(once)
    keys, counts = np.unique(every, return_counts=True)
    keys = keys[counts >= LEAST_POSTS]
    in_sources = np.zeros((len(places), len(keys)), bool)
    for post, of_one in zip(found, once, strict=True):
        in_sources[places[post.source], known_runs(of_one, keys)] = True
    return np.asarray(keys[in_sources.sum(0) >= LEAST_SOURCES])


def _matrix(shown: Sequence[str], keys: NDArray[np.uint64]) -> Any:
    """One row a plain text: 1 / sqrt(its known runs) for each of them, then its cues, then 1."""
    runs = [run_keys(text) for text in shown]
    known = [known_runs(of_one, keys) for of_one in runs]
    values = np.concatenate([np.full(len(rows), max(len(rows), 1) ** -0.5) for rows in known])
    ends = np.cumsum([0, *map(len, known)])
    left = csr_array((values, np.concatenate(known), ends), shape=(len(shown), len(keys)))
    rest = [[*cue_densities(of_one, len(text)), 1.0] for of_one, text in zip(runs, shown, strict=True)]
    return hstack([left, csr_array(np.array(rest))]).tocsr()


def _weights(found: Sequence[Post]) -> Floats:
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


def _fit(rows: Any, kinds: NDArray[np.intp], weight: Floats, count: int) -> Floats:
    """Weights of a logistic regression: shape (columns, kinds); the last column is the constant, not penalised."""
    shape, weight = (rows.shape[1], count), weight / weight.sum()
    target, turned = np.eye(count)[kinds], rows.T.tocsr()

    def loss(values: Floats) -> tuple[float, Floats]:
        table = values.reshape(shape)
        shares = softmax(rows @ table)
        bent = table.copy()
        bent[-1] = 0.0
        likely = np.log(shares[np.arange(len(kinds)), kinds] + 1e-12)
        slope = turned @ ((shares - target) * weight[:, None]) + PENALTY * bent
        return float(-(weight * likely).sum() + PENALTY / 2 * (bent**2).sum()), slope.ravel()

    best = minimize(loss, np.zeros(shape[0] * count), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(best.x.reshape(shape))


def written(by: VoiceWeights, found: Sequence[Post]) -> str:
    """The text of the file of weights."""
    head = _HEAD.format(posts=len(found), sources=len({post.source for post in found}), least=LEAST_SOURCES)
    names = (*map(_run_of, by.keys.tolist()), *(f"<{cue}>" for cue in cues()), "")
    lines = [
        "\t".join((run, *(f"{number:.2f}" for number in numbers)))
        for run, numbers in zip(names, by.table, strict=True)
        if run.isprintable()
    ]
    return head + "\n".join(lines) + "\n"


def _run_of(key: int) -> str:
    """The characters of a key."""
    marks = [key >> 16 * place & 0xFFFF for place in range(4)]
    return "".join(chr(mark) for mark in reversed(marks) if mark)


def main(shared: Path, target: Path) -> None:
    """Trains on the posts of the shared data and writes the weights."""
    found = posts(shared)
    how = calibrated(found, held_out(found, lambda source: print(f"held out: {source}", file=sys.stderr)))
    target.write_text(written(with_calibration(train(found), how), found), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("write: python -m bench.tools.train_voices SHARED_DATA WEIGHTS_FILE")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
