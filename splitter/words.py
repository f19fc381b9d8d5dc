"""The words of a name: jieba's cut with our dictionary; Latin letters, numbers and other scripts are kept whole.

jieba looks up nothing but pieces of the text itself, so a process reads the parts of its dictionary that its texts need
(`dictionary.py`).
"""

from __future__ import annotations

import logging
import re
import warnings
from functools import cache
from itertools import groupby
from math import log
from threading import Lock
from typing import Any

from splitter import dictionary
from splitter.lexicon import user_words

_PIECE = re.compile(r"\w[\w+#&.%'-]*|[^\w\s]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ENDS = "+#&.%'-"
_DOTTED = re.compile(r"(?:[a-z]\.){2,}", re.IGNORECASE)  # i.d., A.P.C.
_ENDS_WITH_PLUS = re.compile(r"(?:pro|max|ultra|[a-z]{1,2}\d{0,3})\+", re.IGNORECASE)  # Pro+, S25+, A+
_LOADING = Lock()


def words_of(text: str) -> list[str]:
    """The words of a text (normalized) in their order, none empty; a punctuation mark stands for itself."""
    words: list[str] = []
    cut = tokenizer().of(text).lcut
    for piece in _PIECE.findall(text):
        if piece.isascii():
            words.append(_strip_ends(piece) if len(piece) > 1 else piece)
        else:
            words += _join_cut_words(cut(piece))
    return words


def _join_cut_words(words: list[str]) -> list[str]:
    """Join the parts of words in Latin or another script that were cut inside."""
    joined: list[str] = []
    for chinese, run in groupby(words, _has_chinese):
        if chinese:
            joined += run
        elif letters := _strip_ends("".join(run)):
            if joined and joined[-1] + letters in user_words():
                joined[-1] += letters  # jieba cuts before other letters: 茶π
            else:
                joined.append(letters)
    return joined


def _strip_ends(piece: str) -> str:
    """Return a piece without the signs at its ends; the + of a model and the dots of initials are none."""
    if _ENDS_WITH_PLUS.fullmatch(piece) or _DOTTED.fullmatch(piece):
        return piece
    return piece.strip(_ENDS + "_")


def _has_chinese(word: str) -> bool:
    return "\u4e00" <= word[0] <= "\u9fff" or _CHINESE.search(word) is not None


def rarity(word: str) -> float | None:
    """The negative log probability of a word by jieba's dictionary and ours; None for a word of neither."""
    ours = user_words().get(word)
    count = ours[0] if ours else dictionary.frequency(word)
    return greatest_rarity() - log(count) if count else None


def greatest_rarity() -> float:
    """Jieba's rarity of a character that is no word."""
    return log(_total())


@cache
def _total() -> int:
    """Return the sum of the frequencies of all words: jieba's and ours."""
    return dictionary.TOTAL + sum(count for count, _ in user_words().values())


class Tokenizer:
    """jieba's tokenizer with our words. It has read what begins with a character of the texts so far.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: set[str] = set()
        self._ours: dict[str, list[tuple[str, int]]] = {}
        for word, (count, _) in user_words().items():
            self._ours.setdefault(word[:1], []).append((word, count))
        self._jieba = _import_jieba().Tokenizer()
        self._jieba.total = _total()
        # Else jieba would read all, and keep a cache in the folder for temporary files, which all users share.
        self._jieba.initialized = True

    def of(self, text: str) -> Any:
        """The ``jieba.Tokenizer`` with all that this text may hold."""
        if not self._read.issuperset(text):
            with self._lock:
                for first in set(text) - self._read:
                    self._add(first)
                    self._read.add(first)
        return self._jieba

    def _add(self, first: str) -> None:
        """Add what begins with a character: jieba's words, then ours, as its `add_word` does."""
        frequencies = dictionary.part(first)
        for word, count in self._ours.get(first, ()):
            frequencies[word] = count
            for end in range(1, len(word)):
                frequencies.setdefault(word[:end], 0)
        self._jieba.FREQ.update(frequencies)


def tokenizer() -> Tokenizer:
    """The tokenizer of this process, made by the first call."""
    with _LOADING:
        return _tokenizer()


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer()


def jieba_tokenizer() -> Any:
    """Return a new ``jieba.Tokenizer`` with only jieba's own dictionary."""
    found = _import_jieba().Tokenizer()
    found.FREQ, found.total = found.gen_pfdict(found.get_dict_file())
    found.initialized = True
    return found


@cache
def _import_jieba() -> Any:
    """The module jieba, quiet: by itself it logs to standard error, and newer Pythons warn of its escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    for name in ("jieba", "jieba._compat"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).setLevel(logging.WARNING)
    return jieba
