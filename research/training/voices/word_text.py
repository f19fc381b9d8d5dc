"""A text as the network over words sees it: written the one way, its runs of characters, and how dense its cues are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splitter.normalize import nfkc

HEAD, TAIL = 280, 120
"""Of a longer text only so many characters of its beginning and of its end are read."""

LONGEST = 4
"""Characters of the longest run."""

_CUE_EVERY, _CUE_FROM, _CUE_MOST = 60, 30, 2.0
_SLOT_BITS = 18
_ROWS_OF_A_KEY = 2


class RowsOfRuns:
    """The row of each of some keys, found by its hash: for most, one look instead of a search.

    A key has two rows where a word with a vector is the word of a cue, too.
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


def runs_of(shown: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
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


def densities(of: NDArray[np.intp], found: NDArray[np.intp], chars: Sequence[int]) -> NDArray[np.float64]:
    """How dense each cue is in texts of so many characters (`cuedensities`), by cues found, each with its text."""
    n = len(cues())
    counts = np.bincount(of * n + found, minlength=len(chars) * n).reshape(len(chars), n)
    dense: NDArray[np.float64] = np.minimum(
        counts * (_CUE_EVERY / (np.array(chars)[:, None] + _CUE_FROM)), _CUE_MOST
    )
    return dense


def _slots(runs: NDArray[np.uint64]) -> NDArray[np.intp]:
    """A hash of each run, below 2 ** _SLOT_BITS (Fibonacci hashing)."""
    return ((runs * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _SLOT_BITS)).view(np.intp)


def run_key(run: str) -> int:
    """The key of one run of characters."""
    return int(keys_of([run])[0])


def keys_of(runs: Sequence[str]) -> NDArray[np.uint64]:
    """The keys of runs: the codes of their characters, 16 bits each, the last one lowest."""
    codes = "".join(run.rjust(LONGEST, "\0") for run in runs).encode("utf-16-be")
    return np.frombuffer(codes, ">u8").astype(np.uint64)


@cache
def cues() -> Mapping[str, Sequence[str]]:
    """Words that tell a voice whatever the text is about: each cue's name and words."""
    lines = (line.split("\t") for line in cue_text().splitlines() if not line.startswith("#"))
    return {name: words.split() for name, words in lines}


@cache
def cue_words() -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Keys of all words of cues, ascending, and the place of the cue of each."""
    found = sorted((run_key(word), place) for place, words in enumerate(cues().values()) for word in words)
    return np.array([key for key, _ in found], np.uint64), np.array([place for _, place in found])


@cache
def _simplified() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """What finds a traditional character that simplified Chinese has not, and its simplified one."""
    text = files("tasks.reading").joinpath("simplified.txt").read_text("utf-8")
    old, new = (line for line in text.splitlines() if not line.startswith("#"))
    return re.compile(f"[{old}]"), dict(zip(old, new, strict=True))


_URL = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+")
_NAME = re.compile(r"@[\w\-]{1,30}")
_FACE = re.compile(r"\[[^\[\]\s\uffff]{1,8}\]")
_NUMBER = re.compile(r"\d+")
_RARE = re.compile(r"[^\u0000-\uffff]")
_END, _NO_END = "\uffff", "\ufffe"


def plain(text: str) -> str:
    """A text without what only its site writes: addresses, names and faces are a mark each (U, A, F), digits 0.

    Traditional characters that simplified Chinese has not are simplified.
    """
    return plain_texts([text])[0]


def plain_texts(texts: Sequence[str]) -> list[str]:
    """Texts made plain (`plain`), all at once."""
    shown = _END.join([_ends(text).replace(_END, _NO_END) for text in texts])
    shown = nfkc(shown).lower()
    traditional, simplified = _simplified()
    shown = traditional.sub(lambda found: simplified[found[0]], shown)
    if "//" in shown or "www." in shown:
        shown = _URL.sub("U", shown)
    shown = _NUMBER.sub("0", _RARE.sub("F", _FACE.sub("F", _NAME.sub("A", shown))))
    return [" ".join(one.split()) for one in shown.split(_END)]


def _ends(text: str) -> str:
    return f"{text[:HEAD]} {text[-TAIL:]}" if len(text) > HEAD + TAIL else text


def cue_text() -> str:
    """The file of cues."""
    return Path(__file__).with_name("voice-cues.txt").read_text("utf-8")
