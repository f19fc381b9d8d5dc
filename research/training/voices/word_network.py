"""A network over word vectors: the teacher of the network that `tasks.reading.judge.voice` ships.

A deep averaging network (Iyyer et al., ACL 2015): the vectors of a text's words are added up, divided by the root of
their number; with how dense the text's cues are, they pass one hidden layer. Words of a like use have like vectors, so
a word that stands in no labelled text has a meaning. It takes ten times the student's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from research.training.voices.word_text import RowsOfRuns, cue_words, cues, densities, plain_texts, runs_of
from tasks.domain.voices import Voice

WORDS = Path(__file__).with_name("voice-words.npz")
"""Words and their vectors, as `research.training.voices.voice_words` makes them."""

VOICES = tuple(Voice)

_ROWS = 32
"""Texts that pass the layers at once, some of them empty ones."""
_AT_ONCE = 64
"""Texts whose runs are in memory at once."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WordNetwork:
    """Word vectors and the layers behind them.

    What a layer sees has a last value of 1, whose weights are its constants.

    Attributes:
        keys: of the words (`voice_text.run_key`); shape (words,).
        vectors: of the words; shape (words, size).
        hidden: of the hidden layer, whose values below 0 become 0; shape (size + cues + 1, hidden).
        out: of the voices' log odds; shape (hidden + 1, voices).
        mood: of the sentiment's log odds, from what the hidden layer sees; shape (size + cues + 1,).
    """

    keys: NDArray[np.uint64]
    vectors: NDArray[np.int8]
    hidden: Floats
    out: Floats
    mood: Floats

    @cached_property
    def rows(self) -> RowsOfRuns:
        """Where the row of each word is found; the words of cues come after them."""
        return RowsOfRuns(np.concatenate((self.keys, cue_words()[0])))

    @cached_property
    def values(self) -> Floats:
        """The vectors as they are added up: whole numbers, so that their order does not matter."""
        return self.vectors.astype(np.float32)

    def seen(self, texts: Sequence[str]) -> Floats:
        """What the hidden layer sees of plain texts; shape (texts, size + cues + 1)."""
        runs, of = runs_of(texts)
        places, rows = self.rows.of(runs)
        of, n = of[places], len(self.keys)
        size = self.vectors.shape[1]
        seen = np.ones((len(texts), len(self.hidden)), np.float32)
        cue = rows >= n
        seen[:, size:-1] = densities(of[cue], cue_words()[1][rows[cue] - n], [len(one) for one in texts])
        seen[:, :size] = 0
        # Each word of a text counts once.
        held = (of * n + rows)[~cue]
        held.sort()
        text_of, rows = np.divmod(held[_firsts(held)], n)
        if len(rows):
            first = _firsts(text_of)
            for text, of_text in zip(text_of[first].tolist(), np.split(rows, first[1:]), strict=True):
                seen[text, :size] = self.values.take(of_text, 0).sum(0) / np.sqrt(np.float32(len(of_text)))
        return seen

    def told(self, seen: Floats) -> Floats:
        """The voices' log odds, then the sentiment's; shape (texts, voices + 1).

        Always as many rows at once: the last digits of a product of matrices depend on how many there are.
        """
        rows = np.zeros((-(-len(seen) // _ROWS) * _ROWS, seen.shape[1]), np.float32)
        rows[: len(seen)] = seen
        told = np.empty((len(rows), len(VOICES) + 1), np.float32)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            told[start : start + _ROWS, :-1] = (
                np.maximum(part @ self.hidden, 0) @ self.out[:-1] + self.out[-1]
            )
            told[start : start + _ROWS, -1] = part @ self.mood
        return told[: len(seen)]


def _firsts(ascending: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each value comes first. (`numpy.diff` with a value before costs three times as much.)"""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new.nonzero()[0]


def untrained() -> WordNetwork:
    """Return a network with the vectors of `WORDS`, whose layers say nothing yet."""
    with np.load(WORDS, allow_pickle=False) as held:
        keys, vectors = held["keys"], held["vectors"]
    size = vectors.shape[1] + len(cues()) + 1
    nothing = (np.zeros((size, 1)), np.zeros((2, len(VOICES))), np.zeros(size))
    return WordNetwork(keys, vectors, *(layer.astype(np.float32) for layer in nothing))


def seen_by(network: WordNetwork, texts: Sequence[str]) -> Floats:
    """Return what a network's layers see of texts; shape (texts, seen)."""
    parts = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
    return np.vstack([network.seen(plain_texts(part)) for part in parts])
