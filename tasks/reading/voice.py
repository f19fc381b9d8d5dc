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
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from tasks.domain.voices import Voice

HEAD, TAIL = 280, 120
"""Of a longer text only so many characters of its beginning and of its end are read."""

LONGEST = 4
"""Characters of the longest run."""


VOICES = tuple(Voice)

_CUE_EVERY, _CUE_FROM, _CUE_MOST = 60, 30, 2.0
_SLOT_BITS = 20


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

    @cached_property
    def maybe(self) -> NDArray[np.bool_]:
        """True at the slot (`_slots`) of each run that has a weight or is a cue; most others need no search."""
        made = np.zeros(1 << _SLOT_BITS, np.bool_)
        made[_slots(self.keys)] = made[_slots(_cue_words()[0])] = True
        return made


def voice_of(text: str, title: str = "") -> VoiceEstimate:
    """The voice of a text.

    Args:
        text: what was said.
        title: read only where there is no text: of a thread it is the asker's, and of no reply.
    """
    return voices_of([(text, title)])[0]


def voices_of(texts: Sequence[tuple[str, str]]) -> list[VoiceEstimate]:
    """The voices of texts, each with its title (`voice_of`); those of a page together cost less than one by one."""
    return estimates([text if text.strip() else title for text, title in texts], weights())


def estimate(text: str, by: VoiceWeights) -> VoiceEstimate:
    """The estimate of a text by given weights."""
    return estimates([text], by)[0]


def estimates(texts: Sequence[str], by: VoiceWeights) -> list[VoiceEstimate]:
    """The estimates of texts by given weights; that of a text does not depend on the others."""
    if not texts:
        return []
    shown = [plain(text) for text in texts]
    runs, of = _runs_of(shown)
    kept = by.maybe[_slots(runs)]
    runs, of = runs[kept], of[kept]
    dense = _cue_densities_of(runs, of, [len(one) for one in shown])
    # Not `@`, whose last digits depend on how many rows there are.
    sums = np.einsum("tc,cv->tv", dense, by.table[len(by.keys) : -1]) + by.table[-1]
    at = np.minimum(by.keys.searchsorted(runs), len(by.keys) - 1)
    known = by.keys[at] == runs
    # Each run of a text counts once: its text and its row as one number, which np.unique sorts by text.
    text_of, rows = np.divmod(np.unique(of[known] * len(by.keys) + at[known]), len(by.keys))
    if len(rows):
        first = np.flatnonzero(np.diff(text_of, prepend=-1))
        counts = np.diff(first, append=len(rows))
        sums[text_of[first]] += np.add.reduceat(by.table[rows], first) / np.sqrt(counts)[:, None]
    grown = np.exp(sums[:, :-1] - sums[:, :-1].max(1, keepdims=True))
    shares = grown / grown.sum(1, keepdims=True)
    best, sentiments = shares.argmax(1), np.tanh(sums[:, -1] / 2)
    return [
        VoiceEstimate(
            voice=VOICES[voice],
            probability=float(share[voice]),
            buyer=float(share[0] + share[1]),
            sentiment=float(sentiment),
        )
        for voice, share, sentiment in zip(best, shares, sentiments, strict=True)
    ]


def _runs_of(shown: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The runs of plain texts, and the place of the text of each.

    The texts stand one after the other between blanks. A run over the end of one holds two blanks together, which no
    run of a plain text does, as those of its inside are one.
    """
    joined = "".join(f" {one} " for one in shown)
    codes = np.frombuffer(joined.encode("utf-16-le", "replace"), np.uint16).astype(np.uint64)
    of = np.repeat(np.arange(len(shown)), [len(one) + 2 for one in shown])
    found, places = [packed := codes], [of]
    for longer in range(1, LONGEST):
        if len(codes) <= longer:
            break
        packed = (packed[:-1] << np.uint64(16)) | codes[longer:]
        found.append(packed)
        places.append(of[: len(packed)])
    return np.concatenate(found), np.concatenate(places)


def _cue_densities_of(
    runs: NDArray[np.uint64], of: NDArray[np.intp], chars: Sequence[int]
) -> NDArray[np.float64]:
    """How dense each cue is in each of some texts: `cue_densities`, one row a text."""
    words, cue_of = _cue_words()
    at = np.minimum(words.searchsorted(runs), len(words) - 1)
    found = words[at] == runs
    n = len(cues())
    counts = np.bincount(of[found] * n + cue_of[at[found]], minlength=len(chars) * n).reshape(len(chars), n)
    dense: NDArray[np.float64] = np.minimum(
        counts * (_CUE_EVERY / (np.array(chars)[:, None] + _CUE_FROM)), _CUE_MOST
    )
    return dense


def known_runs(found: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Rows of `keys` that are among some runs, each once."""
    at = np.minimum(keys.searchsorted(found), len(keys) - 1)
    rows: NDArray[np.intp] = np.unique(at[keys[at] == found])
    return rows


def run_keys(shown: str) -> NDArray[np.uint64]:
    """The runs of a plain text: their characters packed, 16 bits each; one may come several times."""
    return _runs_of([shown])[0]


def _slots(runs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each run, below 2 ** _SLOT_BITS (Fibonacci hashing)."""
    return (runs * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _SLOT_BITS)


def run_key(run: str) -> int:
    """The key of one run of characters."""
    return sum(ord(mark) << 16 * place for place, mark in enumerate(reversed(run)))


def cue_densities(runs: NDArray[np.uint64], chars: int) -> NDArray[np.float64]:
    """How dense each cue is in a plain text: found once in about 60 characters is 1; 2 at most.

    Args:
        runs: of the text (`run_keys`).
        chars: how many characters it has.
    """
    dense: NDArray[np.float64] = _cue_densities_of(runs, np.zeros(len(runs), np.intp), [chars])[0]
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
