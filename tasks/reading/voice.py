"""The voice of a text: a buyer's complaint or praise, a question, news, a company's, or another's.

A small network (a deep averaging network: Iyyer et al., ACL 2015): the vectors of a text's words are added up, divided
by the root of their number; with how dense the text's cues are, they pass one hidden layer. Words of a like use have
like vectors, so a word that no labelled text had speaks, too. `docs/voices.md` says what the voices mean, how the
network was made and what it reaches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from tasks.domain.voices import Voice, VoiceJudgement
from tasks.reading.voice_text import RowsOfRuns, cue_text, cue_words, cues, densities, plain_texts, runs_of

VOICES = tuple(Voice)
_NAMES = tuple(voice.value for voice in VOICES)

_AT_ONCE = 64
"""Texts whose runs are in memory at once."""

_ROWS = 32
"""Texts that pass the layers at once, some of them empty ones."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class VoiceNetwork:
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


def voice_of(text: str, title: str = "") -> VoiceJudgement:
    """The voice of a text.

    Args:
        text: what was said.
        title: read only where there is no text: of a thread it is the asker's, and of no reply.
    """
    return voices_of([(text, title)])[0]


def voices_of(texts: Sequence[tuple[str, str]]) -> list[VoiceJudgement]:
    """The voices of texts, each with its title (`voice_of`), none of which depends on the others.

    Those of a page at once cost less than one by one.
    """
    read = [text if text.strip() else title for text, title in texts]
    parts = (read[start : start + _AT_ONCE] for start in range(0, len(read), _AT_ONCE))
    return [one for part in parts for one in _judged(part)]


def _judged(texts: Sequence[str]) -> Iterator[VoiceJudgement]:
    by = network()
    told = by.told(by.seen(plain_texts(texts))).astype(float)
    shares = np.exp(told[:, :-1] - told[:, :-1].max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    buyers, sentiments = shares[:, 0] + shares[:, 1], np.tanh(told[:, -1] / 2)
    columns = (shares.argmax(1).tolist(), shares.max(1).tolist(), buyers.tolist(), sentiments.tolist())
    for best, probability, buyer, sentiment in zip(*columns, strict=True):
        yield VoiceJudgement(_NAMES[best], probability, min(buyer, 1.0), sentiment, MODEL)


def _firsts(ascending: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each value comes first. (`numpy.diff` with a value before costs three times as much.)"""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new.nonzero()[0]


@cache
def network() -> VoiceNetwork:
    """The network that comes with the project."""
    return read_network(_file())


def read_network(file: bytes) -> VoiceNetwork:
    """Read a network from a file of its arrays, by name."""
    with np.load(BytesIO(file), allow_pickle=False) as held:
        parts = {name: held[name] for name in ("keys", "vectors", "hidden", "out", "mood")}
    if parts["hidden"].shape[0] != parts["vectors"].shape[1] + len(cues()) + 1:
        raise ValueError("voice-network.npz is of other cues than voice-cues.txt: train the voices again")
    return VoiceNetwork(**parts)


def _file() -> bytes:
    return files("tasks.reading").joinpath("voice-network.npz").read_bytes()


MODEL = hashlib.sha256(_file() + cue_text().encode()).hexdigest()[:12]
"""The version of the network and its cues."""
