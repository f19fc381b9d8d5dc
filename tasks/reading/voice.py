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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from splitter.normalize import nfkc

from tasks.domain.voices import Voice, VoiceJudgement

HEAD, TAIL = 280, 120
"""Of a longer text only so many characters of its beginning and of its end are read."""

LONGEST = 4
"""Characters of the longest run."""


VOICES = tuple(Voice)
_NAMES = tuple(voice.value for voice in VOICES)

_CUE_EVERY, _CUE_FROM, _CUE_MOST = 60, 30, 2.0
_SLOT_BITS = 18
_ROWS_OF_A_KEY = 2
_AT_ONCE = 64
"""Texts whose runs are in memory at once."""


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
    def rows(self) -> RowsOfRuns:
        """Where the row of each run is found; the words of cues come after them."""
        return RowsOfRuns(np.concatenate((self.keys, _cue_words()[0])))


class RowsOfRuns:
    """The row of each of some keys, found by its hash: for most, one look instead of a search.

    A key has two rows where a run with a weight is the word of a cue, too.
    """

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        slots, rows = _slots(keys), np.arange(len(keys))
        self._keys = keys
        self._row = np.zeros(1 << _SLOT_BITS, np.uint16 if len(keys) < 1 << 16 else np.uint32)
        self._row[slots] = rows
        others = rows[self._row[slots] != rows]
        self._others = others[np.argsort(keys[others], kind="stable")]
        self._has_others = np.zeros(1 << _SLOT_BITS, np.bool_)
        self._has_others[slots[others]] = True

    def of(self, runs: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The place in `runs` of each that is a key, and its row."""
        slots = _slots(runs)
        row = self._row.take(slots).astype(np.intp)
        places = np.flatnonzero(self._keys.take(row) == runs)
        found = [(places, row[places])]
        crowded = np.flatnonzero(self._has_others.take(slots))
        keys = self._keys[self._others]
        first, end = keys.searchsorted(runs[crowded]), keys.searchsorted(runs[crowded], "right")
        for nth in range(_ROWS_OF_A_KEY):
            there = np.flatnonzero(first + nth < end)
            found.append((crowded[there], self._others[first[there] + nth]))
        return np.concatenate([at for at, _ in found]), np.concatenate([rows for _, rows in found])


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
    sums = _sums(texts, weights())
    shares = np.exp(sums[:, :-1] - sums[:, :-1].max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    buyers, sentiments = shares[:, 0] + shares[:, 1], np.tanh(sums[:, -1] / 2)
    columns = (shares.argmax(1).tolist(), shares.max(1).tolist(), buyers.tolist(), sentiments.tolist())
    for best, probability, buyer, sentiment in zip(*columns, strict=True):
        yield VoiceJudgement(_NAMES[best], probability, buyer, sentiment, MODEL)


def _sums(texts: Sequence[str], by: VoiceWeights) -> NDArray[np.float64]:
    """The weights that each text adds up to, for each of `VOICES` and the sentiment; shape (texts, 7)."""
    shown = plain_texts(texts)
    runs, of = _runs_of(shown)
    places, rows = by.rows.of(runs)
    of, n = of[places], len(by.keys)
    cue = rows >= n
    dense = _densities(of[cue], _cue_words()[1][rows[cue] - n], [len(one) for one in shown])
    # Not `@`, whose last digits depend on how many rows there are.
    sums: NDArray[np.float64] = np.einsum("tc,cv->tv", dense, by.table[n:-1]) + by.table[-1]
    # Each run of a text counts once.
    held = (of * n + rows)[~cue]
    held.sort()
    text_of, rows = np.divmod(held[_firsts(held)], n)
    if len(rows):
        first = _firsts(text_of)
        counts = np.concatenate((first[1:], (len(rows),))) - first
        sums[text_of[first]] += np.add.reduceat(by.table.take(rows, 0), first) / np.sqrt(counts)[:, None]
    return sums


def _firsts(ascending: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each value comes first. (`numpy.diff` with a value before costs three times as much.)"""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new.nonzero()[0]


def _runs_of(shown: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The runs of plain texts, and the place of the text of each.

    The texts stand one after the other between blanks. A run over the end of one holds two blanks in a row, which no
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


def _densities(of: NDArray[np.intp], found: NDArray[np.intp], chars: Sequence[int]) -> NDArray[np.float64]:
    """How dense each cue is in texts of so many characters (`cue_densities`), by cues found, each with its text."""
    n = len(cues())
    counts = np.bincount(of * n + found, minlength=len(chars) * n).reshape(len(chars), n)
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


def _slots(runs: NDArray[np.uint64]) -> NDArray[np.intp]:
    """A hash of each run, below 2 ** _SLOT_BITS (Fibonacci hashing)."""
    return ((runs * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _SLOT_BITS)).view(np.intp)


def run_key(run: str) -> int:
    """The key of one run of characters."""
    return int(_keys_of([run])[0])


def _keys_of(runs: Sequence[str]) -> NDArray[np.uint64]:
    """The keys of runs: the codes of their characters, 16 bits each, the last one lowest."""
    codes = "".join(run.rjust(LONGEST, "\0") for run in runs).encode("utf-16-be")
    return np.frombuffer(codes, ">u8").astype(np.uint64)


def cue_densities(runs: NDArray[np.uint64], chars: int) -> NDArray[np.float64]:
    """How dense each cue is in a plain text: found once in about 60 characters is 1; 2 at most.

    Args:
        runs: of the text (`run_keys`).
        chars: how many characters it has.
    """
    words, cue_of = _cue_words()
    at = np.minimum(words.searchsorted(runs), len(words) - 1)
    found = cue_of[at[words[at] == runs]]
    dense: NDArray[np.float64] = _densities(np.zeros_like(found), found, [chars])[0]
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


_URL = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+")
_NAME = re.compile(r"@[\w\-]{1,30}")
_FACE = re.compile(r"\[[^\[\]\s\uffff]{1,8}\]")
_NUMBER = re.compile(r"\d+")
_RARE = re.compile(r"[^\u0000-\uffff]")
_END, _NO_END = "\uffff", "\ufffe"


def plain(text: str) -> str:
    """A text without what only its site writes: addresses, names and faces are a mark each (U, A, F), digits 0."""
    return plain_texts([text])[0]


def plain_texts(texts: Sequence[str]) -> list[str]:
    """Texts made plain (`plain`), all at once."""
    shown = _END.join([_ends(text).replace(_END, _NO_END) for text in texts])
    shown = nfkc(shown).lower()
    if "//" in shown or "www." in shown:
        shown = _URL.sub("U", shown)
    shown = _NUMBER.sub("0", _RARE.sub("F", _FACE.sub("F", _NAME.sub("A", shown))))
    return [" ".join(one.split()) for one in shown.split(_END)]


def _ends(text: str) -> str:
    return f"{text[:HEAD]} {text[-TAIL:]}" if len(text) > HEAD + TAIL else text


@cache
def weights() -> VoiceWeights:
    """The weights that come with the project."""
    return parse_weights(_text_of("voice-weights.txt"))


def parse_weights(text: str) -> VoiceWeights:
    """Reads weights: a line ``run<tab>numbers`` each, cues after the runs, the constant last; others are comments."""
    lines = [line.partition("\t") for line in text.splitlines() if "\t" in line]
    table = np.array("\t".join(numbers for _, _, numbers in lines).split("\t"), np.float32)
    return VoiceWeights(
        _keys_of([run for run, _, _ in lines[: -1 - len(cues())]]), table.reshape(len(lines), len(VOICES) + 1)
    )


def _text_of(file: str) -> str:
    return files("tasks.reading").joinpath(file).read_text("utf-8")


MODEL = hashlib.sha256((_text_of("voice-weights.txt") + _text_of("voice-cues.txt")).encode()).hexdigest()[:12]
"""The version of the weights."""
