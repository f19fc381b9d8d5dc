"""The voice of a text: a buyer's complaint or praise, a question, news, a company's, or another's.

A text is described by the runs of one to four characters that it holds, and by how dense its cues are: words of faults,
of redress, of reports, of campaigns and so on, which mean the same of any product. Each run and cue has a weight for
every voice and one for the sentiment (`voice-weights.txt`); the probabilities are those of a multinomial logistic
regression.
`docs/voices.md` says what the voices mean, how the weights were made and what they reach.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from tasks.domain.voices import Voice

HEAD, TAIL = 280, 120
"""Of a longer text only so many characters of its beginning and of its end are read."""

LONGEST = 4
"""Characters of the longest run."""


VOICES = tuple(Voice)


@dataclass(frozen=True)
class VoiceEstimate:
    """The model's estimate of one text.

    Attributes:
        voice: the most probable one.
        probability: of that voice, calibrated, 0 to 1.
        buyer: that a buyer speaks: complaint and praise together, 0 to 1.
        sentiment: -1 (bad) to 1 (good), whoever speaks.
    """

    voice: Voice
    probability: float
    buyer: float
    sentiment: float


@dataclass(frozen=True)
class VoiceWeights:
    """Weights of runs and cues.

    Attributes:
        keys: of the runs (`run_key`), ascending; shape (runs,).
        table: one row for each run, then for each of `cues`, then the constant; one column for each of `VOICES`, then
            the sentiment.
    """

    keys: NDArray[np.uint64]
    table: NDArray[np.float32]


def voice_of(text: str, title: str = "") -> VoiceEstimate:
    """The voice of a text.

    Args:
        text: what was said.
        title: read only where there is no text: of a thread it is the asker's, and of no reply.
    """
    return estimate(text if text.strip() else title, weights())


def estimate(text: str, by: VoiceWeights) -> VoiceEstimate:
    """The estimate of a text by given weights."""
    shown = plain(text)
    runs = run_keys(shown)
    sums = by.table[-1] + cue_densities(runs, len(shown)) @ by.table[len(by.keys) : -1]
    if len(rows := known_runs(runs, by.keys)):
        sums = sums + by.table[rows].sum(0) / np.sqrt(len(rows))
    grown = np.exp(sums[:-1] - sums[:-1].max())
    shares = grown / grown.sum()
    best = int(shares.argmax())
    return VoiceEstimate(
        voice=VOICES[best],
        probability=float(shares[best]),
        buyer=float(shares[0] + shares[1]),
        sentiment=float(np.tanh(sums[-1] / 2)),
    )


def known_runs(found: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Rows of `keys` that are among some runs, each once."""
    at = np.minimum(keys.searchsorted(found), len(keys) - 1)
    rows: NDArray[np.intp] = np.unique(at[keys[at] == found])
    return rows


def run_keys(shown: str) -> NDArray[np.uint64]:
    """The runs of a plain text: their characters packed, 16 bits each; one may come several times."""
    codes = np.frombuffer(f" {shown} ".encode("utf-16-le", "replace"), np.uint16).astype(np.uint64)
    found = [packed := codes]
    for longer in range(1, LONGEST):
        if len(codes) <= longer:
            break
        packed = (packed[:-1] << np.uint64(16)) | codes[longer:]
        found.append(packed)
    return np.concatenate(found)


def run_key(run: str) -> int:
    """The key of one run of characters."""
    return sum(ord(mark) << 16 * place for place, mark in enumerate(reversed(run)))


_CUE_EVERY, _CUE_FROM, _CUE_MOST = 60, 30, 2.0


def cue_densities(runs: NDArray[np.uint64], chars: int) -> NDArray[np.float64]:
    """How dense each cue is in a plain text: found once in about 60 characters is 1; 2 at most.

    Args:
        runs: of the text (`run_keys`).
        chars: how many characters it has.
    """
    words, of = _cue_words()
    at = np.minimum(words.searchsorted(runs), len(words) - 1)
    counts = np.bincount(of[at[words[at] == runs]], minlength=len(cues()))
    dense: NDArray[np.float64] = np.minimum(counts * (_CUE_EVERY / (chars + _CUE_FROM)), _CUE_MOST)
    return dense


@cache
def cues() -> Mapping[str, Sequence[str]]:
    """Words that tell a voice whatever the text is about: each cue's name and words."""
    lines = (line.split("\t") for line in _text_of("voice-cues.txt").splitlines() if not line.startswith("#"))
    return {name: words.split() for name, words in lines}


@cache
def _cue_words() -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Keys of all words of cues, ascending, and the place of the cue of each."""
    found = sorted((run_key(word), place) for place, words in enumerate(cues().values()) for word in words)
    return np.array([key for key, _ in found], np.uint64), np.array([place for _, place in found])


_URL = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+", re.IGNORECASE)
_NAME = re.compile(r"@[\w\-]{1,30}")
_FACE = re.compile(r"\[[^\[\]\s]{1,8}\]")
_NUMBER = re.compile(r"\d+")
_BLANK = re.compile(r"\s+")
_RARE = re.compile(r"[^\u0000-\uffff]")


def plain(text: str) -> str:
    """A text without what only its site writes: addresses, names and faces are a mark each (U, A, F), digits 0."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]} {text[-TAIL:]}"
    shown = unicodedata.normalize("NFKC", text).lower()
    shown = _FACE.sub("F", _NAME.sub("A", _URL.sub("U", shown)))
    return _BLANK.sub(" ", _NUMBER.sub("0", _RARE.sub("F", shown))).strip()


@cache
def weights() -> VoiceWeights:
    """The weights that come with the project."""
    return parse_weights(_text_of("voice-weights.txt"))


def parse_weights(text: str) -> VoiceWeights:
    """Reads weights: a line ``run<tab>numbers`` each, cues after the runs, the constant last; others are comments."""
    lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
    runs = lines[: -1 - len(cues())]
    return VoiceWeights(
        np.array([run_key(run) for run, *_ in runs], np.uint64),
        np.array([numbers for _, *numbers in lines], np.float32),
    )


def _text_of(file: str) -> str:
    return files("tasks.reading").joinpath(file).read_text("utf-8")


MODEL = hashlib.sha256((_text_of("voice-weights.txt") + _text_of("voice-cues.txt")).encode()).hexdigest()[:12]
"""The version of the weights."""
